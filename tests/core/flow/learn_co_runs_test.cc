// Kernels whose workers share every SM: the flow reports each run, and the table of co-schedules
// follows what the runs show. Simulated device, virtual time.

#include <array>
#include <cmath>
#include <cstdint>
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

// A run that the flow reported, and what was predicted of it before.
struct SeenRun {
  KernelId own;
  KernelId neighbour;
  std::array<int32_t, 2> workers;
  double speed = 0;
  double predicted = 0;
  double error_bar = 1;
};

class WatchingModel final : public ForwardingModel {
 public:
  WatchingModel(std::unique_ptr<CostModel> model, std::vector<SeenRun>& seen)
      : ForwardingModel(std::move(model)), seen_(seen) {}
  void Observe(const Observation& observation) override {
    if (const CoRun* const run = observation.co_run; run != nullptr) {
      const CoResidentPrediction before = PredictCoResident(run->own, run->neighbour);
      const Prediction solo = PredictSolo(observation.features);
      seen_.push_back(
          {run->own.kernel->id,
           run->neighbour.kernel->id,
           {run->own.workers_per_sm, run->neighbour.workers_per_sm},
           static_cast<double>(solo.duration_ns) / static_cast<double>(observation.measured_ns),
           before.speed[0],
           before.known ? before.speed_error : 1});
    }
    ForwardingModel::Observe(observation);
  }

 private:
  std::vector<SeenRun>& seen_;
};

class LearnCoRunsTest : public SimulatedSchedulerTest {
 protected:
  static constexpr int kKernels = 4;
  static constexpr int32_t kWorkers = 4;  // an SM holds 8 of the threads

  using SimulatedSchedulerTest::Wrap;
  std::unique_ptr<CostModel> Wrap(std::unique_ptr<CostModel> model) override {
    return std::make_unique<WatchingModel>(std::move(model), seen_);
  }

  // Counters that say little of what the simulated kernels want, so that the chain is off.
  void SetUp() override {
    const auto plan = [this](const Snapshot& snapshot, Plan& out) { PlanFor(snapshot, out); };
    ASSERT_NO_FATAL_FAILURE(StartScheduler(std::make_unique<PlanWith>(plan)));
    for (int i = 0; i < kKernels; ++i) {
      KernelDesc kernel = EvictableKernel("kernel" + std::to_string(i), (20 + 5 * i) * kUs);
      kernel.simulation.saturating_occupancy = 0.5;
      kernel.simulation.demand.dram = 0.3 + 0.15 * i;
      kernel.simulation.demand.issue = 0.9 - 0.2 * i;
      kernel.simulation.memory_parallelism = 0.2 + 0.2 * i;
      kernel.counters.instructions = 4000;
      kernel.counters.memory_instructions = 100;
      kernel.counters.sectors_per_request = 4;
      kernels_.push_back(*scheduler_->RegisterKernel(kernel));
      queues_.push_back(AddQueue(AppClass::kBestEffort, "app" + std::to_string(i)));
    }
    for (int i = 0; i < kKernels; ++i) {
      for (int run = 0; run < 12; ++run) {
        Submit(i, 200 + 100 * (run % 4));
        Drain();
      }
    }
  }

