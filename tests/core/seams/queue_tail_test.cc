// The table of M/D/1 tails against the equation it comes from, and the budget of a bare target.

#include "src/core/seams/queue_tail.h"

#include <gtest/gtest.h>

#include <cmath>

namespace gpushare::core {
namespace {

// p99 / S by bisection for x = eta S: rho (exp(x) - 1) = x.
double ByEquation(double load) {
  double low = 1e-9;
  double high = 100;
  for (int i = 0; i < 200; ++i) {
    const double x = (low + high) / 2;
    (load * std::expm1(x) < x ? low : high) = x;
  }
  const double share = (1 - load) / (load * std::exp(low) - 1);
  return 1 + std::log(100 * share) / low;
}

TEST(QueueTail, TheTableIsTheEquations) {
  EXPECT_EQ(P99OverService(0), 1);
  for (int i = 1; i < 64; ++i) {
    EXPECT_NEAR(P99OverService(i / 64.0), ByEquation(i / 64.0), 0.001) << i;
  }
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

TEST(BareTargetBudget, IsWhatTheTargetLeavesBeyondTheTail) {
  EXPECT_EQ(BareTargetBudget(10'000'000, 2'000'000, 1), 8'000'000);
  EXPECT_EQ(BareTargetBudget(10'000'000, 2'000'000, 4), 2'000'000);
}

TEST(BareTargetBudget, KeepsAFloorForEvictableWorkWhereTheTargetIsLost) {
  EXPECT_NEAR(static_cast<double>(BareTargetBudget(1'000'000, 2'000'000, 1)), 100e3, 1);
  EXPECT_NEAR(static_cast<double>(BareTargetBudget(2'000'000, 0, 0.5)), 100e3, 1)
      << "nothing is known of its queries";
}

}  // namespace
}  // namespace gpushare::core
