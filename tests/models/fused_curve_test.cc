// Curves of fused durations, on points whose answer is known.

#include "src/models/fused/fused_curve.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <vector>

#include "src/models/evaluation/two_lines.h"

namespace gpushare::models {
namespace {

// 1 + 0.5 r up to 0.8, from there on 1.4 + 1.1 (r - 0.8).
FusedPoint Bent(double load) {
  return {load, 1 + 0.5 * load + (load > 0.8 ? 0.6 * (load - 0.8) : 0)};
}

TEST(FusedCurve, FivePointsFindTheInflection) {
  const FusedCurve curve = FitFusedCurve({Bent(1.9), Bent(0.1), Bent(1), Bent(0.2), Bent(1.8)});
  EXPECT_NEAR(curve.inflection, 0.8, 0.03);
  for (double load = 0.1; load < 1.95; load += 0.1) {
    EXPECT_NEAR(curve.At(load), Bent(load).duration_ratio, 0.01) << load;
  }
  EXPECT_LT(curve.error, 0.005);
}

// The four points of the paper: 1 % of noise on one of two near loads tilts a line by far more.
TEST(FusedCurve, NoiseOnOnePointDoesNotTiltALine) {
  std::vector<FusedPoint> points = {Bent(0.1), Bent(0.12), Bent(1), Bent(1.8), Bent(1.9)};
  points[1].duration_ratio *= 1.02;
  double curve_off = 0;
  double lines_off = 0;
  const FusedCurve curve = FitFusedCurve(points);
  const FusedCurve lines = TwoLines(points);
  for (double load = 0.3; load < 1.8; load += 0.1) {
    const double truth = Bent(load).duration_ratio;
    curve_off = std::max(curve_off, std::abs(curve.At(load) / truth - 1));
    lines_off = std::max(lines_off, std::abs(lines.At(load) / truth - 1));
  }
  EXPECT_LT(curve_off, 0.08);
  EXPECT_GT(lines_off, 2 * curve_off);
}

TEST(FusedCurve, AStraightPairHasNoBend) {
  const auto line = [](double load) { return FusedPoint{load, 1 + load}; };
  const FusedCurve curve = FitFusedCurve({line(0.1), line(0.2), line(1), line(1.8), line(1.9)});
  EXPECT_EQ(curve.bend, 0);
  EXPECT_NEAR(curve.At(1.4), 2.4, 1e-9);
}

// A bend that noise makes would put the inflection anywhere.
TEST(FusedCurve, ANoisyStraightPairHasNoBendEither) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> noise(0.99, 1.01);
  for (int i = 0; i < 200; ++i) {
    std::vector<FusedPoint> points;
    for (const double load : {0.1, 0.2, 1.0, 1.8, 1.9}) {
      points.push_back({load, (1 + load) * noise(random)});
    }
    EXPECT_EQ(FitFusedCurve(points).bend, 0);
  }
}

TEST(FusedCurve, PointsThatAreNoNumbersDoNotCount) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const FusedCurve curve = FitFusedCurve({{0.1, nan}, {nan, 1}, {0.5, 1.5}, {1, 2}, {0.2, -1}});
  EXPECT_NEAR(curve.At(0.8), 1.8, 1e-9);
  EXPECT_EQ(FitFusedCurve({{1, nan}}).At(1), 0);
  EXPECT_EQ(FitFusedCurve({}).At(1), 0);
}

TEST(FusedCurve, ThePaperPutsTheInflectionWhereTwoLinesCross) {
  const FusedCurve lines = TwoLines({Bent(0.1), Bent(0.2), Bent(1.8), Bent(1.9)});
  EXPECT_NEAR(lines.inflection, 0.8, 1e-9);
  EXPECT_NEAR(lines.At(1.5), Bent(1.5).duration_ratio, 1e-9);
  const auto line = [](double load) { return FusedPoint{load, 1 + load}; };
  EXPECT_NEAR(TwoLines({line(0.1), line(0.2), line(1.8), line(1.9)}).At(1), 2, 1e-6);
}

}  // namespace
}  // namespace gpushare::models
