// Speeds of kernels that share every SM.

#include "src/models/co_resident/model.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "src/models/co_resident/fit.h"
#include "tests/faults/failing_allocations.h"

namespace gpushare::models::co_resident {
namespace {

constexpr int32_t kWorkersOfSm = 4;

// Uses the FMA pipe and DRAM to these shares; one of its four workers reaches 0.5 of its speed.
Kernel KernelOf(double fma, double dram) {
  Kernel kernel;
  kernel.counters.instructions = 1e4;
  kernel.counters.memory_instructions = 1e3 * dram;
  kernel.counters.sectors_per_request = 4;
  kernel.counters.issue = fma;
  kernel.counters.fma = fma;
  kernel.counters.dram = dram;
  kernel.saturating_occupancy = 0.5;
  kernel.workers_per_sm_max = kWorkersOfSm;
  return kernel;
}

// Both pay for the resource of which they want more than there is.
double Alone(const SampleSide& side) {
  KernelFeatures features;
  return MakeFeatures(side.kernel, features) ? SpeedAlone(features, side.workers_per_sm) : 0;
}

double Truth(const SampleSide& timed, const SampleSide& neighbour) {
  const double own = Alone(timed);
  const double other = Alone(neighbour);
  const core::KernelCounters& a = timed.kernel.counters;
  const core::KernelCounters& b = neighbour.kernel.counters;
  const double most = std::max(a.fma * own + b.fma * other, a.dram * own + b.dram * other);
  return own / std::max(1.0, most);
}

std::vector<Kernel> Kernels() {
  std::vector<Kernel> kernels;
  for (const double fma : {0.1, 0.4, 0.7, 0.95}) {
    for (const double dram : {0.0, 0.3, 0.8}) kernels.push_back(KernelOf(fma, dram));
  }
  return kernels;
}

// Each kernel beside each, but for the pairs of the first with the last.
std::vector<Sample> Samples() {
  const std::vector<Kernel> kernels = Kernels();
  std::vector<Sample> samples;
  for (size_t a = 0; a < kernels.size(); ++a) {
    for (size_t b = 0; b < kernels.size(); ++b) {
      if (a + b == kernels.size() - 1 && (a == 0 || b == 0)) continue;
      for (int32_t workers = 1; workers < kWorkersOfSm; ++workers) {
        const SampleSide timed = {kernels[a], workers};
        const SampleSide neighbour = {kernels[b], kWorkersOfSm - workers};
        samples.push_back({timed, neighbour, Truth(timed, neighbour)});
      }
    }
  }
  return samples;
}

Speeds PredictPair(const Model& model, const SampleSide& a, const SampleSide& b) {
  const View one = model.ViewOf(a.kernel);
  const View other = model.ViewOf(b.kernel);
  return model.Predict({&one, a.workers_per_sm}, {&other, b.workers_per_sm});
}

class CoResidentModelTest : public testing::Test {
 protected:
  Speeds Predict(const SampleSide& a, const SampleSide& b) const {
    return PredictPair(model_, a, b);
  }

