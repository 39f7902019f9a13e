// The factor that late queries put on the estimate of a p99.

#include "src/core/evidence/target_tail.h"

#include <gtest/gtest.h>

namespace gpushare::core {
namespace {

class TargetTailTest : public ::testing::Test {
 protected:
  // One late query in `every`.
  void Run(int queries, int every) {
    for (int i = 0; i < queries; ++i) LearnLateness(tail, promise, i % every == 0 ? 1'001 : 1'000);
  }
  Promise promise{.target_ns = 1'000};
  TargetTail tail;
};

TEST_F(TargetTailTest, RisesWhileMoreThanTheShareIsLateAndFallsWhileFewerAre) {
  tail.factor = 1;
  Run(2'000, 50);
  EXPECT_GT(tail.factor, 2);
  Run(6'000, 250);
  EXPECT_LT(tail.factor, 1);
}

TEST_F(TargetTailTest, StaysWithinItsBounds) {
  Run(1'000, 1);
  EXPECT_EQ(tail.factor, kTargetTailMax);
  for (int i = 0; i < 10'000; ++i) LearnLateness(tail, promise, 500);
  EXPECT_EQ(tail.factor, kTargetTailMin);
}

TEST_F(TargetTailTest, IsLeftAloneWhereThereIsNoTarget) {
  promise.target_ns = 0;
  Run(100, 1);
  EXPECT_EQ(tail.factor, kTargetTailStart);
}

TEST_F(TargetTailTest, StartsAtAStatedP99AndLearnsThere) {
  tail = TargetTailAtFirst({.p99_alone_ns = 900});
  EXPECT_EQ(tail.factor, 1);
  Run(10, 1);
  EXPECT_GT(tail.factor, 2);
  EXPECT_EQ(TargetTailAtFirst(Promise()).factor, kTargetTailStart);
}

TEST_F(TargetTailTest, ThePeakLoadRisesAtOnceAndFallsSlowly) {
  const TimeNs start_ns = 1'000'000'000;
  const auto second = static_cast<TimeNs>(1e9);
  EXPECT_EQ(PeakLoad(tail, 0.2, 1, start_ns), 1) << "nothing is known yet";
  const auto half_forgotten = static_cast<TimeNs>(kLoadForgottenNs / 2);
  EXPECT_NEAR(PeakLoad(tail, 0.2, 1, start_ns + half_forgotten), 0.6, 0.01);
  EXPECT_EQ(PeakLoad(tail, 0.9, 1, start_ns + half_forgotten + 1), 0.9);
  EXPECT_EQ(PeakLoad(tail, 0.1, 1, start_ns + 9 * second), 0.1);
}

// Its first queries, back to back before its traffic begins, look like a load of 1.
TEST_F(TargetTailTest, AYoungEstimateOfTheLoadDoesNotRaiseThePeak) {
  tail = TargetTailAtFirst({.p99_alone_ns = 900});
  EXPECT_EQ(tail.peak_load, kTargetLoadFloor);
  EXPECT_EQ(PeakLoad(tail, 1, kPeakWeightMin / 2, 1'000'000'000), kTargetLoadFloor);
  EXPECT_EQ(PeakLoad(tail, 0.7, 1, 1'000'000'001), 0.7);
}

}  // namespace
}  // namespace gpushare::core
