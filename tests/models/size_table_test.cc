// What a prior is off by, over sizes.

#include "src/models/durations/size_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace gpushare::models {
namespace {

TEST(SizeTable, NothingIsOffAtFirst) { EXPECT_EQ(SizeTable().RatioAt(100), 1); }

TEST(SizeTable, SizesBetweenTwoLieOnTheirLineInLogarithms) {
  SizeTable table;
  table.Observe(1 << 20, 1);
  table.Observe(1 << 24, 4);
  EXPECT_NEAR(table.RatioAt(1 << 22), 2, 1e-6);
  EXPECT_NEAR(table.RatioAt(1 << 20), 1, 1e-6);
}

TEST(SizeTable, BeyondTheLastSizeTheRatioStays) {
  SizeTable table;
  table.Observe(1 << 10, 0.5);
  table.Observe(1 << 20, 3);
  EXPECT_NEAR(table.RatioAt(1 << 28), 3, 1e-6);
  EXPECT_NEAR(table.RatioAt(16), 0.5, 1e-6);
}

TEST(SizeTable, SizesAnEighthApartAreTwo) {
  SizeTable table;
  for (int i = 0; i < 8; ++i) {
    table.Observe(112, 1);
    table.Observe(128, 2);
  }
  EXPECT_NEAR(table.RatioAt(112), 1, 1e-6);
  EXPECT_NEAR(table.RatioAt(128), 2, 1e-6);
}

TEST(SizeTable, OneLateSampleOfManyMovesLittle) {
  SizeTable table;
  for (int i = 0; i < 60; ++i) table.Observe(4096, i % 2 == 0 ? 0.98 : 1.02);
  table.Observe(4096, 2);
  EXPECT_LT(table.RatioAt(4096), 1.03);
}

TEST(SizeTable, MoreSizesThanItHoldsJoinTheNearest) {
  SizeTable table;
  for (int i = 0; i < 400; ++i) table.Observe(std::exp2(0.1 * i), std::exp2(0.05 * i));
  EXPECT_EQ(table.points().size(), SizeTable::kPointsMax);
  EXPECT_NEAR(table.RatioAt(std::exp2(5.05)), std::exp2(2.525), 1e-3);
  double last = 0;
  for (const SizeTable::Point& point : table.points()) {
    EXPECT_GT(point.size, last);
    last = point.size;
  }
  SizeTable again;
  again.Restore(table.points());
  for (double size = 1; size < 1e12; size *= 3) {
    EXPECT_NEAR(again.RatioAt(size) / table.RatioAt(size), 1, 1e-9);
  }
}

TEST(SizeTable, KnowsWhatIsWithinAQuarterOctave) {
  SizeTable table;
  EXPECT_FALSE(table.Knows(1000));
  table.Observe(1000, 1);
  EXPECT_TRUE(table.Knows(1180));
  EXPECT_FALSE(table.Knows(1200));
}

TEST(SizeTable, FollowsADriftWithinTwentySamples) {
  SizeTable table;
  for (int i = 0; i < 1000; ++i) table.Observe(4096, 1);
  for (int i = 0; i < 20; ++i) table.Observe(4096, 2);
  EXPECT_GT(table.RatioAt(4096), 1.6);
}

TEST(SizeTable, WhatIsNoNumberIsIgnored) {
  SizeTable table;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinite = std::numeric_limits<double>::infinity();
  table.Observe(nan, 3);
  table.Observe(1, nan);
  table.Observe(infinite, 3);
  table.Observe(1, 0);
  table.Observe(0, 3);
  EXPECT_EQ(table.RatioAt(1), 1);
  EXPECT_EQ(table.RatioAt(nan), 1);
}

// Through the ends and what lies an octave inside, between a constant and a square.
TEST(SizeTable, ATrendGoesOnBeyondTheLastSizes) {
  SizeTable table;
  for (double size = 100; size <= 6400; size *= 2) table.Observe(size, size * 1e-3);
  EXPECT_NEAR(table.TrendAt(12800), 12.8, 1e-6);
  EXPECT_NEAR(table.TrendAt(50), 0.05, 1e-9);
  EXPECT_EQ(table.TrendAt(777), table.RatioAt(777));
  SizeTable falling;
  for (double size = 100; size <= 6400; size *= 2) falling.Observe(size, 1 / size);
  EXPECT_NEAR(falling.TrendAt(12800), 1 / 6400.0, 1e-9);
  SizeTable steep;
  for (double size = 100; size <= 6400; size *= 2) steep.Observe(size, std::pow(size, 5) * 1e-9);
  EXPECT_NEAR(steep.TrendAt(12800) / steep.TrendAt(6400), 4, 1e-6);
  EXPECT_EQ(SizeTable().TrendAt(100), 1);
  SizeTable one;
  one.Observe(100, 3);
  EXPECT_EQ(one.TrendAt(1000), 3);
}

}  // namespace
}  // namespace gpushare::models