  const Model model_ = Model(FitPairs(Samples()));
  const SampleSide compute_ = {KernelOf(0.95, 0.8), 2};
  const SampleSide memory_ = {KernelOf(0.1, 0.0), 2};
};

TEST_F(CoResidentModelTest, PredictsAPairWhoseKernelsMetOthers) {
  const std::vector<Kernel> kernels = Kernels();
  for (int32_t workers = 1; workers < kWorkersOfSm; ++workers) {
    const SampleSide a = {kernels.front(), workers};
    const SampleSide b = {kernels.back(), kWorkersOfSm - workers};
    const Speeds speeds = Predict(a, b);
    ASSERT_TRUE(speeds.known);
    EXPECT_NEAR(speeds.speed[0], Truth(a, b), 0.08) << workers;
    EXPECT_NEAR(speeds.speed[1], Truth(b, a), 0.08) << workers;
  }
}

// The process without any sum made ahead: each pair's weight times its covariance.
TEST_F(CoResidentModelTest, TheSumsAreThoseOfThePairs) {
  const State& state = model_.state();
  const WorkerFunctions functions;
  const auto speed_of = [&](const SampleSide& timed, const SampleSide& neighbour) {
    std::array<KernelFeatures, 2> own;
    EXPECT_TRUE(MakeFeatures(timed.kernel, own[0]) && MakeFeatures(neighbour.kernel, own[1]));
    const auto compare = [&](const KernelFeatures& kernel, int32_t workers, int32_t index) {
      const Workers& other = state.workers[static_cast<size_t>(index)];
      const KernelFeatures& known = state.kernels[static_cast<size_t>(other.kernel)];
      const double alike =
          Product(functions.Of(kernel, workers), functions.Of(known, other.per_sm));
      return std::array<double, 2>{alike * Likeness(kernel, known),
                                   IsSame(kernel, known) ? alike : 0};
    };
    double root = 0;
    for (const WeightedPair& pair : state.pairs) {
      const auto a = compare(own[0], timed.workers_per_sm, pair.timed);
      const auto b = compare(own[1], neighbour.workers_per_sm, pair.neighbour);
      root += pair.weight * (1 + kSimilarPair * a[0] * b[0] +
                             kSameKernel * (a[1] * b[0] + a[0] * b[1]) + kOwnLevel * (a[1] + b[1]));
    }
    return SpeedAlone(own[0], timed.workers_per_sm) * RatioOf(root);
  };
  const SampleSide strange = {KernelOf(0.55, 0.45), 3};
  for (const SampleSide& a : {compute_, memory_, strange}) {
    for (const SampleSide& b : {compute_, memory_, strange}) {
      const Speeds speeds = Predict(a, b);
      EXPECT_NEAR(speeds.speed[0], speed_of(a, b), 1e-4);
      EXPECT_NEAR(speeds.speed[1], speed_of(b, a), 1e-4);
    }
  }
}

TEST_F(CoResidentModelTest, TheErrorIsThatOfPairsThatWereLeftOut) {
  EXPECT_GT(Predict(compute_, memory_).error, 0.001);
  EXPECT_LT(Predict(compute_, memory_).error, 0.1);
  // Speeds that have nothing to do with the kernels cannot be predicted.
  std::vector<Sample> samples = Samples();
  for (size_t i = 0; i < samples.size(); ++i) samples[i].speed = i % 2 == 0 ? 0.2 : 0.9;
  EXPECT_GT(PredictPair(Model(FitPairs(samples)), compute_, memory_).error, 0.5);
}

TEST_F(CoResidentModelTest, AKernelThatMetNobodyHasTheErrorOfSuchKernels) {
  const SampleSide strange = {KernelOf(0.55, 0.45), 2};
  EXPECT_GT(model_.state().new_kernel_error, model_.state().error);
  EXPECT_EQ(Predict(strange, memory_).error, model_.state().new_kernel_error);
  EXPECT_EQ(Predict(memory_, strange).error, model_.state().new_kernel_error);
  EXPECT_EQ(Predict(compute_, memory_).error, model_.state().error);
}

TEST_F(CoResidentModelTest, TheOrderOfTheSidesDoesNotMatter) {
  const Speeds one = Predict(compute_, memory_);
  const Speeds other = Predict(memory_, compute_);
  EXPECT_EQ(one.speed[0], other.speed[1]);
  EXPECT_EQ(one.speed[1], other.speed[0]);
  EXPECT_NE(one.speed[0], one.speed[1]);
}

TEST_F(CoResidentModelTest, NoSpeedExceedsThatAlone) {
  for (const double use : {0.0, 0.5, 1.0, 2.0}) {
    for (int32_t workers = 1; workers <= kWorkersOfSm; ++workers) {
      const SampleSide side = {KernelOf(use, 1 - use / 2), workers};
      for (const SampleSide& other : {compute_, memory_}) {
        const Speeds speeds = Predict(side, other);
        ASSERT_TRUE(speeds.known);
        EXPECT_GT(speeds.speed[0], 0);
        EXPECT_LE(speeds.speed[0], Alone(side));
        EXPECT_GT(speeds.speed[1], 0);
        EXPECT_LE(speeds.speed[1], Alone(other));
      }
    }
  }
}

TEST_F(CoResidentModelTest, ImpossibleNumbersAreUnknown) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  std::vector<SampleSide> garbage(10, compute_);
  garbage[0].kernel.counters.fma = nan;
  garbage[1].kernel.counters.dram = infinity;
  garbage[2].kernel.counters.instructions = infinity;
  garbage[3].kernel.counters.instructions = 0;
  garbage[4].kernel.counters.sectors_per_request = -1;
  garbage[5].kernel.saturating_occupancy = nan;
  garbage[6].kernel.workers_per_sm_max = 0;
  garbage[7].workers_per_sm = -1;
  garbage[8].workers_per_sm = kWorkersOfSm + 1;
  garbage[9].workers_per_sm = 0;
  for (size_t i = 0; i < garbage.size(); ++i) {
    for (const Speeds& speeds : {Predict(garbage[i], memory_), Predict(memory_, garbage[i])}) {
      EXPECT_FALSE(speeds.known) << i;
      EXPECT_EQ(speeds.speed[0], 0) << i;
      EXPECT_EQ(speeds.speed[1], 0) << i;
      EXPECT_EQ(speeds.error, 1) << i;
    }
  }
  std::vector<Sample> samples = Samples();
  for (const SampleSide& side : garbage) {
    samples.push_back({side, memory_, 0.5});
    samples.push_back({memory_, side, 0.5});
  }
  for (const double speed : {nan, infinity, 0.0, -1.0}) {
    samples.push_back({compute_, memory_, speed});
  }
  EXPECT_EQ(PredictPair(Model(FitPairs(samples)), compute_, memory_).speed,
            Predict(compute_, memory_).speed);
}

TEST(CoResidentModel, FewSamplesTellNothing) {
  std::vector<Sample> samples = Samples();
  samples.resize(kSamplesMin - 1);
  const State state = FitPairs(samples);
  EXPECT_FALSE(state.known());
  EXPECT_FALSE(PredictPair(Model(state), samples[0].timed, samples[0].neighbour).known);
  EXPECT_FALSE(PredictPair(Model(), samples[0].timed, samples[0].neighbour).known);
}

TEST(CoResidentModel, AFitStaysWithinItsBounds) {
  std::vector<Sample> samples;
  for (int i = 0; i < 3 * static_cast<int>(kKernelsMax); ++i) {
    const SampleSide side = {KernelOf(0.005 * i, 1 - 0.005 * i), 1 + i % 4};
    samples.push_back({side, {KernelOf(0.5, 0.5), 1}, 0.5});
  }
  const State state = FitPairs(samples);
  EXPECT_TRUE(state.known());
  EXPECT_EQ(state.kernels.size(), kKernelsMax);
  EXPECT_LT(state.pairs.size(), samples.size());
}

// All kernels of the fit saturate at half of their workers.
TEST_F(CoResidentModelTest, AnOccupancyThatNobodyTimedIsThatOfLikeKernels) {
  Kernel untimed = compute_.kernel;
  untimed.saturating_occupancy = 0;
  const View view = model_.ViewOf(untimed);
  ASSERT_TRUE(view.known);
  EXPECT_NEAR(view.features.values.back(), 0.5, 1e-9);
  const View timed = model_.ViewOf(compute_.kernel);
  const View other = model_.ViewOf(memory_.kernel);
  const Speeds by_like = model_.Predict({&view, 2}, {&other, 2});
  const Speeds by_time = model_.Predict({&timed, 2}, {&other, 2});
  EXPECT_NEAR(by_like.speed[0], by_time.speed[0], 1e-6);
  EXPECT_GT(by_like.error, by_time.error + 0.05);
  EXPECT_LE(by_like.error, 1);
}

TEST_F(CoResidentModelTest, APredictionAllocatesNothing) {
  if (!gpushare_test::CanFailAllocations()) GTEST_SKIP() << "A sanitizer replaces the allocator.";
  const View one = model_.ViewOf(compute_.kernel);
  const View other = model_.ViewOf(memory_.kernel);
  gpushare_test::FailingAllocations failures(1, gpushare_test::Failing::kFromThereOn);
  const Speeds speeds = model_.Predict({&one, 2}, {&other, 2});
  failures.Stop();
  EXPECT_EQ(failures.failed(), 0);
  EXPECT_TRUE(speeds.known);
}

}  // namespace
}  // namespace gpushare::models::co_resident
