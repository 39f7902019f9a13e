// Pairs by a cost model whose answers are stated here.

#include "src/models/placement/cost_model_pairs.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "src/core/queueing/queue_tail.h"

namespace gpushare::models::placement {
namespace {

constexpr double kServiceNs = 400'000;

class StatedDurations : public core::Durations {
 public:
  core::Prediction blocking = {8'000, 1'000, true};

  core::Prediction PredictSolo(const core::TaskFeatures& features) const override {
    return {features.block_tasks * 1000, features.block_tasks * 20, true};
  }
  int64_t LearnedSoloNs(const std::string& /*name*/) const override { return 0; }
  // A knee: 84 of 132 SMs are as fast as all.
  double SpeedOn(const core::KernelDesc& /*kernel*/, int32_t sms) const override {
    return sms >= 84 ? 1 : sms / 84.0;
  }
  core::Prediction PredictQuery(const core::QueryFeatures& /*query*/) const override { return {}; }
  core::Prediction PredictEviction(const core::KernelDesc& /*kernel*/) const override {
    return {10'000, 0, true};
  }
  core::Prediction PredictBlocking(const core::KernelDesc& /*kernel*/) const override {
    return blocking;
  }
};

class StatedNeighbours : public core::Neighbours {
 public:
  double speed = 0.98;
  double error = 0.005;
  bool known = true;

  double SpeedBeside(const core::KernelDesc& /*kernel*/, int32_t /*sms*/,
                     const core::KernelDesc& /*neighbour*/,
                     int32_t /*neighbour_sms*/) const override {
    return speed;
  }
  double ErrorBeside(const core::KernelDesc& /*kernel*/, int32_t /*sms*/,
                     const core::KernelDesc& /*neighbour*/,
                     int32_t /*neighbour_sms*/) const override {
    return error;
  }
  bool KnowsBeside(const core::KernelDesc& /*kernel*/, int32_t /*sms*/,
                   const core::KernelDesc& /*neighbour*/) const override {
    return known;
  }
  void GiveUpBeside(const core::KernelDesc& /*kernel*/, int32_t /*sms*/,
                    const core::KernelDesc& /*neighbour*/, double /*factor*/) override {}
  void TakePairChanges(core::PairChanges& /*out*/) override {}
  double SpeedBesideCopies(const core::KernelDesc& /*kernel*/,
                           core::LinkUse /*copies*/) const override {
    return 1;
  }
};

class CostModelPairsTest : public ::testing::Test {
 protected:
  CostModelPairsTest() { training_.evictable = true; }

  CostModelPairs Pairs() const { return {durations_, neighbours_, splits_, lc_, be_}; }

