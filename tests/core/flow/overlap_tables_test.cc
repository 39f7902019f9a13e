// What a policy sees of fused kernels and of co-schedules, and what runs of a fused kernel teach.
// Simulated device, virtual time.

#include "src/core/flow/planning/overlap_tables.h"

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "src/core/flow/scheduler.h"
#include "tests/core/forwarding_model.h"
#include "tests/core/plan_with.h"
#include "tests/core/simulated_scheduler.h"

namespace gpushare::core {
namespace {

// Predicts what a test can recognise: the speeds are the shares of workers.
class SharesModel final : public ForwardingModel {
 public:
  SharesModel(std::unique_ptr<CostModel> model, int& asked, PairChanges& changes)
      : ForwardingModel(std::move(model)), asked_(asked), changes_(changes) {}
  // The pairs that a test names, which has a version of its own for each time.
  uint64_t co_schedule_version() const override {
    return changes_.all || !changes_.pairs.empty() ? version_ + 1 : version_;
  }
  void TakeCoScheduleChanges(PairChanges& out) override {
    ++version_;
    out = changes_;
    changes_.Clear();
  }
  CoResidentPrediction PredictCoResident(const CoResidentSide& first,
                                         const CoResidentSide& second) const override {
    ++asked_;
    CoResidentPrediction out;
    out.known = true;
    out.speed = {first.workers_per_sm / 8.0, second.workers_per_sm / 8.0};
    out.speed_error = 0.1;
    return out;
  }

 private:
  int& asked_;
  PairChanges& changes_;
  uint64_t version_ = 0;
};

class OverlapTablesTest : public SimulatedSchedulerTest {
 protected:
  using SimulatedSchedulerTest::Wrap;
  std::unique_ptr<CostModel> Wrap(std::unique_ptr<CostModel> model) override {
    return std::make_unique<SharesModel>(std::move(model), asked_, changes_);
  }
  void SetUp() override {
    const auto plan = [this](const Snapshot& snapshot, Plan& out) { PlanFor(snapshot, out); };
    ASSERT_NO_FATAL_FAILURE(StartScheduler(std::make_unique<PlanWith>(plan)));
    tensor_ = *scheduler_->RegisterKernel(EvictableKernel("tensor", 20 * kUs));
    cuda_ = *scheduler_->RegisterKernel(EvictableKernel("cuda", 20 * kUs));
    FusedKernelDesc fused;
    fused.name = "pair";
    fused.tensor_part = tensor_;
    fused.cuda_part = cuda_;
    fused.opportune_load_ratio = 0.8;
    fused.opportune_duration_ratio = 1.2;
    ASSERT_TRUE(scheduler_->RegisterFusedKernel(fused).ok());
  }

  // Fuses the heads of both kernels, or launches a head alone.
  void PlanFor(const Snapshot& snapshot, Plan& plan) {
    last_ = snapshot.fused.empty() ? FusedView() : snapshot.fused[0];
    fused_version_ = snapshot.fused_version;
    co_ = snapshot.co_schedules;
    for (const HeadView& head : snapshot.heads) indices_.push_back(head.overlap_index);
    PlannedLaunch launch;
    launch.lane_class = LaneClass::kBe;
    launch.form = Form::kWorkers;
    for (const HeadView& head : snapshot.heads) {
      launch.task = head.task;
      if (head.app_class == AppClass::kLatencyCritical) {
        PlannedLaunch query = launch;
        query.form = Form::kGraph;
        query.lane_class = LaneClass::kLc;
        plan.launches.TryAdd(query);
        continue;
      }
      if (fuse_ && snapshot.heads.size() < 2) return;
      if (fuse_) {
        launch.form = Form::kFused;
        launch.fused_with = snapshot.heads[1].task;
      }
      plan.launches.TryAdd(launch);
      if (fuse_) return;
    }
  }
  void Submit(KernelId kernel, int64_t rounds) {
    TaskSpec spec;
    spec.queue = AddQueue(AppClass::kBestEffort, "app" + std::to_string(++apps_));
    spec.kernel = kernel;
    spec.work.block_tasks = rounds * 8 * sms_;
    ASSERT_TRUE(scheduler_->SubmitBe(spec).ok());
  }
  void Run(int64_t ns = 1000 * kMs) {
    EXPECT_TRUE(scheduler_->Drain(scheduler_->NowNs() + ns).ok());
  }

