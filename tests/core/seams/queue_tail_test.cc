// The table of M/D/1 tails against the equation it comes from, and the budget of a bare target.

#include "src/core/seams/queue_tail.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/core/md1_queue.h"

namespace gpushare::core {
namespace {

// p99 / S from the root.
double ByEquation(double load) {
  const double x = TailRateOverService(load);
  const double share = (1 - load) / (load * std::exp(x) - 1);
  return 1 + std::log(100 * share) / x;
}

TEST(QueueTail, TheTableIsTheEquations) {
  EXPECT_EQ(P99OverService(0), 1);
  for (int i = 1; i < 64; ++i) {
    EXPECT_NEAR(P99OverService(i / 64.0), ByEquation(i / 64.0), 0.001) << i;
  }
}

TEST(QueueTail, TheTableOfRatesIsTheEquations) {
  constexpr double kServiceNs = 1e6;
  const int entries = static_cast<int>(kTailRateOverService.size());
  for (int i = kTailRateFirst; i < kTailRateFirst + entries; ++i) {
    const double rate = PoissonTailRate(i / 32.0, kServiceNs) * kServiceNs;
    EXPECT_NEAR(rate, TailRateOverService(i / 32.0), 0.001) << i;
    EXPECT_EQ(PoissonTailRate((i + 0.9) / 32, kServiceNs) * kServiceNs, rate) << "rounded down";
  }
  EXPECT_EQ(PoissonTailRate(0.09, kServiceNs), 0) << "hardly a query waits";
  EXPECT_EQ(PoissonTailRate(0.5, 0), 0) << "nothing is known of the queries";
  EXPECT_GT(PoissonTailRate(7, kServiceNs), 0);
}

TEST(QueueTail, IsInterpolatedAndEndsWithTheTable) {
  EXPECT_NEAR(P99OverService(0.3), 2.907, 0.005);
  EXPECT_EQ(P99OverService(-1), 1);
  EXPECT_EQ(P99OverService(5), P99OverService(63.0 / 64));
  for (double load = 0; load < 0.98; load += 0.001) {
    EXPECT_LT(P99OverService(load), P99OverService(load + 0.001));
  }
}

// Chain1 of the H200 at load 0.3: p99 alone was 1.88 ms.
TEST(QueueTail, EstimatesP99AloneOfAServiceFromItsLoad) {
  EXPECT_NEAR(QueueP99(667e3, 667e3, 0.3), 1.88e6, 0.08e6);
}

TEST(StatedTail, TheTailOfTheQueueCountsWhereItIsLonger) {
  const StatedTail stated{1'600'000, 2'200'000};
  EXPECT_DOUBLE_EQ(stated.P99(1, 2'200'000, 1), 2'200'000);
  EXPECT_DOUBLE_EQ(stated.P99(2, 3'000'000, 1), 3'200'000);
  EXPECT_DOUBLE_EQ(stated.P99(1, 2'200'000, 0.5), 1'600'000) << "queries on time";
  EXPECT_DOUBLE_EQ(stated.P99(1, 2'200'000, 2), 4'400'000) << "late queries";
}

TEST(StatedTail, LateQueriesRaiseAStatedP99OfBurstsToo) {
  const StatedTail stated{6'000'000, 2'200'000};
  EXPECT_DOUBLE_EQ(stated.P99(1, 2'200'000, 1.5), 9'000'000);
  EXPECT_DOUBLE_EQ(stated.P99(1, 2'200'000, 0.5), 6'000'000);
}

TEST(StatedTail, RegularArrivalsAreNoSuchQueue) {
  const StatedTail stated{500'000, 2'200'000};
  EXPECT_DOUBLE_EQ(stated.P99(1.2, 3'000'000, 1), 600'000);
}

TEST(TargetBudget, IsWhatTheTargetLeavesBeyondTheTail) {
  EXPECT_EQ(TargetBudget(10'000'000, 2'000'000, 1), 8'000'000);
  EXPECT_EQ(TargetBudget(10'000'000, 2'000'000, 4), 2'000'000);
}

TEST(TargetBudget, KeepsAFloorForEvictableWorkWhereTheTargetIsLost) {
  EXPECT_NEAR(static_cast<double>(TargetBudget(1'000'000, 2'000'000, 1)), 100e3, 1);
  EXPECT_NEAR(static_cast<double>(TargetBudget(2'000'000, 0, 0.5)), 100e3, 1)
      << "nothing is known of its queries";
}

}  // namespace
}  // namespace gpushare::core