  StatedDurations durations_;
  StatedNeighbours neighbours_;
  core::KernelDesc decode_;
  core::KernelDesc head_;
  core::KernelDesc training_;
  core::KernelDesc long_;
  // On the second one 12 SMs are in nobody's part.
  std::vector<core::SplitView> splits_ = {{.lc_sms = 84, .be_sms = 48},
                                          {.lc_sms = 40, .be_sms = 80}};
  std::vector<LcKind> lc_ = {{"service", {{&decode_, 100, 3}, {&head_, 100, 1}}}};
  std::vector<BeKind> be_ = {{"training", &training_, 5000}, {"long", &long_, 5000}};
};

TEST_F(CostModelPairsTest, ATightBoundLeavesWhatTheQueriesLeave) {
  const auto pair = Pairs().Beside("service", 0.5, "training", 1.01);
  ASSERT_TRUE(pair.has_value());
  const double p99_ns = kServiceNs * core::P99OverService(0.5);
  EXPECT_NEAR(pair->p99_ratio, 1 + 8'000 / p99_ns, 1e-12);
  EXPECT_NEAR(pair->p99_error, 1'000 / p99_ns, 1e-12);
  // An eviction of 10 us for each busy period, of which there are 0.5 x 0.5 in 400 us.
  EXPECT_NEAR(pair->be_rate, 0.5 - 0.25 / kServiceNs * 10'000, 1e-12);
}

TEST_F(CostModelPairsTest, ALooserBoundBuysTheSplitAtTheKnee) {
  const auto pair = Pairs().Beside("service", 0.5, "training", 1.2);
  ASSERT_TRUE(pair.has_value());
  const double busy = 0.5 / 0.98;
  EXPECT_NEAR(pair->be_rate, 1 - busy + busy * 0.98 * (48 / 84.0), 1e-9);
  EXPECT_GT(pair->p99_ratio, 1.02);
  EXPECT_GT(pair->p99_error, 0);
  EXPECT_LE(pair->p99_ratio + pair->p99_error, 1.2);
}

// Of nine segments of 20 us and one of 1 ms the p99 moves by less than 1 ms, and no work is lost. A
// mean wait that was seen makes it less in proportion.
TEST_F(CostModelPairsTest, AGraphInSegmentsMovesTheP99ByItsResidual) {
  core::KernelDesc graph;
  graph.evictable = true;
  graph.confinable = false;
  core::GraphCode code;
  code.cut.segments = 10;
  const std::vector<int64_t> segments_ns = {20'000, 20'000, 20'000,    20'000, 20'000,
                                            20'000, 20'000, 1'000'000, 20'000, 20'000};
  code.cut.blocking = core::SegmentBlocking(segments_ns, 100'000);
  graph.code = code;
  be_.push_back({"graph", &graph, 0});
  durations_.blocking.trained = false;
  const auto pair = Pairs().Beside("service", 0.5, "graph", 1.05);
  ASSERT_TRUE(pair.has_value());
  const double p99_ns = kServiceNs * core::P99OverService(0.5);
  const double shift_ns = (pair->p99_ratio - 1) * p99_ns;
  EXPECT_GT(shift_ns, 300'000);
  EXPECT_LT(shift_ns, 1'000'000);
  EXPECT_NEAR(pair->be_rate, 0.5, 1e-12);
  durations_.blocking = {8'000, 1'000, true};
  EXPECT_LT(Pairs().Beside("service", 0.5, "graph", 1.05)->p99_ratio, 1 + 20'000 / p99_ns);
}

TEST_F(CostModelPairsTest, WithoutSplitsBestEffortHasTheSilencesAlone) {
  splits_.clear();
  EXPECT_LT(Pairs().Beside("service", 0.5, "training", 1.2)->be_rate, 0.5);
}

TEST_F(CostModelPairsTest, ALargerErrorBarOrAnUnknownPairGivesTheSplitUp) {
  const double split = Pairs().Beside("service", 0.5, "training", 1.2)->be_rate;
  neighbours_.error = 0.2;
  EXPECT_LT(Pairs().Beside("service", 0.5, "training", 1.2)->be_rate, split);
  neighbours_.error = 0;
  neighbours_.known = false;
  EXPECT_LT(Pairs().Beside("service", 0.5, "training", 1.2)->be_rate, split);
}

TEST_F(CostModelPairsTest, AKernelThatCannotLeaveMovesTheP99ByItsLength) {
  const auto pair = Pairs().Beside("service", 0.5, "long", 1.05);
  ASSERT_TRUE(pair.has_value());
  // 5 ms on 400 us queries: between a half and the whole of it.
  const double p99_ns = kServiceNs * core::P99OverService(0.5);
  EXPECT_GT(pair->p99_ratio, 1 + 2'500'000 / p99_ns);
  EXPECT_LT(pair->p99_ratio, 1 + 5'000'000 / p99_ns);
}

TEST_F(CostModelPairsTest, WhatItDoesNotKnowIsUnknown) {
  EXPECT_FALSE(Pairs().Beside("other", 0.5, "training", 1.2).has_value());
  EXPECT_FALSE(Pairs().Beside("service", 0.5, "other", 1.2).has_value());
  EXPECT_FALSE(Pairs().Beside("service", 0.99, "training", 1.2).has_value());
}

}  // namespace
}  // namespace gpushare::models::placement
