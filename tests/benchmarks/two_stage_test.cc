// The two-stage fit of fused durations: exact on two lines, within its error on noisy ones.

#include "benchmarks/gpu/overlap/two_stage.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace gpushare::benchmarks {
namespace {

// Level up to 0.8, then slope 1, as Tacker's fig. 10 has it.
double Truth(double ratio) { return ratio < 0.8 ? 1.02 + 0.1 * ratio : 0.3 + ratio; }

std::vector<RatioPoint> Points(double noise) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> factor(1 - noise, 1 + noise);
  std::vector<RatioPoint> points;
  for (int i = 1; i <= 20; ++i) points.push_back({0.1 * i, Truth(0.1 * i) * factor(random)});
  return points;
}

TwoStage TrainAtFour(const std::vector<RatioPoint>& points) {
  return FitTwoStage({points[0], points[1]}, {points[17], points[18]});
}

TEST(TwoStageTest, FourPointsOfTwoLinesTellBoth) {
  const std::vector<RatioPoint> points = Points(0);
  const TwoStage model = TrainAtFour(points);
  EXPECT_NEAR(model.inflection, 0.8, 1e-9);
  EXPECT_NEAR(model.before.slope, 0.1, 1e-9);
  EXPECT_NEAR(model.after.slope, 1, 1e-9);
  EXPECT_LT(ErrorOf(model, points).max, 1e-9);
}

TEST(TwoStageTest, AllPointsFindTheSameInflection) {
  const TwoStage model = FitTwoStageToAll(Points(0));
  EXPECT_NEAR(model.inflection, 0.8, 0.1);
  EXPECT_LT(ErrorOf(model, Points(0)).max, 0.01);
}

TEST(TwoStageTest, NoiseOfMediansStaysBelowThePapersEightPercent) {
  // Lines through points 0.1 apart magnify noise tenfold at ratio 1: medians have about 0.3 %.
  const std::vector<RatioPoint> points = Points(0.003);
  EXPECT_LT(ErrorOf(TrainAtFour(points), points).mean, 0.08);
  EXPECT_LT(ErrorOf(FitTwoStageToAll(points), points).mean, 0.02);
  EXPECT_GT(ErrorOf(TrainAtFour(points), points).max, 0);
}

TEST(TwoStageTest, ErrorIsRelative) {
  TwoStage model;
  model.before = {1, 0};
  model.after = {1, 0};
  const FitError error = ErrorOf(model, {{0.1, 2}, {0.2, 1}});
  EXPECT_DOUBLE_EQ(error.mean, 0.25);
  EXPECT_DOUBLE_EQ(error.max, 0.5);
}

TEST(TwoStageTest, InflectionStaysBetweenTheGroups) {
  // Lines that cross far outside, and lines that do not cross.
  EXPECT_DOUBLE_EQ(FitTwoStage({{0.1, 1}, {0.2, 1.1}}, {{1.8, 3}, {1.9, 3.05}}).inflection, 1.8);
  EXPECT_DOUBLE_EQ(FitTwoStage({{0.1, 1}, {0.2, 1}}, {{1.8, 2.8}, {1.9, 2.9}}).inflection, 0.2);
  EXPECT_DOUBLE_EQ(FitTwoStage({{0.1, 1}, {0.2, 1.1}}, {{1.8, 3}, {1.9, 3.1}}).inflection, 1);
}

TEST(TwoStageTest, OnePointIsALevelLine) {
  const Line line = FitLine({{0.5, 3}});
  EXPECT_DOUBLE_EQ(line.slope, 0);
  EXPECT_DOUBLE_EQ(line.At(2), 3);
}

}  // namespace
}  // namespace gpushare::benchmarks
