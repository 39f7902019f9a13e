// How often pauses end, by their age: src/core/evidence/pause_ages.h.

#include "src/core/evidence/pause_ages.h"

#include <random>

#include "gtest/gtest.h"

namespace gpushare::core {
namespace {

constexpr double kS = 1e9;

TEST(PauseAges, EachAgeIsInOneRange) {
  for (int r = 0; r < PauseAges::kRanges; ++r) {
    EXPECT_EQ(PauseAges::RangeOf(PauseAges::Begin(r)), r);
    EXPECT_EQ(PauseAges::RangeOf(PauseAges::End(r) / 1.001), r);
  }
}

TEST(PauseAges, PausesOfTheSameLengthEndInOneRange) {
  PauseAges ages;
  for (int p = 0; p < 100; ++p) ages.Add(21 * kS);
  const int end = PauseAges::RangeOf(21 * kS);
  for (int r = 0; r < end; ++r) EXPECT_LT(ages.Rate(r), 1 / (21 * kS) / 8) << r;
  EXPECT_GT(ages.Rate(end), 1 / (21 * kS) * 10);
}

TEST(PauseAges, RandomPausesEndEquallyOftenAtEachAge) {
  PauseAges ages;
  std::mt19937_64 random(3);
  std::exponential_distribution<double> pause_ns(1 / (20 * kS));
  for (int p = 0; p < 10'000; ++p) ages.Add(pause_ns(random));
  for (int r = 0; r < PauseAges::RangeOf(40 * kS); ++r) {
    EXPECT_NEAR(ages.Rate(r) * 20 * kS, 1, 0.5) << r;
  }
}

TEST(PauseAges, OldPausesFade) {
  PauseAges ages;
  for (int p = 0; p < 10'000; ++p) ages.Add(21 * kS);
  for (int64_t p = 0; p < kTailGaps; ++p) ages.Add(6 * kS);
  EXPECT_GT(ages.Rate(PauseAges::RangeOf(6 * kS)), 1 / (6 * kS));
}

TEST(PauseAges, OfAnAgeThatNonePassedLittleIsKnown) {
  const PauseAges ages;
  for (int r = 0; r < PauseAges::kRanges; ++r) EXPECT_EQ(ages.Rate(r), 1 / PauseAges::Begin(r));
}

}  // namespace
}  // namespace gpushare::core
