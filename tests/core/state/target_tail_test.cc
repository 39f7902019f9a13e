// The factor that late queries put on the estimate of a p99.

#include "src/core/state/target_tail.h"

#include <gtest/gtest.h>

namespace gpushare::core {
namespace {

class TargetTailTest : public ::testing::Test {
 protected:
  TargetTailTest() { app.options.promise.target_ns = 1'000; }
  // One late query in `every`.
  void Run(int queries, int every) {
    for (int i = 0; i < queries; ++i) LearnLateness(app, i % every == 0 ? 1'001 : 1'000);
  }
  App app;
};

TEST_F(TargetTailTest, RisesWhileMoreThanTheShareIsLateAndFallsWhileFewerAre) {
  app.target_tail = 1;
  Run(2'000, 50);
  EXPECT_GT(app.target_tail, 2);
  Run(6'000, 250);
  EXPECT_LT(app.target_tail, 1);
}

TEST_F(TargetTailTest, StaysWithinItsBounds) {
  Run(1'000, 1);
  EXPECT_EQ(app.target_tail, kTargetTailMax);
  for (int i = 0; i < 10'000; ++i) LearnLateness(app, 500);
  EXPECT_EQ(app.target_tail, kTargetTailMin);
}

TEST_F(TargetTailTest, IsLeftAloneWhereThereIsNoTarget) {
  app.options.promise.target_ns = 0;
  Run(100, 1);
  EXPECT_EQ(app.target_tail, kTargetTailStart);
}

TEST_F(TargetTailTest, StartsAtAStatedP99AndLearnsThere) {
  app.options.promise.p99_alone_ns = 900;
  app.target_tail = TargetTailAtFirst(app.options.promise);
  EXPECT_EQ(app.target_tail, 1);
  Run(10, 1);
  EXPECT_GT(app.target_tail, 2);
  EXPECT_EQ(TargetTailAtFirst(Promise()), kTargetTailStart);
}

TEST_F(TargetTailTest, ThePeakLoadRisesAtOnceAndFallsSlowly) {
  const TimeNs start_ns = 1'000'000'000;
  const auto second = static_cast<TimeNs>(1e9);
  app.load_weight = 1;
  EXPECT_EQ(PeakLoad(app, 0.2, start_ns), 1) << "nothing is known yet";
  EXPECT_NEAR(PeakLoad(app, 0.2, start_ns + second), 0.6, 0.01);
  EXPECT_EQ(PeakLoad(app, 0.9, start_ns + second + 1), 0.9);
  EXPECT_EQ(PeakLoad(app, 0.1, start_ns + 9 * second), 0.1);
}

// Its first queries, back to back before its traffic begins, look like a load of 1.
TEST_F(TargetTailTest, AYoungEstimateOfTheLoadDoesNotRaiseThePeak) {
  app.options.promise.p99_alone_ns = 900;
  app.peak_load = PeakLoadAtFirst(app.options.promise);
  EXPECT_EQ(app.peak_load, kTargetLoadFloor);
  app.load_weight = kPeakWeightMin / 2;
  EXPECT_EQ(PeakLoad(app, 1, 1'000'000'000), kTargetLoadFloor);
  app.load_weight = 1;
  EXPECT_EQ(PeakLoad(app, 0.7, 1'000'000'001), 0.7);
}

}  // namespace
}  // namespace gpushare::core
