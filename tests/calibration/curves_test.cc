// What curves of speeds say of a kernel, on curves whose answer is known.

#include "src/calibration/kernel/curves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

namespace gpushare::models {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(FindKneesTest, OnlyWhatStandsOut) {
  EXPECT_THAT(FindKnees({{8, 0.1}, {16, 0.3}, {24, 0.2}, {32, 1}}), ElementsAre(16));
  EXPECT_THAT(FindKnees({{8, 0.1}, {16, 0.2}, {24, 0.3}, {32, 1}}), IsEmpty());
  // One percent of noise is no knee; the first size and the whole device are none.
  EXPECT_THAT(FindKnees({{8, 0.5}, {16, 0.505}, {24, 0.5}, {32, 1}}), IsEmpty());
  EXPECT_THAT(FindKnees({{8, 0.9}, {16, 0.5}, {32, 1}}), IsEmpty());
  EXPECT_THAT(FindKnees({{8, 0.1}, {16, 0.9}, {24, 0.9}, {32, 0.5}, {40, 1}}), ElementsAre(16));
  // The higher of the two sides counts, whichever it is.
  EXPECT_THAT(FindKnees({{8, 0.1}, {16, 0.5}, {24, 0.495}, {32, 1}}), IsEmpty());
  EXPECT_THAT(FindKnees({{8, 0.8}, {16, 0.795}, {24, 0.81}, {32, 0.2}, {40, 1}}), IsEmpty());
  EXPECT_THAT(FindKnees({}), IsEmpty());
}

TEST(FewestWorkersTest, AllLargerNumbersMustBeAsFast) {
  EXPECT_EQ(FewestWorkers({0.25, 0.5, 0.995, 1}, 0.01), 3);
  EXPECT_EQ(FewestWorkers({1, 0.5, 0.995, 1}, 0.01), 3);
  EXPECT_EQ(FewestWorkers({0.5, 0, 0, 1}, 0.01), 4);  // 0: not measured
  EXPECT_EQ(FewestWorkers({1, 0, 0, 1}, 0.01), 1);
  EXPECT_EQ(FewestWorkers({}, 0.01), 0);
}

TEST(IntensityOfTest, AFlatEndIsMemory) {
  int32_t from = -1;
  EXPECT_EQ(IntensityOf({{32, 0.5}, {64, 0.98}, {96, 1}, {132, 1}}, &from), Intensity::kMemory);
  EXPECT_EQ(from, 64);
  EXPECT_EQ(IntensityOf({{32, 0.25}, {64, 0.5}, {112, 0.85}, {132, 1}}, &from),
            Intensity::kCompute);
  EXPECT_EQ(from, 0);
  // A step just below the whole device is no flat end.
  EXPECT_EQ(IntensityOf({{64, 0.5}, {124, 1}, {132, 1}}, &from), Intensity::kCompute);
  // Slower with all SMs than with some (MEASURED: 84 SMs beat 124).
  EXPECT_EQ(IntensityOf({{48, 0.6}, {84, 1.1}, {132, 1}}, &from), Intensity::kMemory);
  EXPECT_EQ(from, 84);
  EXPECT_EQ(IntensityOf({{132, 1}}, &from), Intensity::kUnknown);
  EXPECT_EQ(IntensityOf({}, &from), Intensity::kUnknown);
}

TEST(FitSaturatingOccupancyTest, FindsTheBend) {
  EXPECT_NEAR(FitSaturatingOccupancy({0.25 / 0.6, 0.5 / 0.6, 1, 1}), 0.6, 0.01);
  EXPECT_NEAR(FitSaturatingOccupancy({0.25, 0.5, 0.75, 1}), 1, 0.01);
  EXPECT_NEAR(FitSaturatingOccupancy({1, 1, 1, 1}), 0.25, 0.01);
}

}  // namespace
}  // namespace gpushare::models
