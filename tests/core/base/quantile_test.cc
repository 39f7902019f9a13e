// Quantiles of known values.

#include "src/core/base/quantile.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace gpushare::core {
namespace {

TEST(QuantileTest, IsTheSmallestValueThatTheShareDoesNotExceed) {
  const std::vector<double> values = {3, 1, 2, 4};
  EXPECT_EQ(Quantile(std::vector<double>(), 0.99), 0);
  EXPECT_EQ(Quantile(values, 0.5), 2);
  EXPECT_EQ(Quantile(values, 0.51), 3);
  EXPECT_EQ(Quantile(values, 0), 1);
  EXPECT_EQ(Quantile(values, 1), 4);
  EXPECT_EQ(Quantile(std::vector<int64_t>{7}, 0.99), 7);
}

TEST(QuantileTest, SortedAtSelectsByIndex) {
  const std::vector<int64_t> values = {30, 10, 20, 10};
  EXPECT_EQ(SortedAt(values, 0), 10);
  EXPECT_EQ(SortedAt(values, 1), 10);
  EXPECT_EQ(SortedAt(values, 2), 20);
  EXPECT_EQ(SortedAt(values, 3), 30);
}

}  // namespace
}  // namespace gpushare::core
