// A fused kernel's model: it starts with the paper's lines, learns from runs, and recovers.

#include "src/models/fused/fused_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace gpushare::models {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// 1.1 + 0.2 r up to 0.9, from there on with a slope of 1.1.
double Truth(double load) { return 1.1 + 0.2 * load + 0.9 * std::max(0.0, load - 0.9); }

double WorstError(const FusedModel& model, double factor = 1) {
  double worst = 0;
  for (double load = 0.1; load < 1.95; load += 0.1) {
    worst = std::max(worst, std::abs(model.curve().At(load) / (factor * Truth(load)) - 1));
  }
  return worst;
}

void Teach(FusedModel& model, int runs, double factor = 1) {
  for (int i = 0; i < runs; ++i) {
    const double load = 0.1 + 0.3 * (i % 7);
    model.Observe(load, factor * Truth(load));
  }
}

// Tacker eq. 3 and 6 as corrected: 1 + (t0 - 1) r / r0 up to r0, t0 + r - r0 beyond.
TEST(FusedModel, BeginsWithThePapersLines) {
  const FusedModel model(0.8, 1.2);
  EXPECT_FALSE(model.trained());
  EXPECT_DOUBLE_EQ(model.curve().At(0.4), 1.1);
  EXPECT_DOUBLE_EQ(model.curve().At(0.8), 1.2);
  EXPECT_DOUBLE_EQ(model.curve().At(1.3), 1.7);
}

TEST(FusedModel, LearnsFromItsFirstRuns) {
  FusedModel model(1, 1);
  EXPECT_FALSE(model.Observe(0.5, Truth(0.5)));
  EXPECT_FALSE(model.Observe(1.0, Truth(1.0)));
  EXPECT_TRUE(model.Observe(1.5, Truth(1.5)));
  EXPECT_TRUE(model.trained());
  EXPECT_LT(WorstError(model), 0.15);
}

// Tacker VI-C: below a mean error of 10 % nothing is fitted again.
TEST(FusedModel, RefitsPastTenPerCentOnly) {
  FusedModel model(1, 1);
  Teach(model, 24);
  const double before = model.curve().At(1);
  Teach(model, 24, 1.05);
  EXPECT_DOUBLE_EQ(model.curve().At(1), before);
  Teach(model, 16, 1.3);
  EXPECT_LT(WorstError(model, 1.3), 0.05);
}

TEST(FusedModel, RecoversFromAJumpWithinTwentyRuns) {
  for (const double factor : {10.0, 0.1}) {
    FusedModel model(1, 1);
    Teach(model, 40);
    Teach(model, 20, factor);
    EXPECT_LT(WorstError(model, factor), 0.05) << factor;
  }
}

// A change that one load ratio showed shifts the others in the same proportion.
TEST(FusedModel, RunsAtOneLoadRatioShiftTheWholeCurve) {
  FusedModel model(1, 1);
  Teach(model, 40);
  for (int i = 0; i < 20; ++i) model.Observe(1, 1.5 * Truth(1));
  EXPECT_LT(WorstError(model, 1.5), 0.06);
}

TEST(FusedModel, NonsenseChangesNothing) {
  FusedModel model(kNaN, -1);
  Teach(model, 40);
  const double before = model.curve().At(0.7);
  for (const double bad : {kNaN, 0.0, -1.0, 1e300, std::numeric_limits<double>::infinity()}) {
    for (int i = 0; i < 20; ++i) {
      EXPECT_FALSE(model.Observe(bad, 1));
      EXPECT_FALSE(model.Observe(1, bad));
    }
  }
  EXPECT_EQ(model.curve().At(0.7), before);
  const std::vector<FusedPoint> bad = {{kNaN, 1}, {1, kNaN}, {2, -1}, {3, 0}};
  model.Train(bad);
  EXPECT_EQ(model.curve().At(0.7), before);
}

TEST(FusedModel, ItsPointsGiveTheSameCurve) {
  FusedModel model(1, 1);
  Teach(model, 40);
  FusedModel again(1, 1);
  again.Train(model.Points());
  EXPECT_TRUE(again.trained());
  for (double load = 0.1; load < 1.95; load += 0.1) {
    EXPECT_NEAR(again.curve().At(load) / model.curve().At(load), 1, 0.005) << load;
  }
}

// Also where both lines meet far from the load ratios of a calibration.
TEST(FusedModel, ItsPointsKeepBothLines) {
  for (const double inflection : {0.05, 0.5, 3.0}) {
    const FusedModel model(inflection, 1.2);
    FusedModel again(1, 1);
    again.Train(model.Points(), 0.07);
    for (const double load : {0.5, 0.9, 1.5, 2.0, 3.0}) {
      const double at = load * inflection;
      EXPECT_NEAR(again.curve().At(at) / model.curve().At(at), 1, 0.02) << inflection;
    }
    EXPECT_DOUBLE_EQ(again.error(), 0.07);
  }
}

// Runs on the first line alone do not bend the second one away.
TEST(FusedModel, ADriftOnOneLineKeepsTheOther) {
  FusedModel model(3, 1.2);
  for (int i = 0; i < 20; ++i)
    model.Observe(1 + 0.2 * (i % 8), 1.2 * (1 + 0.2 * (1 + 0.2 * (i % 8)) / 3));
  EXPECT_GT(model.curve().At(6), 0.8 * 1.2 * 4.2);
}

TEST(FusedModel, TheErrorBarFollowsWhatRunsShow) {
  FusedModel model(1, 1);
  Teach(model, 40);
  const double exact = model.error();
  EXPECT_LT(exact, 0.03);
  for (int i = 0; i < 40; ++i) model.Observe(1, Truth(1) * (i % 2 == 0 ? 1.08 : 0.92));
  EXPECT_NEAR(model.error(), 0.08, 0.02);
}

}  // namespace
}  // namespace gpushare::models
