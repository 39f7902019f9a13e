// Speeds of kernels that share every SM.

#include "src/models/co_resident_model.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "tests/faults/failing_allocations.h"

namespace gpushare::models {
namespace {

constexpr int32_t kWorkersMax = 4;

// Uses the FMA pipe and DRAM to these shares; one of its four workers reaches 0.5 of its speed.
CoResidentKernel Kernel(double fma, double dram) {
  CoResidentKernel kernel;
  kernel.counters.instructions = 1e4;
  kernel.counters.memory_instructions = 1e3 * dram;
  kernel.counters.sectors_per_request = 4;
  kernel.counters.issue = fma;
  kernel.counters.fma = fma;
  kernel.counters.dram = dram;
  kernel.saturating_occupancy = 0.5;
  kernel.workers_per_sm_max = kWorkersMax;
  return kernel;
}

// Both pay for the resource of which they want more than there is.
double Truth(const CoResidentSide& timed, const CoResidentSide& neighbour) {
  const double own = SpeedAlone(timed);
  const double other = SpeedAlone(neighbour);
  const core::KernelCounters& a = timed.kernel.counters;
  const core::KernelCounters& b = neighbour.kernel.counters;
  const double most = std::max(a.fma * own + b.fma * other, a.dram * own + b.dram * other);
  return own / std::max(1.0, most);
}

std::vector<CoResidentKernel> Kernels() {
  std::vector<CoResidentKernel> kernels;
  for (const double fma : {0.1, 0.4, 0.7, 0.95}) {
    for (const double dram : {0.0, 0.3, 0.8}) kernels.push_back(Kernel(fma, dram));
  }
  return kernels;
}

// Each kernel beside each, but for the pairs of the first with the last.
std::vector<CoResidentSample> Samples() {
  const std::vector<CoResidentKernel> kernels = Kernels();
  std::vector<CoResidentSample> samples;
  for (size_t a = 0; a < kernels.size(); ++a) {
    for (size_t b = 0; b < kernels.size(); ++b) {
      if (a + b == kernels.size() - 1 && (a == 0 || b == 0)) continue;
      for (int32_t workers = 1; workers < kWorkersMax; ++workers) {
        const CoResidentSide timed = {kernels[a], workers};
        const CoResidentSide neighbour = {kernels[b], kWorkersMax - workers};
        samples.push_back({timed, neighbour, Truth(timed, neighbour)});
      }
    }
  }
  return samples;
}

class CoResidentModelTest : public testing::Test {
 protected:
  CoResidentModelTest() { model_.Fit(Samples()); }

