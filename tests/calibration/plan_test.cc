// Shares of the time and orders of measurements.

#include "src/calibration/stages/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <vector>

namespace gpushare::models {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(SecondsOfStageTest, WhatAStageLeavesGoesToThoseBehindIt) {
  const std::array<size_t, kStages> all = {9, 9, 9, 9, 9};
  EXPECT_DOUBLE_EQ(SecondsOfStage(Stage::kKernels, 100, all), 40);
  EXPECT_DOUBLE_EQ(SecondsOfStage(Stage::kRest, 60, all), 15);
  EXPECT_DOUBLE_EQ(SecondsOfStage(Stage::kFused, 15, all), 15);
  // Stages without work have no share, and neither have those that are over.
  EXPECT_DOUBLE_EQ(SecondsOfStage(Stage::kKernels, 100, {9, 0, 0, 0, 0}), 100);
  EXPECT_DOUBLE_EQ(SecondsOfStage(Stage::kRest, 30, {9, 9, 0, 9, 0}), 15);
  EXPECT_DOUBLE_EQ(SecondsOfStage(Stage::kRest, -1, all), 0);
}

TEST(ByValueTest, UnlikeKernelsComeFirstAndEveryKernelHasAPartnerBeforeAnyHasTwo) {
  const std::vector<ItemPair> pairs = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}};
  EXPECT_THAT(PairsByValue(pairs, std::vector<Intensity>(4, Intensity::kUnknown)),
              ElementsAre(0, 3, 5, 1, 4, 2));
  EXPECT_THAT(PairsByValue(pairs, {Intensity::kCompute, Intensity::kCompute, Intensity::kCompute,
                                   Intensity::kMemory}),
              ElementsAre(5, 4, 2, 0, 3, 1));
  EXPECT_THAT(PairsByValue({}, {}), IsEmpty());
  // Queries, parts of fused kernels, others.
  EXPECT_THAT(KernelsByValue({0, 0, 1, 0, 1}, {{3, 1}}), ElementsAre(2, 4, 1, 3, 0));
  // Spills take no time; then the first variant of each pair.
  EXPECT_THAT(FusedByValue({{0, 1}, {0, 1}, {0, 2}, {0, 2}, {0, 1}}, {0, 0, 0, 1, 0}),
              ElementsAre(3, 0, 2, 1, 4));
}

}  // namespace
}  // namespace gpushare::models
