// Two kernels on the same SMs: measured pairs first, then the profile's model from counters, then
// the Markov model.

#include "src/models/online/co_schedules.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "src/models/co_resident/fit.h"

namespace gpushare::models {
namespace {

using core::DeviceProfile;
using core::KernelDesc;
using core::KernelId;

KernelDesc Kernel(uint32_t id, const std::string& name, double memory_share) {
  KernelDesc kernel;
  kernel.simulation.saturating_occupancy = 0.125;
  kernel.id = KernelId{id};
  kernel.name = name;
  kernel.resources.workers_per_sm_max = 8;
  kernel.counters.instructions = 4000;
  kernel.counters.memory_instructions = 4000 * memory_share;
  kernel.counters.sectors_per_request = 4;
  return kernel;
}

class CoSchedulesTest : public ::testing::Test {
 protected:
  CoSchedulesTest() : schedules_(DeviceProfile(), {{"compute", "memory", {{6, 2, 0.7, 0.5}}}}) {
    for (const KernelDesc& kernel : {compute_, memory_, other_}) schedules_.Add(kernel);
  }
  CoScheduleSpeeds Predict(const KernelDesc& first, int32_t workers, const KernelDesc& second,
                           int32_t others) const {
    return schedules_.Predict({&first, workers, 100}, {&second, others, 100});
  }

