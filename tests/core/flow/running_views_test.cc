// What the snapshot says is left of a BE task that runs with fewer workers than its SMs hold.
// Simulated device, virtual time.

#include <cstdint>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "src/core/flow/plan.h"
#include "src/core/flow/scheduler.h"
#include "tests/core/plan_with.h"
#include "tests/core/simulated_scheduler.h"

namespace gpushare::core {
namespace {

constexpr int32_t kWorkersPerSm = 2;  // of the 8 that an SM holds

// Of the task that runs first.
struct Seen {
  int64_t elapsed_ns = 0;
  int64_t left_ns = 0;
};

class RunningViewsTest : public SimulatedSchedulerTest {
 protected:
  // Launches a head, unless it is held, with a quarter of the workers.
  void MakePlan(const Snapshot& snapshot, Plan& plan) {
    if (!snapshot.running.empty()) {
      const RunningView& first = snapshot.running.front();
      seen_ = {snapshot.now_ns - first.parts[0].launched_ns, first.task.remaining.duration_ns};
    }
    if (hold_) return;
    for (const HeadView& head : snapshot.heads) {
      if (snapshot.running.empty()) whole_ns_ = head.remaining.duration_ns;
      PlannedLaunch& launch = plan.launches.Add();
      launch.task = head.task;
      launch.form = Form::kWorkers;
      launch.lane_class = LaneClass::kBe;
      launch.workers = kWorkersPerSm * snapshot.sm_count;
    }
  }

  // A kernel that takes 10 ms with all workers.
  void Start(double saturating_occupancy) {
    ASSERT_NO_FATAL_FAILURE(StartScheduler(std::make_unique<PlanWith>(
        [this](const Snapshot& snapshot, Plan& plan) { MakePlan(snapshot, plan); })));
    KernelDesc kernel = EvictableKernel("work", 100 * kUs);
    kernel.simulation.saturating_occupancy = saturating_occupancy;
    kernel_ = *scheduler_->RegisterKernel(kernel);
    Submit(/*hold=*/false);
  }
  void Submit(bool hold) {
    hold_ = hold;
    TaskSpec spec;
    spec.queue = AddQueue(AppClass::kBestEffort, "train");
    spec.kernel = kernel_;
    spec.work.block_tasks = int64_t{100} * 8 * sms_;
    ASSERT_TRUE(scheduler_->SubmitBe(spec).ok());
    scheduler_->Tick();
  }
  void Pass(int64_t ns) { EXPECT_FALSE(scheduler_->Drain(scheduler_->NowNs() + ns).ok()); }

  bool hold_ = false;
  int64_t whole_ns_ = 0;
  Seen seen_;
  KernelId kernel_;
};

TEST_F(RunningViewsTest, AsManyWorkersAsSaturateAnSmAreAsFastAsAll) {
  ASSERT_NO_FATAL_FAILURE(Start(0.25));
  Pass(5 * kMs);
  Submit(/*hold=*/true);
  EXPECT_GE(seen_.elapsed_ns, 4 * kMs);
  EXPECT_EQ(whole_ns_ - seen_.left_ns, seen_.elapsed_ns);
}

TEST_F(RunningViewsTest, FewerAreFasterThanTheirShare) {
  ASSERT_NO_FATAL_FAILURE(Start(0.5));
  Pass(5 * kMs);
  Submit(/*hold=*/true);
  EXPECT_GE(seen_.elapsed_ns, 4 * kMs);
  EXPECT_EQ(whole_ns_ - seen_.left_ns, seen_.elapsed_ns / 2);
}

TEST_F(RunningViewsTest, WhereNobodyKnowsTheirSpeedIsTheirShare) {
  ASSERT_NO_FATAL_FAILURE(Start(1));
  Pass(5 * kMs);
  Submit(/*hold=*/true);
  EXPECT_GE(seen_.elapsed_ns, 4 * kMs);
  EXPECT_EQ(whole_ns_ - seen_.left_ns, seen_.elapsed_ns / 4);
}

TEST_F(RunningViewsTest, BesideAnotherTaskTheirSpeedIsTheirShare) {
  ASSERT_NO_FATAL_FAILURE(Start(0.25));
  Submit(/*hold=*/false);
  Pass(5 * kMs);
  Submit(/*hold=*/true);
  EXPECT_GE(seen_.elapsed_ns, 4 * kMs);
  EXPECT_EQ(whole_ns_ - seen_.left_ns, seen_.elapsed_ns / 4);
}

}  // namespace
}  // namespace gpushare::core
