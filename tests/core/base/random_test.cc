// The sequence of a seed, and the ranges of the draws.

#include "src/core/base/random.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace gpushare::core {
namespace {

// The first outputs of Vigna's splitmix64.c for this seed. Recorded runs replay only with them.
TEST(RandomTest, IsSplitMix64) {
  Random random(1234567);
  for (const uint64_t expected :
       {6457827717110365317U, 3203168211198807973U, 9817491932198370423U}) {
    EXPECT_EQ(random.Next(), expected);
  }
}

TEST(RandomTest, DrawsAreInTheirRangesAndHaveTheirMeans) {
  Random random(1);
  double uniform = 0;
  double between = 0;
  double exponential = 0;
  constexpr int kDraws = 100'000;
  for (int i = 0; i < kDraws; ++i) {
    const double draw = random.Uniform();
    ASSERT_GE(draw, 0);
    ASSERT_LT(draw, 1);
    uniform += draw;
    const double ranged = random.Uniform(-3, 5);
    ASSERT_GE(ranged, -3);
    ASSERT_LT(ranged, 5);
    between += ranged;
    const double waited = random.Exponential(20);
    ASSERT_GE(waited, 0);
    exponential += waited;
  }
  EXPECT_NEAR(uniform / kDraws, 0.5, 0.005);
  EXPECT_NEAR(between / kDraws, 1, 0.04);
  EXPECT_NEAR(exponential / kDraws, 20, 0.3);
}

}  // namespace
}  // namespace gpushare::core