  KernelDesc compute_ = Kernel(1, "compute", 0.001);
  KernelDesc memory_ = Kernel(2, "memory", 0.3);
  KernelDesc other_ = Kernel(3, "other", 0.01);
  CoSchedules schedules_;
};

TEST_F(CoSchedulesTest, AMeasuredPairIsWhatWasMeasuredInBothOrders) {
  const CoScheduleSpeeds one = Predict(compute_, 6, memory_, 2);
  EXPECT_DOUBLE_EQ(one.speed[0], 0.7);
  EXPECT_DOUBLE_EQ(one.speed[1], 0.5);
  const CoScheduleSpeeds other = Predict(memory_, 2, compute_, 6);
  EXPECT_DOUBLE_EQ(other.speed[0], 0.5);
  EXPECT_DOUBLE_EQ(other.speed[1], 0.7);
  EXPECT_EQ(one.error, other.error);
  EXPECT_GT(Predict(compute_, 4, memory_, 4).error, one.error) << "other workers were measured";
}

TEST_F(CoSchedulesTest, OtherPairsComeFromTheChainAndMirrorEachOther) {
  const CoScheduleSpeeds one = Predict(compute_, 4, other_, 4);
  const CoScheduleSpeeds swapped = Predict(other_, 4, compute_, 4);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_GT(one.speed[i], 0);
    EXPECT_LE(one.speed[i], 1);
    EXPECT_NEAR(one.speed[i], swapped.speed[1 - i], 1e-9);
  }
  EXPECT_GT(one.error, Predict(compute_, 4, memory_, 4).error);
}

TEST_F(CoSchedulesTest, AllCountersGiveAChainWithPipesAndItsSmallerError) {
  KernelDesc special = Kernel(6, "special", 0.001);
  special.counters.issue = 0.6;
  special.counters.special = 0.9;
  special.simulation.saturating_occupancy = 0.3;
  KernelDesc same = special;
  same.id = KernelId{7};
  same.name = "same";
  KernelDesc alu = same;
  alu.id = KernelId{8};
  alu.name = "alu";
  std::swap(alu.counters.alu, alu.counters.special);
  for (const KernelDesc& kernel : {special, same, alu}) schedules_.Add(kernel);
  const CoScheduleSpeeds one_pipe = Predict(special, 4, same, 4);
  const CoScheduleSpeeds two_pipes = Predict(special, 4, alu, 4);
  const CoScheduleSpeeds swapped = Predict(alu, 4, special, 4);
  EXPECT_GT(two_pipes.speed[0], 1.1 * one_pipe.speed[0]);
  EXPECT_NEAR(two_pipes.speed[0], swapped.speed[1], 1e-9);
  EXPECT_NEAR(two_pipes.speed[1], swapped.speed[0], 1e-9);
  EXPECT_LT(two_pipes.error, Predict(compute_, 4, other_, 4).error);
  EXPECT_EQ(Predict(special, 4, other_, 4).error, Predict(compute_, 4, other_, 4).error)
      << "one of them has no issue counter";
}

TEST_F(CoSchedulesTest, WithoutCountersOrWorkersNothingTells) {
  KernelDesc uncounted = Kernel(4, "uncounted", 0);
  uncounted.counters = {};
  schedules_.Add(uncounted);
  EXPECT_EQ(Predict(uncounted, 4, compute_, 4).error, 1);
  EXPECT_EQ(Predict(other_, 0, compute_, 4).error, 1);
  KernelDesc nonsense = Kernel(5, "nonsense", std::numeric_limits<double>::quiet_NaN());
  schedules_.Add(nonsense);
  const CoScheduleSpeeds speeds = Predict(nonsense, 4, compute_, 4);
  EXPECT_TRUE(speeds.speed[0] >= 0 && speeds.speed[0] <= 1);
}

// Whatever runs beside each other keeps half of its speed alone.
co_resident::State Halves(const std::vector<KernelDesc>& kernels) {
  std::vector<co_resident::Sample> samples;
  for (const KernelDesc& timed : kernels) {
    for (const KernelDesc& neighbour : kernels) {
      for (int32_t workers = 2; workers <= 6; ++workers) {
        const co_resident::SampleSide a = {{timed.counters, 0.125, 8}, workers};
        const co_resident::SampleSide b = {{neighbour.counters, 0.125, 8}, 8 - workers};
        samples.push_back({a, b, 0.5});
      }
    }
  }
  return co_resident::FitPairs(samples);
}

TEST_F(CoSchedulesTest, AModelFromCountersComesBeforeTheChain) {
  const CoScheduleSpeeds chain = Predict(compute_, 4, other_, 4);
  ASSERT_EQ(schedules_.learned(), nullptr);
  schedules_.Restore(schedules_.Prepare(Halves({compute_, memory_, other_})));
  ASSERT_NE(schedules_.learned(), nullptr);
  const CoScheduleSpeeds speeds = Predict(compute_, 4, other_, 4);
  EXPECT_NEAR(speeds.speed[0], 0.5, 0.01);
  EXPECT_NEAR(speeds.speed[1], 0.5, 0.01);
  EXPECT_LT(speeds.error, chain.error);
  EXPECT_EQ(Predict(compute_, 6, memory_, 2).speed[0], 0.7) << "it was measured";
  // A kernel that comes later has it too, and loses it with its counters.
  KernelDesc late = Kernel(6, "late", 0.02);
  schedules_.Add(late);
  EXPECT_NEAR(Predict(late, 4, other_, 4).speed[0], 0.5, 0.05);
  late.counters = {};
  schedules_.Add(late);
  EXPECT_EQ(Predict(late, 4, other_, 4).error, 1);
  // A text without the model takes it away.
  schedules_.Restore(schedules_.Prepare({}));
  EXPECT_EQ(schedules_.learned(), nullptr);
  EXPECT_EQ(Predict(compute_, 4, other_, 4).error, chain.error);
}

TEST_F(CoSchedulesTest, AnErrorAboveThatOfTheChainDoesNotCount) {
  const CoScheduleSpeeds chain = Predict(compute_, 4, other_, 4);
  co_resident::State state = Halves({compute_, memory_, other_});
  state.error = 0.6;
  state.new_kernel_error = 0.6;
  schedules_.Restore(schedules_.Prepare(std::move(state)));
  EXPECT_EQ(Predict(compute_, 4, other_, 4).error, chain.error);
}

TEST_F(CoSchedulesTest, RunsCorrectThePairAndItsErrorBarShrinks) {
  const CoScheduleSpeeds chain = Predict(compute_, 4, other_, 4);
  for (int i = 0; i < 8; ++i) schedules_.Observe({&compute_, 4, 100}, {&other_, 4, 0}, 0.3);
  const CoScheduleSpeeds half = Predict(compute_, 4, other_, 4);
  EXPECT_NEAR(half.speed[0], 0.3, 0.01);
  EXPECT_EQ(half.speed[1], chain.speed[1]);
  EXPECT_EQ(half.error, chain.error) << "nothing is known of the other one yet";
  for (int i = 0; i < 8; ++i) schedules_.Observe({&other_, 4, 100}, {&compute_, 4, 0}, 0.6);
  const CoScheduleSpeeds both = Predict(compute_, 4, other_, 4);
  EXPECT_NEAR(both.speed[1], 0.6, 0.01);
  EXPECT_LT(both.error, 0.03);
  const CoScheduleSpeeds swapped = Predict(other_, 4, compute_, 4);
  EXPECT_EQ(swapped.speed[0], both.speed[1]);
  EXPECT_EQ(swapped.speed[1], both.speed[0]);
  EXPECT_EQ(Predict(compute_, 6, memory_, 2).speed[0], 0.7) << "another pair";
}

// The chain is as wrong at other numbers of workers, or about so.
TEST_F(CoSchedulesTest, RunsMoveOtherWorkersTooAndLeaveTheirErrorBar) {
  const CoScheduleSpeeds chain = Predict(compute_, 3, other_, 5);
  const CoScheduleSpeeds at = Predict(compute_, 4, other_, 4);
  for (int i = 0; i < 8; ++i) {
    schedules_.Observe({&compute_, 4, 100}, {&other_, 4, 0}, 0.8 * at.speed[0]);
    schedules_.Observe({&other_, 4, 100}, {&compute_, 4, 0}, 0.8 * at.speed[1]);
  }
  const CoScheduleSpeeds speeds = Predict(compute_, 3, other_, 5);
  EXPECT_NEAR(speeds.speed[0], 0.8 * chain.speed[0], 0.02);
  EXPECT_NEAR(speeds.speed[1], 0.8 * chain.speed[1], 0.02);
  EXPECT_EQ(speeds.error, chain.error);
}

TEST_F(CoSchedulesTest, RunsOfAPairThatNothingPredictsTellAfterAFew) {
  KernelDesc uncounted = Kernel(4, "uncounted", 0);
  uncounted.counters = {};
  schedules_.Add(uncounted);
  for (int i = 0; i < 3; ++i) {
    schedules_.Observe({&uncounted, 4, 100}, {&compute_, 4, 0}, 0.5);
    schedules_.Observe({&compute_, 4, 100}, {&uncounted, 4, 0}, 0.7);
  }
  EXPECT_EQ(Predict(uncounted, 4, compute_, 4).error, 1);
  schedules_.Observe({&uncounted, 4, 100}, {&compute_, 4, 0}, 0.5);
  EXPECT_EQ(Predict(uncounted, 4, compute_, 4).error, 1) << "one side has too few";
  schedules_.Observe({&compute_, 4, 100}, {&uncounted, 4, 0}, 0.7);
  EXPECT_NEAR(Predict(uncounted, 4, compute_, 4).speed[1], 0.7, 1e-9);
  EXPECT_LT(Predict(uncounted, 4, compute_, 4).error, 0.05);
  schedules_.Add(uncounted);
  EXPECT_EQ(Predict(uncounted, 4, compute_, 4).error, 1) << "another kernel has its identifier";
}

// 100 us at half speed, 300 us at a quarter: after 200 us the first is done and 250 us of the
// second are left, which run on with the workers that it has.
TEST(FinishTimes, TheOneThatIsLeftRunsOnAlone) {
  const auto finish =
      FinishTimes({{{100'000, 0, true}, {300'000, 0, true}}}, {0.8, 0.5}, {{0.5, 0.25}, 0.1});
  EXPECT_EQ(finish[0].duration_ns, 200'000);
  EXPECT_EQ(finish[1].duration_ns, 200'000 + 500'000);
  EXPECT_EQ(finish[1].error_ns, 70'000);
}

}  // namespace
}  // namespace gpushare::models
