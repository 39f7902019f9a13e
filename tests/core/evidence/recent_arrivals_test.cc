// The highest rate that the last few arrivals allow for.

#include "src/core/evidence/recent_arrivals.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "src/core/base/random.h"

namespace gpushare::core {
namespace {

constexpr int64_t kMs = 1'000'000;

class RecentArrivalsTest : public ::testing::Test {
 protected:
  void Arrive(int count, int64_t gap_ns) {
    for (int i = 0; i < count; ++i) arrivals.Add(now_ns += gap_ns);
  }
  double PerMs() const { return arrivals.RateAtMost(now_ns) * kMs; }

  RecentArrivals arrivals;
  TimeNs now_ns = 0;
};

TEST_F(RecentArrivalsTest, NothingIsKnownOfTheFirstFew) {
  EXPECT_EQ(PerMs(), 0) << "an app that sends nothing is no load";
  Arrive(kSamples - 1, kMs);
  EXPECT_EQ(PerMs(), std::numeric_limits<double>::infinity());
  Arrive(1, kMs);
  EXPECT_LT(PerMs(), 4);
}

TEST_F(RecentArrivalsTest, AFewOfLongAgoAreNoLoad) {
  Arrive(3, kMs);
  now_ns += static_cast<int64_t>(kLoadForgottenNs) + 1;
  EXPECT_EQ(PerMs(), 0);
}

TEST_F(RecentArrivalsTest, ALullBeginsAfterAllOfThemAndEndsAfterFour) {
  Arrive(100, kMs);
  const double loaded = PerMs();
  EXPECT_GE(loaded, 1);
  Arrive(kSamples / 4, 20 * kMs);
  EXPECT_GT(PerMs(), 0.2) << "most of them came before";
  Arrive(kSamples, 20 * kMs);
  EXPECT_LT(PerMs(), loaded / 10);
  Arrive(kSamples / 4 + 1, kMs);
  EXPECT_GE(PerMs(), 1);
}

TEST_F(RecentArrivalsTest, TheTimeSinceTheLastOneCounts) {
  Arrive(100, kMs);
  now_ns += 1'000 * kMs;
  EXPECT_LT(PerMs(), 0.03);
}

// Two standard errors: a rate that is too low is seen in few windows.
TEST_F(RecentArrivalsTest, OfRandomArrivalsTheTrueRateIsSeldomHigher) {
  Random random(1);
  int above = 0;
  constexpr int kWindows = 10'000;
  for (int i = 0; i < kWindows; ++i) {
    Arrive(1, static_cast<int64_t>(-std::log(1 - random.Uniform()) * kMs));
    above += i >= kSamples && PerMs() < 1 ? 1 : 0;
  }
  EXPECT_LT(above, kWindows / 50);
}

}  // namespace
}  // namespace gpushare::core
