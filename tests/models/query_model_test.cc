// Durations of queries over the size of their input.

#include "src/models/durations/query_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "src/core/base/limits.h"
#include "src/models/durations/query_models.h"

namespace gpushare::models {
namespace {

constexpr double kPriorNs = 1e6;  // the app's hint is the same for every size

using Truth = std::function<double(double)>;

// A query of `tokens` tokens through a network whose layers are lines over the tokens.
double Line(double tokens) { return 2e5 + 3e3 * tokens; }

// Attention makes long inputs slower than a line.
double Curve(double tokens) { return 2e5 + 1e3 * tokens + 4 * tokens * tokens; }

// 19 sizes from 32 to 3,600, in no order.
void Learn(QueryModel& model, const Truth& truth) {
  constexpr int kSizes = 19;
  for (int i = 0; i < 6 * kSizes; ++i) {
    const double tokens = 32 * std::pow(1.3, i * 7 % kSizes);
    model.Observe(tokens, truth(tokens), kPriorNs);
  }
}

double WorstError(const QueryModel& model, const Truth& truth) {
  double worst = 0;
  for (double tokens = 40; tokens <= 3500; tokens *= 1.17) {
    const core::Prediction prediction = model.Predict(tokens, kPriorNs);
    EXPECT_TRUE(prediction.trained);
    worst =
        std::max(worst, std::abs(static_cast<double>(prediction.duration_ns) / truth(tokens) - 1));
  }
  return worst;
}

TEST(QueryModel, ALineOverTheSize) {
  QueryModel model;
  Learn(model, Line);
  EXPECT_LT(WorstError(model, Line), 0.01);
  // Twice as long as any sample.
  EXPECT_NEAR(static_cast<double>(model.Predict(8192, kPriorNs).duration_ns), Line(8192),
              0.02 * Line(8192));
}

TEST(QueryModel, ACurveThatNoLineFollows) {
  QueryModel model;
  Learn(model, Curve);
  EXPECT_LT(WorstError(model, Curve), 0.1);
}

TEST(QueryModel, BeyondTheMeasuredSizesItGrowsOn) {
  QueryModel model;
  Learn(model, Curve);
  EXPECT_GT(model.Predict(16384, kPriorNs).duration_ns,
            1.5 * static_cast<double>(model.Predict(4096, kPriorNs).duration_ns));
}

// Within a fifth of a quadratic at twice the largest size and at half of the smallest.
TEST(QueryModel, BeyondTheMeasuredSizesACurveGoesOnAsAPower) {
  QueryModel model;
  Learn(model, Curve);
  EXPECT_NEAR(static_cast<double>(model.Predict(7200, kPriorNs).duration_ns), Curve(7200),
              0.2 * Curve(7200));
  EXPECT_NEAR(static_cast<double>(model.Predict(16, kPriorNs).duration_ns), Curve(16),
              0.2 * Curve(16));
}

TEST(QueryModel, WithoutASampleItIsThePrior) {
  const QueryModel model;
  const core::Prediction prediction = model.Predict(128, kPriorNs);
  EXPECT_EQ(prediction.duration_ns, 1'000'000);
  EXPECT_FALSE(prediction.trained);
}

TEST(QueryModel, TheFirstSampleChangesPlansAndALaterOneLikeItDoesNot) {
  QueryModel model;
  EXPECT_TRUE(model.Observe(128, 3e6, kPriorNs));
  Learn(model, Line);
  EXPECT_FALSE(model.Observe(128, Line(128) * 1.01, kPriorNs));
}

TEST(QueryModel, WhatIsNoSizeOrNoTimeDoesNotCount) {
  QueryModel model;
  Learn(model, Line);
  const int64_t before = model.Predict(500, kPriorNs).duration_ns;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double bad : {nan, infinity, 0.0, -1.0}) {
    EXPECT_FALSE(model.Observe(bad, 1e6, kPriorNs));
    EXPECT_FALSE(model.Observe(500, bad, kPriorNs));
    EXPECT_FALSE(model.Observe(500, 1e6, bad));
  }
  EXPECT_EQ(model.Predict(500, kPriorNs).duration_ns, before);
}

TEST(QueryModel, PredictionsStayWithinAnHour) {
  QueryModel model;
  for (int i = 0; i < 20; ++i) model.Observe(100 + i, 1e15, kPriorNs);
  EXPECT_LE(model.Predict(105, kPriorNs).duration_ns, core::kMaxDurationNs);
  EXPECT_LE(model.Predict(1e9, kPriorNs).duration_ns, core::kMaxDurationNs);
}

TEST(QueryModel, WhatAProfileKeepsPredictsTheSame) {
  QueryModel model;
  Learn(model, Curve);
  QueryModel restored;
  restored.Restore(model.state());
  for (double tokens = 20; tokens <= 8000; tokens *= 1.3) {
    const core::Prediction expected = model.Predict(tokens, kPriorNs);
    const core::Prediction predicted = restored.Predict(tokens, kPriorNs);
    EXPECT_NEAR(static_cast<double>(predicted.duration_ns),
                static_cast<double>(expected.duration_ns), 2);
    EXPECT_NEAR(static_cast<double>(predicted.error_ns), static_cast<double>(expected.error_ns), 2);
  }
}

// An app that comes back gets what an app of its name learned; another app gets nothing of it.
TEST(QueryModels, AreOfAnAppAndItsName) {
  QueryModels models;
  const core::AppId first{1};
  const core::AppId next{1 + core::kMaxApps};  // on the same slot
  models.Add(first, "service");
  for (int i = 0; i < 20; ++i) {
    models.Observe({first, 100}, 1'000'000);
    models.Observe({first, 200}, 2'000'000);
  }
  EXPECT_NEAR(static_cast<double>(models.Predict({first, 150}).duration_ns), 1.5e6, 1e4);
  EXPECT_FALSE(models.Predict({first, 0}).trained);
  EXPECT_FALSE(models.Predict({next, 150}).trained);
  models.Add(next, "other");
  EXPECT_FALSE(models.Predict({next, 150}).trained);
  EXPECT_FALSE(models.Predict({first, 150}).trained) << "it is gone";
  models.Add(first, "service");
  EXPECT_NEAR(static_cast<double>(models.Predict({first, 150}).duration_ns), 1.5e6, 1e4);
  ASSERT_EQ(models.Save().size(), 1u);
  EXPECT_EQ(models.Save()[0].app, "service");
}

}  // namespace
}  // namespace gpushare::models
