// Where two lines of fused durations cross, on points whose answer is known.

#include "src/calibration/fused.h"

#include <gtest/gtest.h>

#include <vector>

namespace gpushare::models {
namespace {

TEST(CrossingOfTest, FindsTheInflection) {
  // 1 + 0.5 r up to 0.8, then 1.4 + r - 0.8.
  const std::vector<FusedPoint> points = {{0.1, 1.05}, {0.2, 1.1}, {1.8, 2.4}, {1.9, 2.5}};
  EXPECT_NEAR(CrossingOf(points), 0.8, 1e-9);
  EXPECT_NEAR(CrossingOf({{0.1, 1.1}, {0.2, 1.2}, {1.8, 2.8}, {1.9, 2.9}}), 1, 1e-9);  // one line
  EXPECT_NEAR(CrossingOf({{0.1, 1}, {0.2, 1}, {1.8, 9}, {1.9, 9.1}}), 0.2, 1e-9);      // outside
}

// A hardened library stops a clamp between bounds that are the wrong way round.
TEST(CrossingOfTest, LoadsTheWrongWayRoundHaveTheirMean) {
  const std::vector<FusedPoint> points = {{0.1, 1.0}, {1.9, 1.1}, {1.7, 2.0}, {1.8, 3.0}};
  EXPECT_DOUBLE_EQ(CrossingOf(points), 1.8);
}

}  // namespace
}  // namespace gpushare::models
