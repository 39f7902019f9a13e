// The online line of durations: what it learns, follows and forgets.

#include "src/models/durations/linear_model.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace gpushare::models {
namespace {

constexpr double kPriorNs = 1e6;

// `count` samples of one size.
void Feed(LinearModel& model, double x, double measured_ns, int count) {
  for (int i = 0; i < count; ++i) model.Observe(x, measured_ns, kPriorNs);
}

double PredictedNs(const LinearModel& model, double x) {
  return static_cast<double>(model.Predict(x, kPriorNs).duration_ns);
}

TEST(LinearModelTest, WithoutSamplesThePriorIsTheAnswerWithAWideError) {
  const core::Prediction prediction = LinearModel().Predict(1000, kPriorNs);
  EXPECT_EQ(prediction.duration_ns, 1'000'000);
  EXPECT_EQ(prediction.error_ns, 250'000);
  EXPECT_FALSE(prediction.trained);
}

TEST(LinearModelTest, TheThirdSampleTrains) {
  LinearModel model;
  Feed(model, 1000, 2e6, 2);
  EXPECT_FALSE(model.Predict(1000, kPriorNs).trained);
  Feed(model, 1000, 2e6, 1);
  EXPECT_TRUE(model.Predict(1000, kPriorNs).trained);
  EXPECT_NEAR(PredictedNs(model, 1000), 2e6, 1);
}

// A profile keeps what was learned, and the prior of a later run may be another: without a line,
// samples of this size say how long it takes.
TEST(LinearModelTest, OnceTrainedThePriorDoesNotCountForTheSizeOfTheSamples) {
  LinearModel model;
  Feed(model, 0, 2e6, 3);
  EXPECT_EQ(model.Predict(0, 1e5).duration_ns, 2'000'000);
  EXPECT_EQ(model.Predict(0, 0).duration_ns, 2'000'000);
  EXPECT_EQ(model.Predict(1, 1e5).duration_ns, 200'000);  // another size has the prior's shape
}

TEST(LinearModelTest, AColdFirstSampleCountsOnlyInPart) {
  LinearModel model;
  Feed(model, 1000, 4e6, 1);
  EXPECT_NEAR(PredictedNs(model, 1000), 2e6, 1);  // a third of the way from the prior
}

// Each sample differs by less than the refit's threshold, so only forgetting follows the drift.
TEST(LinearModelTest, ASlowDriftIsFollowedAndTheOldSpeedForgotten) {
  LinearModel model;
  Feed(model, 1000, 1e6, 1000);
  Feed(model, 1000, 1.08e6, 45);
  EXPECT_EQ(model.state().refits, 0);
  EXPECT_NEAR(PredictedNs(model, 1000), 1.04e6, 0.005e6);  // half of the weight is gone
  Feed(model, 1000, 1.08e6, 300);
  EXPECT_EQ(model.state().refits, 0);
  EXPECT_NEAR(PredictedNs(model, 1000), 1.08e6, 0.002e6);
}

TEST(LinearModelTest, ASlopeThatChangesSlowlyIsFollowedAtEverySize) {
  LinearModel model;
  const auto feed = [&model](double slope, int rounds) {
    for (int i = 0; i < rounds; ++i) {
      for (const double x : {500.0, 1000.0, 2000.0}) model.Observe(x, 1e5 + slope * x, kPriorNs);
    }
  };
  feed(1000, 300);
  EXPECT_NEAR(PredictedNs(model, 4000), 4.1e6, 0.01e6);
  feed(1070, 200);
  EXPECT_EQ(model.state().refits, 0);
  EXPECT_NEAR(PredictedNs(model, 4000), 4.38e6, 0.02e6);
}

TEST(LinearModelTest, ASuddenChangeIsRefittedFromTheSamplesThatWereOff) {
  LinearModel model;
  Feed(model, 1000, 1e6, 100);
  Feed(model, 1000, 2e6, 8);
  EXPECT_EQ(model.state().refits, 1);
  EXPECT_NEAR(PredictedNs(model, 1000), 2e6, 0.01e6);
}

// Of what came before, nothing counts towards the next refit, which takes six samples again.
TEST(LinearModelTest, ARefitBeginsANewWindow) {
  LinearModel model;
  Feed(model, 1000, 1e6, 100);
  // Two samples that are off are enough to refit; a third one trains the model again.
  Feed(model, 1000, 2e6, 2);
  ASSERT_EQ(model.state().refits, 1);
  Feed(model, 1000, 2e6, 1);
  Feed(model, 1000, 20e6, 5);
  EXPECT_EQ(model.state().refits, 1);
  Feed(model, 1000, 20e6, 1);
  EXPECT_EQ(model.state().refits, 2);
}

TEST(LinearModelTest, AStateThatIsRestoredBeginsANewWindow) {
  LinearModel learned;
  Feed(learned, 1000, 1e6, 100);
  LinearModel model;
  Feed(model, 1000, 1e6, 3);
  Feed(model, 1000, 20e6, 5);
  ASSERT_EQ(model.state().refits, 0);
  model.Restore(learned.state());
  Feed(model, 1000, 20e6, 5);
  EXPECT_EQ(model.state().refits, 0);
  Feed(model, 1000, 20e6, 1);
  EXPECT_EQ(model.state().refits, 1);
}

TEST(LinearModelTest, ARefitKeepsTheShapeOfTheLine) {
  LinearModel model;
  for (int i = 0; i < 50; ++i) {
    for (const double x : {500.0, 1000.0, 2000.0}) model.Observe(x, 1e5 + 1000 * x, kPriorNs);
  }
  for (int i = 0; i < 8; ++i) model.Observe(1000, 2 * (1e5 + 1000 * 1000), kPriorNs);
  EXPECT_EQ(model.state().refits, 1);
  EXPECT_TRUE(model.state().has_line);
  EXPECT_NEAR(PredictedNs(model, 4000), 2 * 4.1e6, 0.05e6);
}

TEST(LinearModelTest, MoreWorkNeverTakesLessTime) {
  LinearModel model;
  for (int i = 0; i < 20; ++i) {
    model.Observe(1000, 1.05e6, kPriorNs);
    model.Observe(2000, 1.0e6, kPriorNs);
  }
  EXPECT_GE(PredictedNs(model, 4000), PredictedNs(model, 1000));
}

TEST(LinearModelTest, SizesThatHardlyDifferGiveNoSlope) {
  LinearModel model;
  for (int i = 0; i < 20; ++i) {
    model.Observe(1000, 1.00e6, kPriorNs);
    model.Observe(1010, 1.05e6, kPriorNs);  // noise, not 5 us a block task
  }
  EXPECT_NEAR(PredictedNs(model, 2000), 1.025e6, 0.01e6);
}

TEST(LinearModelTest, OnlyAChangeOfMoreThanATenthIsAnnounced) {
  LinearModel model;
  Feed(model, 1000, 1e6, 10);
  EXPECT_FALSE(model.Observe(1000, 1.05e6, kPriorNs));
  bool announced = false;
  for (int i = 0; i < 8; ++i) announced = model.Observe(1000, 1.5e6, kPriorNs) || announced;
  EXPECT_TRUE(announced);
}

TEST(LinearModelTest, TheErrorBarFollowsTheScatter) {
  LinearModel model;
  for (int i = 0; i < 200; ++i) model.Observe(1000, i % 2 == 0 ? 0.95e6 : 1.05e6, kPriorNs);
  const core::Prediction prediction = model.Predict(1000, kPriorNs);
  EXPECT_NEAR(static_cast<double>(prediction.error_ns) / 1e6, 0.05, 0.01);
}

TEST(LinearModelTest, ARestoredModelPredictsAsTheSavedOne) {
  LinearModel model;
  for (int i = 0; i < 50; ++i) {
    for (const double x : {500.0, 1000.0, 2000.0}) model.Observe(x, 1e5 + 1000 * x, kPriorNs);
  }
  LinearModel restored;
  restored.Restore(model.state());
  EXPECT_EQ(PredictedNs(restored, 4000), PredictedNs(model, 4000));
  EXPECT_FALSE(restored.Observe(1000, 1.1e6, kPriorNs));
}

// Pageable copies of more than 64 MB are ever slower for their size.
TEST(LinearModel, LargeWorkThatIsSlowForItsSizeDoesNotMakeSmallWorkFree) {
  LinearModel model;
  const auto duration = [](double megabytes) {
    return megabytes * 70e3 * std::pow(std::max(1.0, megabytes / 64), 0.6);
  };
  for (const double megabytes : {64.0, 80.0, 96.0, 112.0, 128.0}) {
    for (int i = 0; i < 7; ++i) model.Observe(megabytes, duration(megabytes), 1e6);
  }
  const double predicted = static_cast<double>(model.Predict(8, 1e6).duration_ns);
  EXPECT_GT(predicted, 0.5 * duration(8));
  EXPECT_LT(predicted, 2 * duration(8));
}

}  // namespace
}  // namespace gpushare::models