  int asked_ = 0;
  PairChanges changes_ = {.all = false, .pairs = {}};
  bool fuse_ = false;
  int apps_ = 0;
  KernelId tensor_, cuda_;
  FusedView last_;
  uint64_t fused_version_ = 0;
  CoScheduleTable co_;
  std::vector<int32_t> indices_;
};

TEST_F(OverlapTablesTest, AFusedKernelShowsTheCurveOfItsRegistration) {
  Submit(cuda_, 1);
  Run();
  ASSERT_NE(last_.kernel, nullptr);
  EXPECT_EQ(last_.kernel->name, "pair");
  EXPECT_DOUBLE_EQ(last_.curve.inflection, 0.8);
  EXPECT_DOUBLE_EQ(last_.curve.intercept + last_.curve.slope * 0.8, 1.2);
  EXPECT_FALSE(last_.curve.trained);
}

TEST_F(OverlapTablesTest, EachPairOfKernelsIsPredictedOnce) {
  Submit(tensor_, 1);
  Run();
  EXPECT_EQ(asked_, 1 * kCoScheduleRatios) << "the kernel beside itself";
  Submit(cuda_, 1);
  Submit(cuda_, 1);
  Run();
  EXPECT_EQ(asked_, 3 * kCoScheduleRatios);
  ASSERT_EQ(co_.kernels, 2);
  const auto options = co_.Of(0, 1);
  ASSERT_EQ(options.size(), static_cast<size_t>(kCoScheduleRatios));
  for (int32_t ratio = 0; ratio < kCoScheduleRatios; ++ratio) {
    const CoScheduleOption& option = options[static_cast<size_t>(ratio)];
    EXPECT_EQ(option.workers_per_sm[1], 2 * (ratio + 1));
    EXPECT_EQ(option.workers_per_sm[0], 8 - 2 * (ratio + 1)) << "the threads of an SM";
    EXPECT_FLOAT_EQ(option.speed[0] + option.speed[1], 1);
    EXPECT_NEAR(option.profit, 0, 1e-6);
    EXPECT_FLOAT_EQ(option.speed_error, 0.1F);
  }
  EXPECT_TRUE(co_.Of(0, 2).empty());
  EXPECT_TRUE(co_.Of(-1, 0).empty());
  EXPECT_EQ(indices_.front(), 0);
  EXPECT_EQ(indices_.back(), 1);
}

// Many pairs may change between two plans. One Tick predicts a few of them, the next ones the rest.
TEST_F(OverlapTablesTest, ATickPredictsAFewChangedPairs) {
  std::vector<KernelId> kernels = {tensor_, cuda_};
  for (const char* name : {"third", "fourth", "fifth"}) {
    kernels.push_back(*scheduler_->RegisterKernel(EvictableKernel(name, 20 * kUs)));
  }
  for (const KernelId kernel : kernels) {
    Submit(kernel, 1);
    Run();
  }
  ASSERT_EQ(co_.kernels, 5);
  const int before = asked_;
  for (size_t i = 0; i < kernels.size(); ++i) {
    for (size_t j = 0; j <= i; ++j) changes_.Note(kernels[i], kernels[j]);
  }
  scheduler_->Tick();
  EXPECT_EQ(asked_ - before, kMaxPairRefills * kCoScheduleRatios);
  scheduler_->Tick();
  EXPECT_EQ(asked_ - before, 15 * kCoScheduleRatios);
  scheduler_->Tick();
  EXPECT_EQ(asked_ - before, 15 * kCoScheduleRatios) << "each once";
}

// What runs of workers teach says nothing of slices.
TEST_F(OverlapTablesTest, WhatSlicesDidOutlivesTheOptionsOfTheirPair) {
  for (const KernelId kernel : {tensor_, cuda_}) {
    Submit(kernel, 1);
    Run();
  }
  ASSERT_EQ(co_.kernels, 2);
  // The flow's own entry, which nothing writes while no slices run. It stays where it is.
  auto& sliced = const_cast<SlicedPair&>(co_.SlicedOf(1, 0)[1]);
  sliced = {{0.5F, 0.5F}, {9, 9}};
  changes_.Note(tensor_, cuda_);
  for (int i = 0; i < 4; ++i) {
    Submit(cuda_, 1);
    Run();
  }
  EXPECT_EQ(sliced.runs[0], 9) << "the pair changed";
  const int before = asked_;
  changes_.all = true;
  for (int i = 0; i < 4; ++i) {
    Submit(cuda_, 1);
    Run();
  }
  EXPECT_EQ(asked_ - before, 3 * kCoScheduleRatios);
  EXPECT_EQ(sliced.runs[0], 9) << "all pairs changed";
}

// The simulated device runs the pair as its registration says; the model learns what it takes.
TEST_F(OverlapTablesTest, RunsOfAFusedKernelTrainItsCurve) {
  for (int i = 0; i < 6; ++i) {
    for (const KernelId kernel : {tensor_, cuda_}) {
      Submit(kernel, 4 + i);
      Run();
    }
  }
  const uint64_t before = fused_version_;
  fuse_ = true;
  for (int i = 0; i < 8; ++i) {
    Submit(tensor_, 20);
    Submit(cuda_, 4 + 3 * i);
    Run();
  }
  fuse_ = false;
  Submit(cuda_, 1);
  Run();
  EXPECT_TRUE(last_.curve.trained);
  EXPECT_GT(fused_version_, before);
  EXPECT_LT(last_.curve.error, 0.1);
}

// Beside other work a fused launch takes longer, which says nothing about the pair.
TEST_F(OverlapTablesTest, ARunBesideOtherWorkTrainsNothing) {
  for (int i = 0; i < 6; ++i) {
    for (const KernelId kernel : {tensor_, cuda_}) {
      Submit(kernel, 4 + i);
      Run();
    }
  }
  const KernelId graph = *scheduler_->RegisterKernel(Graph("service", 100 * kUs));
  const QueueId service = AddQueue(AppClass::kLatencyCritical, "service");
  fuse_ = true;
  for (int i = 0; i < 8; ++i) {
    Submit(tensor_, 20);
    Submit(cuda_, 20);
    EXPECT_FALSE(scheduler_->Drain(scheduler_->NowNs() + 50 * kUs).ok()) << "they run";
    SubmitGraph(service, graph, true);
    Run();
  }
  fuse_ = false;
  Submit(cuda_, 1);
  Run();
  EXPECT_FALSE(last_.curve.trained);
}

}  // namespace
}  // namespace gpushare::core
