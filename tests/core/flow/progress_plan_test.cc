// The flow's own plan, where the policy makes none: every task runs, and BE does not delay LC.

#include "src/core/flow/planning/progress_plan.h"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "src/core/flow/scheduler.h"
#include "tests/core/simulated_scheduler.h"

namespace gpushare::core {
namespace {

class ThrowingPolicy final : public Policy {
 public:
  absl::string_view name() const override { return "throwing"; }
  void MakePlan(const Snapshot& /*snapshot*/, Plan& /*plan*/) override {
    throw std::runtime_error("no plan");
  }
};

class ProgressPlanTest : public SimulatedSchedulerTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(StartScheduler(std::make_unique<ThrowingPolicy>()));
    kernel_ = *scheduler_->RegisterKernel(EvictableKernel("work", 25 * kUs));
  }
  TaskSpec Spec(QueueId queue) const {
    TaskSpec spec;
    spec.queue = queue;
    spec.kernel = kernel_;
    spec.work.block_tasks = 10'000;
    return spec;
  }
  CompletionRecord RecordOf(TicketId ticket) {
    EXPECT_TRUE(scheduler_->Wait(ticket, scheduler_->NowNs() + 1000 * kMs).ok());
    return *scheduler_->Record(ticket);
  }

  KernelId kernel_;
};

TEST_F(ProgressPlanTest, BeIsLaunchedOnAnIdleDeviceOnly) {
  const TicketId first = *scheduler_->SubmitBe(Spec(AddQueue(AppClass::kBestEffort, "first")));
  scheduler_->Tick();
  const TicketId second = *scheduler_->SubmitBe(Spec(AddQueue(AppClass::kBestEffort, "second")));
  const TicketId third = *scheduler_->SubmitBe(Spec(AddQueue(AppClass::kBestEffort, "third")));
  const TimeNs idle_ns = RecordOf(first).end_ns;
  EXPECT_GE(RecordOf(second).launch_ns, idle_ns);
  EXPECT_GE(RecordOf(third).launch_ns, idle_ns);
}

TEST_F(ProgressPlanTest, BeWaitsWhileAnLcTaskRuns) {
  const TicketId lc = *scheduler_->SubmitLc(Spec(AddQueue(AppClass::kLatencyCritical, "service")));
  scheduler_->Tick();
  const TicketId be = *scheduler_->SubmitBe(Spec(AddQueue(AppClass::kBestEffort, "train")));
  EXPECT_GE(RecordOf(be).launch_ns, RecordOf(lc).end_ns);
}

TEST_F(ProgressPlanTest, LcTasksAreLaunchedTogether) {
  std::vector<TicketId> tickets;
  for (int i = 0; i < 3; ++i) {
    const QueueId queue = AddQueue(AppClass::kLatencyCritical, "service" + std::to_string(i));
    tickets.push_back(*scheduler_->SubmitLc(Spec(queue)));
  }
  TimeNs first_end_ns = kNever;
  for (const TicketId ticket : tickets) {
    const CompletionRecord record = RecordOf(ticket);
    EXPECT_LT(record.launch_ns, first_end_ns);
    first_end_ns = std::min(first_end_ns, record.end_ns);
  }
}

}  // namespace
}  // namespace gpushare::core
