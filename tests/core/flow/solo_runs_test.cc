// BE kernels whose durations are to be learned run by themselves, a few times, where several BE
// apps have work. On the simulated device.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/core/base/tuning.h"
#include "src/core/evidence/tuning.h"
#include "src/core/policies/registry.h"
#include "tests/core/simulated_scheduler.h"

namespace gpushare::core {
namespace {

class SoloRunsTest : public SimulatedSchedulerTest {
 protected:
  void SetUp() override { ASSERT_NO_FATAL_FAILURE(StartScheduler(*MakePolicy("adaptive"))); }

  // Tasks of 1 ms, with workers for half of each SM, so that two tasks fit.
  KernelId HalfKernel(const std::string& name) {
    KernelDesc kernel = EvictableKernel(name, 25 * kUs);
    kernel.resources.workers_per_sm_max = 4;
    return *scheduler_->RegisterKernel(kernel);
  }
  TicketId Submit(QueueId queue, KernelId kernel) {
    TaskSpec spec;
    spec.queue = queue;
    spec.kernel = kernel;
    spec.work.block_tasks = int64_t{sms_} * 4 * 40;
    return *scheduler_->SubmitBe(spec);
  }
  // Of tasks in the order of submission: which ran with nothing beside or behind them.
  std::vector<bool> RanAlone(const std::vector<TicketId>& tasks) {
    std::vector<bool> alone;
    for (const TicketId task : tasks) {
      EXPECT_TRUE(scheduler_->Wait(task, scheduler_->NowNs() + 10'000 * kMs).ok());
      alone.push_back(!scheduler_->Record(task)->beside);
    }
    return alone;
  }
};

TEST_F(SoloRunsTest, TheFirstTasksOfEachKernelRunByThemselves) {
  const QueueId queues[] = {AddQueue(AppClass::kBestEffort, "one"),
                            AddQueue(AppClass::kBestEffort, "other")};
  const KernelId kernels[] = {HalfKernel("one"), HalfKernel("other")};
  constexpr int kEach = kSoloRunsMeasured + 8;
  std::vector<TicketId> tasks;
  for (int i = 0; i < kEach; ++i) {
    for (const int app : {0, 1}) tasks.push_back(Submit(queues[app], kernels[app]));
  }
  const std::vector<bool> alone = RanAlone(tasks);
  for (int i = 0; i < 2 * kSoloRunsMeasured; ++i) EXPECT_TRUE(alone[static_cast<size_t>(i)]) << i;
  int together = 0;
  for (size_t i = 2 * kSoloRunsMeasured; i < alone.size(); ++i) together += alone[i] ? 0 : 1;
  EXPECT_GE(together, 8) << "for ever";
}

// A query evicts each task, so that none is measured.
TEST_F(SoloRunsTest, WhereNoneCanBeMeasuredTheyShareTheDeviceInTheEnd) {
  const QueueId queues[] = {AddQueue(AppClass::kBestEffort, "one"),
                            AddQueue(AppClass::kBestEffort, "other")};
  const KernelId kernels[] = {HalfKernel("one"), HalfKernel("other")};
  const QueueId service = AddQueue(AppClass::kLatencyCritical, "service");
  const KernelId query = *scheduler_->RegisterKernel(Graph("query", 100 * kUs));
  std::vector<TicketId> tasks;
  for (int i = 0; i < kSoloRunsAsked + 32; ++i) {
    for (const int app : {0, 1}) tasks.push_back(Submit(queues[app], kernels[app]));
  }
  while (!scheduler_->Record(tasks.back()).ok()) {
    ASSERT_TRUE(scheduler_->PollUntil(scheduler_->NowNs() + 400 * kUs).ok());
    const TicketId ticket = SubmitGraph(service, query, true);
    ASSERT_TRUE(scheduler_->Wait(ticket, scheduler_->NowNs() + 10 * kMs).ok());
    ASSERT_TRUE(scheduler_->ReleaseTicket(ticket).ok());
  }
  int together = 0;
  for (size_t i = tasks.size() - 32; i < tasks.size(); ++i) {
    together += scheduler_->Record(tasks[i])->beside == kernels[1 - i % 2] ? 1 : 0;
  }
  EXPECT_GT(together, 0) << "for ever";
}

// A task of another app that takes longer than anybody waits.
TEST_F(SoloRunsTest, AKernelWaitsForAnEmptyDeviceForSoLongOnly) {
  const QueueId busy = AddQueue(AppClass::kBestEffort, "busy");
  const QueueId queue = AddQueue(AppClass::kBestEffort, "other");
  const KernelId kernels[] = {HalfKernel("long"), HalfKernel("short")};
  TaskSpec spec;
  spec.queue = busy;
  spec.kernel = kernels[0];
  spec.work.block_tasks = int64_t{sms_} * 4 * 40 * 100;  // 100 ms, which nobody measures alone
  const TicketId running = *scheduler_->SubmitBe(spec);
  ASSERT_TRUE(scheduler_->PollUntil(scheduler_->NowNs() + kMs).ok());
  const TicketId task = Submit(queue, kernels[1]);
  ASSERT_TRUE(scheduler_->PollUntil(scheduler_->NowNs() + kBePassedNsMax / 2).ok());
  EXPECT_FALSE(scheduler_->Record(task).ok());
  ASSERT_TRUE(scheduler_->Wait(task, scheduler_->NowNs() + 1'000 * kMs).ok());
  EXPECT_LT(scheduler_->NowNs(), kBePassedNsMax + 10 * kMs);
  ASSERT_TRUE(scheduler_->Wait(running, scheduler_->NowNs() + 1'000 * kMs).ok());
}

// Its next task hides the latency of a launch, and nobody's share depends on its duration.
TEST_F(SoloRunsTest, AnAppByItselfIsNotMeasuredSo) {
  AppOptions options;
  options.name = "one";
  const AppId app = *scheduler_->CreateApp(options);
  const QueueId queues[] = {*scheduler_->CreateQueue(app), *scheduler_->CreateQueue(app)};
  const KernelId kernel = HalfKernel("one");
  std::vector<TicketId> tasks;
  for (int i = 0; i < 4; ++i) tasks.push_back(Submit(queues[i % 2], kernel));
  EXPECT_FALSE(RanAlone(tasks)[0]);
}

}  // namespace
}  // namespace gpushare::core
