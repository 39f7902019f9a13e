// A line, whole rounds, and the ratios of measured sizes.

#include "src/models/durations/kernel_durations.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

namespace gpushare::models {
namespace {

constexpr double kPriorNs = 1;

double NsAt(const KernelDurations& model, int64_t block_tasks) {
  return static_cast<double>(model.Predict(block_tasks, kPriorNs).duration_ns);
}

// 1,000 ns a block task of the size that the shape counts.
KernelDurations Learned(const DurationShape& shape) {
  KernelDurations model;
  model.Restore(LinearState(), shape);
  for (int i = 0; i < 8; ++i) {
    for (int64_t tasks = 100; tasks <= 800; tasks *= 2) {
      model.Observe(tasks, 1000 * static_cast<double>(tasks), kPriorNs);
    }
  }
  return model;
}

TEST(KernelDurations, WithoutAShapeItIsTheLine) {
  const KernelDurations model = Learned(DurationShape());
  EXPECT_NEAR(NsAt(model, 150), 150000, 5);
  EXPECT_TRUE(model.shape().IsLine());
}

TEST(KernelDurations, TheLastRoundTakesAsLongAsAFullOne) {
  DurationShape shape;
  shape.round = 100;
  const KernelDurations model = Learned(shape);
  EXPECT_NEAR(NsAt(model, 101), 200000, 5);
  EXPECT_NEAR(NsAt(model, 200), 200000, 5);
  EXPECT_NEAR(NsAt(model, 201), 300000, 5);
}

TEST(KernelDurations, RatiosAreOnTheirLineOverTheLogarithmAndStayBeyondTheLast) {
  DurationShape shape;
  shape.ratios = {{100, 1}, {400, 3}};
  KernelDurations model;
  LinearState line = {.has_line = true, .line_slope_ns = 1000, .squared_error = 0.01};
  model.Restore(line, shape);
  EXPECT_EQ(NsAt(model, 50), 50000);
  EXPECT_EQ(NsAt(model, 100), 100000);
  EXPECT_EQ(NsAt(model, 200), 400000);  // a ratio of 2
  EXPECT_EQ(NsAt(model, 400), 1200000);
  EXPECT_EQ(NsAt(model, 800), 2400000);
  const core::Prediction half = model.Predict(100, kPriorNs);
  const core::Prediction twice = model.Predict(400, kPriorNs);
  EXPECT_NEAR(static_cast<double>(twice.error_ns) / static_cast<double>(half.error_ns), 12, 0.01);
}

// Samples of one size move all sizes, and leave the shape.
TEST(KernelDurations, ADriftMovesTheLineUnderTheShape) {
  DurationShape shape;
  shape.ratios = {{100, 1}, {800, 2}};
  KernelDurations model;
  model.Restore(LinearState(), shape);
  const auto measured = [](int64_t tasks) {
    const double ratio = 1 + std::log2(static_cast<double>(tasks) / 100) / 3;
    return 1000 * static_cast<double>(tasks) * ratio;
  };
  for (int i = 0; i < 16; ++i) {
    for (int64_t tasks = 100; tasks <= 800; tasks *= 2) {
      model.Observe(tasks, measured(tasks), kPriorNs);
    }
  }
  EXPECT_NEAR(NsAt(model, 800), measured(800), 1000);
  for (int i = 0; i < 20; ++i) model.Observe(200, 2 * measured(200), kPriorNs);
  EXPECT_NEAR(NsAt(model, 800) / measured(800), 2, 0.1);
  EXPECT_EQ(model.shape().ratios.size(), 2U);
}

TEST(KernelDurations, RatiosThatAreWrongDoNotCount) {
  DurationShape shape;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  shape.round = -5;
  shape.ratios = {{100, nan}, {200, 0}, {300, 2}, {250, 9}, {nan, 3}, {400, -1}, {500, 3}};
  KernelDurations model;
  model.Restore(LinearState(), shape);
  const DurationShape kept = model.shape();
  EXPECT_EQ(kept.round, 0);
  ASSERT_EQ(kept.ratios.size(), 2U);
  EXPECT_EQ(kept.ratios[0].block_tasks, 300);
  EXPECT_EQ(kept.ratios[1].block_tasks, 500);
}

TEST(KernelDurations, MoreRatiosThanItKeepsAreLeftOut) {
  DurationShape shape;
  for (int i = 1; i <= 40; ++i) shape.ratios.push_back({100.0 * i, 1});
  KernelDurations model;
  model.Restore(LinearState(), shape);
  EXPECT_EQ(model.shape().ratios.size(), DurationShape::kRatiosMax);
}

TEST(KernelDurations, NoWorkAndTheMostWorkStayFinite) {
  DurationShape shape = {.round = 132, .ratios = {{100, 10}, {400, 10}}};
  const KernelDurations model = Learned(shape);
  EXPECT_GE(NsAt(model, 0), 0);
  EXPECT_LE(NsAt(model, std::numeric_limits<int64_t>::max() / 1000), 1e13);
}

}  // namespace
}  // namespace gpushare::models
