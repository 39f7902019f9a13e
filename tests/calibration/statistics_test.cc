// Ratios and expected values of known values.

#include "src/calibration/base/statistics.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace gpushare::models {
namespace {

TEST(SetMeasuredTest, BelowANanosecondNothingWasMeasured) {
  int64_t field = 7;
  SetMeasured(0.9, field);
  EXPECT_EQ(field, 7);
  SetMeasured(1.5, field);
  EXPECT_EQ(field, 2);
}

TEST(RatioTest, WithoutAMeasuredDivisorItIsNothing) {
  EXPECT_EQ(Ratio(3, 2), 1.5);
  EXPECT_EQ(Ratio(3, 0), 0);
  EXPECT_EQ(Ratio(3, -2), 0);
}

TEST(ExpectedMaximumTest, GrowsWithTheDrawsFromOneUpwards) {
  // Exact values of the expected maximum: 2.508 of 100 draws, 3.241 of 1000.
  EXPECT_NEAR(ExpectedMaximum(100), 2.508, 0.15);
  EXPECT_NEAR(ExpectedMaximum(1000), 3.241, 0.15);
  // The formula is for many draws: of few it has no logarithm, or a value below 1.
  EXPECT_EQ(ExpectedMaximum(0), 1);
  EXPECT_EQ(ExpectedMaximum(1), 1);
  EXPECT_EQ(ExpectedMaximum(3), 1);
}

}  // namespace
}  // namespace gpushare::models
