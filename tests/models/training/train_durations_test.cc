// Which form of a kernel's durations is kept.

#include "src/models/training/train_durations.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "src/models/learned/learned.h"

namespace gpushare::models {
namespace {

constexpr int32_t kRound = 100;

double PriorOf(int64_t block_tasks) { return 1000 * static_cast<double>(block_tasks); }

// Seven repeats of each size, with half a per cent of noise.
std::vector<SoloSize> Measured(const std::vector<int64_t>& sizes,
                               const std::function<double(double)>& ns_of) {
  std::vector<SoloSize> out;
  for (const int64_t size : sizes) {
    for (int i = 0; i < 7; ++i) {
      const double noise = 1 + 0.005 * std::sin(static_cast<double>(size + 13 * i));
      const double ns[] = {noise * ns_of(static_cast<double>(size))};
      AddRepeats(size, ns, out);
    }
  }
  return out;
}

double NsAt(const TrainedDurations& trained, int64_t block_tasks) {
  KernelDurations model;
  model.Restore(trained.line, trained.shape);
  return static_cast<double>(model.Predict(block_tasks, PriorOf(block_tasks)).duration_ns);
}

const std::vector<int64_t> kOdd = {130, 250, 390, 610, 905, 1220, 1650};

TEST(TrainDurations, WhatIsALineIsPredictedAsOne) {
  const auto truth = [](double tasks) { return 5000 + 800 * tasks; };
  const TrainedDurations trained = TrainDurations(Measured(kOdd, truth), kRound, PriorOf);
  EXPECT_NEAR(NsAt(trained, 500) / truth(500), 1, 0.01);
  EXPECT_NEAR(NsAt(trained, 3000) / truth(3000), 1, 0.02);
}

TEST(TrainDurations, WholeRoundsAreSeen) {
  const auto truth = [](double tasks) { return 5000 + 80000 * std::ceil(tasks / kRound); };
  const TrainedDurations trained = TrainDurations(Measured(kOdd, truth), kRound, PriorOf);
  EXPECT_EQ(trained.shape.round, kRound);
  EXPECT_NEAR(NsAt(trained, 101) / truth(101), 1, 0.02);
  EXPECT_NEAR(NsAt(trained, 200) / truth(200), 1, 0.02);
}

// A clock that falls under long work, as Tensor-core kernels have it.
TEST(TrainDurations, SizesThatAreNoLineGetTheirRatios) {
  const auto truth = [](double tasks) { return 800 * tasks * (tasks < 500 ? 1 : 1.3); };
  const TrainedDurations trained = TrainDurations(Measured(kOdd, truth), kRound, PriorOf);
  ASSERT_EQ(trained.shape.ratios.size(), kOdd.size());
  EXPECT_NEAR(NsAt(trained, 300) / truth(300), 1, 0.03);
  EXPECT_NEAR(NsAt(trained, 1000) / truth(1000), 1, 0.03);
  const LinearState line = TrainLine(Measured(kOdd, truth), PriorOf);
  EXPECT_GT(std::abs(NsAt({line, {}}, 300) / truth(300) - 1), 0.05);
}

TEST(TrainDurations, FewSizesAndNoneAreALine) {
  const auto truth = [](double tasks) { return 80000 * std::ceil(tasks / kRound); };
  EXPECT_TRUE(TrainDurations(Measured({130, 250, 390}, truth), kRound, PriorOf).shape.IsLine());
  EXPECT_TRUE(TrainDurations(Measured({0}, truth), kRound, PriorOf).shape.IsLine());
  EXPECT_EQ(TrainDurations({}, kRound, PriorOf).line.samples, 0);
}

TEST(TrainDurations, MoreSizesThanAShapeHoldsHaveNoRatios) {
  std::vector<int64_t> many;
  for (int64_t size = 110; many.size() <= DurationShape::kRatiosMax; size += 110) {
    many.push_back(size);
  }
  const auto truth = [](double tasks) { return 80000 * std::ceil(tasks / kRound); };
  const DurationShape shape = TrainDurations(Measured(many, truth), kRound, PriorOf).shape;
  EXPECT_TRUE(shape.ratios.empty());
  EXPECT_EQ(shape.round, kRound);
}

// Its text must be readable: a profile is refused whole.
TEST(TrainDurations, RatiosThatNoProfileTakesAreNotKept) {
  const auto truth = [](double tasks) { return tasks * tasks * tasks; };
  const std::vector<int64_t> sizes = {2, 5, 20, 80, 300, 1000};
  const TrainedDurations trained = TrainDurations(Measured(sizes, truth), kRound, PriorOf);
  for (const SizeRatio& one : trained.shape.ratios) {
    EXPECT_LE(one.ratio, DurationShape::kRatioMax);
    EXPECT_GE(one.ratio, 1 / DurationShape::kRatioMax);
  }
  Learned learned;
  learned.kernels.emplace_back();
  learned.kernels[0].name = "cubic";
  learned.kernels[0].solo = trained.line;
  learned.kernels[0].shape = trained.shape;
  EXPECT_TRUE(ParseLearned(FormatLearned(learned)).ok());
}

TEST(TrainDurations, WithRatiosTheErrorBarIsThatOfLeftOutSizes) {
  const auto truth = [](double tasks) { return 800 * tasks * (tasks < 500 ? 1 : 1.3); };
  const TrainedDurations trained = TrainDurations(Measured(kOdd, truth), kRound, PriorOf);
  ASSERT_FALSE(trained.shape.ratios.empty());
  EXPECT_GT(std::sqrt(trained.line.squared_error), 0.015) << "repeats alone scatter by 0.4 %";
}

TEST(TrainDurations, RepeatsOfAKnownSizeJoinIt) {
  std::vector<SoloSize> sizes;
  const double first[] = {1.4, 2.6};
  const double later[] = {7};
  AddRepeats(10, first, sizes);
  AddRepeats(20, first, sizes);
  AddRepeats(10, later, sizes);
  ASSERT_EQ(sizes.size(), 2U);
  EXPECT_EQ(sizes[0].ns, (std::vector<int64_t>{1, 3, 7}));
}

}  // namespace
}  // namespace gpushare::models