  void PlanFor(const Snapshot& snapshot, Plan& plan) {
    versions_ = snapshot.co_schedules.version;
    rows_ = snapshot.co_schedules.kernels;
    for (const HeadView& head : snapshot.heads) {
      PlannedLaunch launch;
      launch.task = head.task;
      launch.lane_class = LaneClass::kBe;
      launch.form = Form::kWorkers;
      if (together_) launch.workers = kWorkers * sms_;
      plan.launches.TryAdd(launch);
    }
  }
  void Submit(int kernel, int64_t rounds) {
    TaskSpec spec;
    spec.queue = queues_[static_cast<size_t>(kernel)];
    spec.kernel = kernels_[static_cast<size_t>(kernel)];
    spec.work.block_tasks = rounds * 8 * sms_;
    ASSERT_TRUE(scheduler_->SubmitBe(spec).ok());
  }
  void Drain() { ASSERT_TRUE(scheduler_->Drain(scheduler_->NowNs() + 100'000 * kMs).ok()); }
  // Both kernels side by side: all of the short launch is beside the other one.
  void RunPair(int long_one, int short_one, int64_t rounds) {
    together_ = true;
    Submit(long_one, 6 * rounds);
    Submit(short_one, rounds);
    Drain();
    together_ = false;
  }
  // A run of each kernel beside each other one.
  void RunAllPairs(int rounds) {
    for (int a = 0; a < kKernels; ++a) {
      for (int b = 0; b < kKernels; ++b) {
        if (a != b) RunPair(a, b, 100 + 10 * rounds);
      }
    }
  }
  double MeanErrorSince(size_t first) const {
    double sum = 0;
    for (size_t i = first; i < seen_.size(); ++i) {
      sum += std::abs(seen_[i].predicted / seen_[i].speed - 1);
    }
    return sum / static_cast<double>(seen_.size() - first);
  }

  bool together_ = false;
  uint64_t versions_ = 0;
  int32_t rows_ = 0;
  std::vector<SeenRun> seen_;
  std::vector<KernelId> kernels_;
  std::vector<QueueId> queues_;
};

TEST_F(LearnCoRunsTest, ARunBesideOneKernelIsReportedWithBothWorkers) {
  EXPECT_TRUE(seen_.empty()) << "alone";
  RunPair(0, 1, 400);
  ASSERT_EQ(seen_.size(), 1U) << "the long one was alone for most of its time";
  EXPECT_EQ(seen_[0].own, kernels_[1]);
  EXPECT_EQ(seen_[0].neighbour, kernels_[0]);
  EXPECT_EQ(seen_[0].workers, (std::array<int32_t, 2>{kWorkers, kWorkers}));
  EXPECT_GT(seen_[0].speed, 0.2);
  EXPECT_LT(seen_[0].speed, 1);
}

TEST_F(LearnCoRunsTest, TwoHundredRunsTakeTheErrorAway) {
  RunAllPairs(0);
  ASSERT_EQ(seen_.size(), static_cast<size_t>(kKernels * (kKernels - 1)));
  const double before = MeanErrorSince(0);  // of each pair's first run
  for (const SeenRun& run : seen_) EXPECT_GT(run.error_bar, 0.3) << "the chain's";
  for (int rounds = 1; seen_.size() < 200; ++rounds) RunAllPairs(rounds % 5);
  const size_t learned = seen_.size();
  RunAllPairs(2);
  const double after = MeanErrorSince(learned);
  RecordProperty("error_before", std::to_string(before));
  RecordProperty("error_after", std::to_string(after));
  EXPECT_GT(before, 0.1);
  EXPECT_LT(after, 0.02);
  for (size_t i = learned; i < seen_.size(); ++i) EXPECT_LT(seen_[i].error_bar, 0.1);
}

TEST_F(LearnCoRunsTest, TheTableFollowsWithoutBeingEmptied) {
  RunAllPairs(0);
  const uint64_t before = versions_;
  const int32_t rows = rows_;
  ASSERT_EQ(rows, kKernels);
  RunAllPairs(0);
  EXPECT_GT(versions_, before);
  EXPECT_EQ(rows_, rows);
  const uint64_t after = versions_;
  Submit(0, 100);
  Drain();
  EXPECT_EQ(versions_, after) << "a run alone changes no co-schedule";
}

TEST_F(LearnCoRunsTest, ALaunchThatMetTwoOtherKernelsTellsNothing) {
  together_ = true;
  for (const int kernel : {0, 1, 2}) Submit(kernel, 300);
  Drain();
  // The third one comes behind the first on its lane, so each of them meets the second alone.
  for (const SeenRun& run : seen_) EXPECT_NE(run.own, kernels_[1]);
}

}  // namespace
}  // namespace gpushare::core
