// Which evictions count as blocked: those that are lost, and not those that take effect in time.

#include "src/core/flow/loss/hangs.h"

#include <memory>

#include "gtest/gtest.h"
#include "src/core/flow/scheduler.h"
#include "src/core/policies/registry.h"
#include "tests/core/simulated_scheduler.h"

namespace gpushare::core {
namespace {

class HangsTest : public SimulatedSchedulerTest {
 protected:
  void Start(double blocked_evictions) {
    sim::SimOptions sim_options;
    sim_options.faults.blocked_eviction.probability = blocked_evictions;
    ASSERT_NO_FATAL_FAILURE(StartScheduler(*MakePolicy("adaptive"), {}, sim_options));
    // Clocks of a process that runs for long are far from 0.
    ASSERT_TRUE(scheduler_->PollUntil(3600 * 1000 * kMs).ok());
    TaskSpec be;
    be.queue = AddQueue(AppClass::kBestEffort, "train");
    be.kernel = *scheduler_->RegisterKernel(EvictableKernel("work", 25 * kUs));
    be.work.block_tasks = 10'000'000;
    be_ = *scheduler_->SubmitBe(be);
    ASSERT_TRUE(scheduler_->PollUntil(scheduler_->NowNs() + kMs).ok());
  }
  Verdict RunQuery() {
    TaskSpec query;
    query.queue = AddQueue(AppClass::kLatencyCritical, "service");
    query.kernel = *scheduler_->RegisterKernel(Graph("query", kMs));
    query.work.kind = TaskKind::kGraph;
    const TicketId ticket = *scheduler_->SubmitLc(query);
    EXPECT_TRUE(scheduler_->Wait(ticket, scheduler_->NowNs() + 60 * 1000 * kMs).ok());
    return scheduler_->Record(ticket)->verdict;
  }

  TicketId be_;
};

TEST_F(HangsTest, AnEvictionThatTakesEffectInTimeIsNotBlocked) {
  ASSERT_NO_FATAL_FAILURE(Start(0));
  EXPECT_EQ(RunQuery(), Verdict::kOk);
  EXPECT_GT(scheduler_->Stats().evictions, 0);
  EXPECT_EQ(scheduler_->Stats().evictions_blocked, 0);
}

TEST_F(HangsTest, AnEvictionThatIsLostIsBlockedOnce) {
  ASSERT_NO_FATAL_FAILURE(Start(1));
  RunQuery();
  EXPECT_EQ(scheduler_->Stats().evictions_blocked, 1);
}

}  // namespace
}  // namespace gpushare::core
