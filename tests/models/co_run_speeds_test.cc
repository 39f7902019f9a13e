// Runs of co-schedules: they correct a prediction by their number and spread, follow changes, and
// stay within their bounds.

#include "src/models/pairs/co_run_speeds.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

namespace gpushare::models {
namespace {

constexpr CoRunPair kPair = {1, 2};
constexpr UncertainSpeed kPredicted = {0.5, 0.11};

UncertainSpeed After(const CoRunSpeeds& runs) {
  const CoRunMean* const mean = runs.Find(kPair, 3, 5);
  return mean == nullptr ? kPredicted : Combine(kPredicted, *mean);
}

TEST(CoRunSpeeds, EachRunMovesThePredictionAndItsErrorBarShrinks) {
  CoRunSpeeds runs;
  UncertainSpeed last = After(runs);
  for (int i = 0; i < 16; ++i) {
    runs.Observe(kPair, 3, 5, i % 2 == 0 ? 0.59 : 0.61);
    const UncertainSpeed now = After(runs);
    EXPECT_LE(now.error, last.error) << i;
    EXPECT_LT(now.error, i == 0 ? 0.04 : 0.03) << i;
    last = now;
  }
  EXPECT_NEAR(last.speed, 0.6, 0.006);
}

TEST(CoRunSpeeds, RunsThatScatterCountLess) {
  CoRunSpeeds even;
  CoRunSpeeds uneven;
  for (int i = 0; i < 16; ++i) {
    even.Observe(kPair, 3, 5, 0.6);
    uneven.Observe(kPair, 3, 5, i % 2 == 0 ? 0.5 : 0.7);
  }
  EXPECT_LT(After(even).error, After(uneven).error);
  EXPECT_GT(After(even).speed, After(uneven).speed);
}

// A profile of another GPU: the first runs outweigh what it measured.
TEST(CoRunSpeeds, APredictionThatRunsContradictCountsNoMore) {
  CoRunMean runs = {3, 0.3, 0};
  EXPECT_DOUBLE_EQ(Combine({0.6, 0.03}, runs).speed, 0.3);
  EXPECT_GT(Combine({0.33, 0.03}, runs).speed, 0.301) << "within the error bars";
  runs.samples = 2;
  EXPECT_GT(Combine({0.6, 0.03}, runs).speed, 0.35) << "two runs may be chance";
}

TEST(CoRunSpeeds, WithoutAPredictionFourRunsTell) {
  CoRunMean runs = {3, 0.3, 0};
  EXPECT_EQ(Combine({}, runs).error, 1);
  runs.samples = 4;
  EXPECT_DOUBLE_EQ(Combine({}, runs).speed, 0.3);
  EXPECT_LT(Combine({}, runs).error, 0.03);
}

// Tacker refits at 10 %.
TEST(CoRunSpeeds, ThreeRunsATenthOffBeginTheMeanAnew) {
  CoRunSpeeds runs;
  for (int i = 0; i < 64; ++i) runs.Observe(kPair, 3, 5, 0.6);
  runs.Observe(kPair, 3, 5, 0.4);
  runs.Observe(kPair, 3, 5, 0.8);
  runs.Observe(kPair, 3, 5, 0.4);
  EXPECT_NEAR(runs.Find(kPair, 3, 5)->speed, 0.6, 0.02) << "not in a row";
  runs.Observe(kPair, 3, 5, 0.4);
  EXPECT_TRUE(runs.Observe(kPair, 3, 5, 0.4));
  EXPECT_NEAR(runs.Find(kPair, 3, 5)->speed, 0.4, 1e-9);
  EXPECT_EQ(runs.Find(kPair, 3, 5)->samples, 3);
}

TEST(CoRunSpeeds, AChangeIsAnnouncedOnceAndSoIsASmallerErrorBar) {
  CoRunSpeeds runs;
  int announced = 0;
  for (int i = 0; i < 1000; ++i) announced += runs.Observe(kPair, 3, 5, 0.6) ? 1 : 0;
  EXPECT_EQ(announced, 7) << "1, 2, 4, ... 64 runs";
  for (int i = 0; i < 64; ++i) announced += runs.Observe(kPair, 3, 5, 0.63) ? 1 : 0;
  EXPECT_GT(announced, 7);
  EXPECT_LT(announced, 12);
}

TEST(CoRunSpeeds, ImpossibleSpeedsAreBounded) {
  CoRunSpeeds runs;
  EXPECT_FALSE(runs.Observe(kPair, 3, 5, std::nan("")));
  EXPECT_FALSE(runs.Observe(kPair, 3, 5, -1));
  EXPECT_TRUE(runs.empty());
  runs.Observe(kPair, 3, 5, 7);
  EXPECT_EQ(runs.Find(kPair, 3, 5)->speed, 1);
}

TEST(CoRunSpeeds, TheClosestWorkersStandForOthers) {
  CoRunSpeeds runs;
  for (int i = 0; i < 4; ++i) runs.Observe(kPair, 2, 6, 0.4);
  for (int i = 0; i < 4; ++i) runs.Observe(kPair, 6, 2, 0.9);
  runs.Observe(kPair, 4, 4, 0.7);
  EXPECT_EQ(runs.Nearest(kPair, 3, 5)->workers, 2) << "one run is no evidence for others";
  EXPECT_EQ(runs.Nearest(kPair, 5, 3)->workers, 6);
  EXPECT_EQ(runs.Nearest({2, 1}, 3, 5), nullptr) << "the other direction";
}

TEST(CoRunSpeeds, TheOldestMakesRoom) {
  CoRunSpeeds runs;
  const auto most = static_cast<uint32_t>(CoRunSpeeds::kPairsMax);
  for (uint32_t i = 1; i <= most; ++i) runs.Observe({i, 9999}, 3, 5, 0.6);
  runs.Observe({1, 9999}, 3, 5, 0.6);
  runs.Observe({7777, 9999}, 3, 5, 0.6);
  EXPECT_NE(runs.Find({1, 9999}, 3, 5), nullptr);
  EXPECT_EQ(runs.Find({2, 9999}, 3, 5), nullptr);
  EXPECT_NE(runs.Find({3, 9999}, 3, 5), nullptr);
  EXPECT_NE(runs.Find({7777, 9999}, 3, 5), nullptr);
  for (int32_t workers = 1; workers <= 5; ++workers) runs.Observe({3, 9999}, workers, 1, 0.6);
  EXPECT_EQ(runs.Find({3, 9999}, 3, 5), nullptr);
  EXPECT_EQ(runs.Find({3, 9999}, 1, 1), nullptr);
  EXPECT_NE(runs.Find({3, 9999}, 2, 1), nullptr);
  runs.Forget(3);
  EXPECT_EQ(runs.Find({3, 9999}, 2, 1), nullptr);
}

TEST(CoRunSpeeds, RestoredRunsGoOn) {
  CoRunSpeeds runs;
  runs.Restore(kPair, {3, 5, {64, 0.6, 1e-4}});
  EXPECT_FALSE(runs.Observe(kPair, 3, 5, 0.6));
  EXPECT_EQ(runs.Find(kPair, 3, 5)->samples, 65);
}

TEST(CoRunSpeeds, AllNumbersOfWorkersOfAPairAreRestored) {
  CoRunSpeeds runs;
  const auto most = static_cast<int32_t>(CoRunSpeeds::kPointsMax);
  for (int32_t workers = 1; workers <= most; ++workers) {
    runs.Observe(kPair, workers, 8 - workers, 0.1 * workers);
  }
  CoRunSpeeds restored;
  runs.ForEach(
      [&](const CoRunPair& pair, const CoRunPoint& point) { restored.Restore(pair, point); });
  for (int32_t workers = 1; workers <= most; ++workers) {
    const CoRunMean* const mean = restored.Find(kPair, workers, 8 - workers);
    ASSERT_NE(mean, nullptr) << workers;
    EXPECT_DOUBLE_EQ(mean->speed, 0.1 * workers);
  }
}

}  // namespace
}  // namespace gpushare::models