  CoResidentModel model_;
  const CoResidentSide compute_ = {Kernel(0.95, 0.8), 2};
  const CoResidentSide memory_ = {Kernel(0.1, 0.0), 2};
};

TEST_F(CoResidentModelTest, PredictsAPairWhoseKernelsMetOthers) {
  const std::vector<CoResidentKernel> kernels = Kernels();
  for (int32_t workers = 1; workers < kWorkersMax; ++workers) {
    const CoResidentSide a = {kernels.front(), workers};
    const CoResidentSide b = {kernels.back(), kWorkersMax - workers};
    const CoResidentSpeeds speeds = model_.Predict(a, b);
    ASSERT_TRUE(speeds.known);
    EXPECT_NEAR(speeds.speed[0], Truth(a, b), 0.08) << workers;
    EXPECT_NEAR(speeds.speed[1], Truth(b, a), 0.08) << workers;
  }
}

TEST_F(CoResidentModelTest, TheErrorIsThatOfPairsThatWereLeftOut) {
  EXPECT_GT(model_.Predict(compute_, memory_).error, 0.001);
  EXPECT_LT(model_.Predict(compute_, memory_).error, 0.1);
  // Speeds that have nothing to do with the kernels cannot be predicted.
  std::vector<CoResidentSample> samples = Samples();
  for (size_t i = 0; i < samples.size(); ++i) samples[i].speed = i % 2 == 0 ? 0.2 : 0.9;
  CoResidentModel noise;
  noise.Fit(samples);
  EXPECT_GT(noise.Predict(compute_, memory_).error, 0.5);
}

TEST_F(CoResidentModelTest, TheOrderOfTheSidesDoesNotMatter) {
  const CoResidentSpeeds one = model_.Predict(compute_, memory_);
  const CoResidentSpeeds other = model_.Predict(memory_, compute_);
  EXPECT_EQ(one.speed[0], other.speed[1]);
  EXPECT_EQ(one.speed[1], other.speed[0]);
  EXPECT_NE(one.speed[0], one.speed[1]);
}

TEST_F(CoResidentModelTest, NoSpeedExceedsThatAlone) {
  for (const double use : {0.0, 0.5, 1.0, 2.0}) {
    for (int32_t workers = 1; workers <= kWorkersMax; ++workers) {
      const CoResidentSide side = {Kernel(use, 1 - use / 2), workers};
      for (const CoResidentSide& other : {compute_, memory_}) {
        const CoResidentSpeeds speeds = model_.Predict(side, other);
        ASSERT_TRUE(speeds.known);
        EXPECT_GT(speeds.speed[0], 0);
        EXPECT_LE(speeds.speed[0], SpeedAlone(side));
        EXPECT_GT(speeds.speed[1], 0);
        EXPECT_LE(speeds.speed[1], SpeedAlone(other));
      }
    }
  }
}

TEST_F(CoResidentModelTest, BesideNothingAKernelRunsAsAlone) {
  CoResidentSide one = compute_;
  one.workers_per_sm = 1;
  CoResidentSide none = memory_;
  none.workers_per_sm = 0;
  // Without a fit too.
  for (const CoResidentModel& model : {model_, CoResidentModel()}) {
    const CoResidentSpeeds speeds = model.Predict(one, none);
    EXPECT_TRUE(speeds.known);
    EXPECT_EQ(speeds.speed[0], 0.5);
    EXPECT_EQ(speeds.speed[1], 0);
  }
}

TEST_F(CoResidentModelTest, ImpossibleNumbersAreUnknown) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  std::vector<CoResidentSide> garbage(9, compute_);
  garbage[0].kernel.counters.fma = nan;
  garbage[1].kernel.counters.dram = infinity;
  garbage[2].kernel.counters.instructions = infinity;
  garbage[3].kernel.counters.instructions = 0;
  garbage[4].kernel.counters.sectors_per_request = -1;
  garbage[5].kernel.saturating_occupancy = nan;
  garbage[6].kernel.workers_per_sm_max = 0;
  garbage[7].workers_per_sm = -1;
  garbage[8].workers_per_sm = kWorkersMax + 1;
  for (size_t i = 0; i < garbage.size(); ++i) {
    for (const CoResidentSpeeds& speeds :
         {model_.Predict(garbage[i], memory_), model_.Predict(memory_, garbage[i])}) {
      EXPECT_FALSE(speeds.known) << i;
      EXPECT_EQ(speeds.speed[0], 0) << i;
      EXPECT_EQ(speeds.speed[1], 0) << i;
      EXPECT_EQ(speeds.error, 1) << i;
    }
  }
  std::vector<CoResidentSample> samples = Samples();
  for (const CoResidentSide& side : garbage) {
    samples.push_back({side, memory_, 0.5});
    samples.push_back({memory_, side, 0.5});
  }
  for (const double speed : {nan, infinity, 0.0, -1.0}) {
    samples.push_back({compute_, memory_, speed});
  }
  CoResidentModel refit;
  refit.Fit(samples);
  EXPECT_EQ(refit.Predict(compute_, memory_).speed, model_.Predict(compute_, memory_).speed);
}

TEST(CoResidentModel, FewSamplesTellNothing) {
  std::vector<CoResidentSample> samples = Samples();
  samples.resize(kCoResidentSamplesMin - 1);
  CoResidentModel model;
  model.Fit(samples);
  EXPECT_FALSE(model.known());
  EXPECT_FALSE(model.Predict(samples[0].timed, samples[0].neighbour).known);
}

TEST_F(CoResidentModelTest, AFitReplacesTheOneBefore) {
  model_.Fit({});
  EXPECT_FALSE(model_.known());
  EXPECT_FALSE(model_.Predict(compute_, memory_).known);
}

TEST_F(CoResidentModelTest, APredictionAllocatesNothing) {
  if (!gpushare_test::CanFailAllocations()) GTEST_SKIP() << "A sanitizer replaces the allocator.";
  gpushare_test::FailingAllocations failures(1, gpushare_test::Failing::kFromThereOn);
  const CoResidentSpeeds speeds = model_.Predict(compute_, memory_);
  failures.Stop();
  EXPECT_EQ(failures.failed(), 0);
  EXPECT_TRUE(speeds.known);
}

}  // namespace
}  // namespace gpushare::models
