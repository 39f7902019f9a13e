// Sums and differences of times that saturate, and kNever that stays.

#include "src/core/base/saturating.h"

#include <gtest/gtest.h>

#include <limits>

namespace gpushare::core {
namespace {

TEST(Saturating, NeverWrapsAndKeepsNever) {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(SaturatingSubtract(kMin + 1, 5), kMin);
  EXPECT_EQ(SaturatingSubtract(5, kMin), kNever - 1) << "a number does not become 'no bound'";
  EXPECT_EQ(SaturatingSubtract(kNever - 1, -1), kNever - 1);
  EXPECT_EQ(SaturatingSubtract(kNever, kNever), kNever);
  EXPECT_EQ(SaturatingAdd(kNever, -5), kNever);
  EXPECT_EQ(SaturatingAdd(kNever - 1, 2), kNever);
  EXPECT_EQ(SaturatingAdd(kMin, -1), kMin);
  EXPECT_EQ(SaturatingAdd(-3, 5), 2);
}

}  // namespace
}  // namespace gpushare::core
