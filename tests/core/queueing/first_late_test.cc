// Late queries behind a silence, against drawn waits.

#include "src/core/queueing/first_late.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "src/core/base/types.h"

namespace gpushare::core {
namespace {

constexpr int64_t kUs = 1'000;
constexpr int64_t kBudgetNs = 100 * kUs;
constexpr int64_t kLateNs = 500 * kUs;

// A query with a wait is late with the chance that the share says.
double Drawn(int64_t fixed_ns, int64_t uniform_ns) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> rest(0, static_cast<double>(uniform_ns));
  double late = 0;
  constexpr int kDraws = 200'000;
  for (int i = 0; i < kDraws; ++i) {
    const double beyond_ns = static_cast<double>(fixed_ns - kBudgetNs) + rest(random);
    late += std::clamp(beyond_ns / static_cast<double>(2 * (kLateNs - kBudgetNs)), 0.0, 1.0);
  }
  return late / kDraws;
}

TEST(FirstLate, IsTheMeanOverAUniformRest) {
  for (const int64_t fixed_ns : {int64_t{0}, 50 * kUs, 400 * kUs, 2000 * kUs}) {
    for (const int64_t uniform_ns : {50 * kUs, 300 * kUs, 900 * kUs, 5000 * kUs}) {
      EXPECT_NEAR(LateOfFirst(fixed_ns, uniform_ns, kBudgetNs, kLateNs),
                  Drawn(fixed_ns, uniform_ns), 0.003)
          << fixed_ns << ", " << uniform_ns;
    }
  }
  EXPECT_EQ(LateOfFirst(kLateNs, 0, kBudgetNs, kLateNs), 0.5);
}

TEST(FirstLate, TheLongestKeepsItsShare) {
  for (const double late_max : {0.01, 0.05, 0.1}) {
    const int64_t longest_ns = LongestOfFirst(late_max, kBudgetNs, kLateNs);
    EXPECT_GT(longest_ns, kBudgetNs);
    EXPECT_LT(longest_ns, kLateNs);
    EXPECT_NEAR(LateOfFirst(0, longest_ns, kBudgetNs, kLateNs), late_max, 1e-4);
  }
  EXPECT_EQ(LongestOfFirst(0.9, kBudgetNs, kLateNs), kLateNs);
}

TEST(FirstLate, IsTheBudgetWhereNothingMayBeLateOrNothingIsKnown) {
  EXPECT_EQ(LongestOfFirst(0, kBudgetNs, kLateNs), kBudgetNs);
  EXPECT_EQ(LongestOfFirst(0.5, kBudgetNs, kNever), kBudgetNs);
  EXPECT_EQ(LongestOfFirst(0.5, kLateNs, kLateNs), kLateNs);
}

}  // namespace
}  // namespace gpushare::core
