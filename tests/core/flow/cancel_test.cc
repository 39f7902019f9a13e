// A cancellation is a request: work that never started does not run, workers leave at their next
// block-task boundary, and a task whose block tasks were all done first is complete with kOk. The
// whole flow on the simulated device, in virtual time, one thread.

#include <vector>

#include "gtest/gtest.h"
#include "src/core/flow/scheduler.h"
#include "src/core/policies/registry.h"
#include "tests/core/simulated_scheduler.h"

namespace gpushare::core {
namespace {

constexpr int64_t kBlocks = 5000;

class CancelTest : public SimulatedSchedulerTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(StartScheduler(*MakePolicy("adaptive")));
    const AppId app = *scheduler_->CreateApp({.name = "train", .app_class = AppClass::kBestEffort});
    queue_ = *scheduler_->CreateQueue(app);
    other_queue_ = *scheduler_->CreateQueue(app);
    KernelDesc kernel = EvictableKernel("work", 25 * kUs);
    kernel.resources.workers_per_sm_max = 8;
    kernel_ = *scheduler_->RegisterKernel(kernel);
  }

  TicketId Submit(QueueId queue) {
    TaskSpec spec;
    spec.queue = queue;
    spec.kernel = kernel_;
    spec.work.block_tasks = kBlocks;
    return *scheduler_->SubmitBe(spec);
  }
  CompletionRecord Finish(TicketId ticket) {
    EXPECT_TRUE(scheduler_->Wait(ticket, scheduler_->NowNs() + 1000 * kMs).ok());
    const CompletionRecord record = *scheduler_->Record(ticket);
    EXPECT_TRUE(scheduler_->ReleaseTicket(ticket).ok());
    return record;
  }

  QueueId queue_, other_queue_;
  KernelId kernel_;
};

TEST_F(CancelTest, TheVerdictSaysWhetherTheWorkWasAllDoneBeforeTheCancellation) {
  int cancelled = 0, overtaken = 0, refused = 0;
  // From the first microsecond until after the end, which is at some 130 us.
  for (int64_t after_ns = 0; after_ns < 200 * kUs; after_ns += kUs) {
    const TicketId ticket = Submit(queue_);
    ASSERT_TRUE(scheduler_->PollUntil(scheduler_->NowNs() + after_ns).ok());
    const absl::Status status = scheduler_->Cancel(ticket);
    const CompletionRecord record = Finish(ticket);
    if (!status.ok()) {
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
      EXPECT_EQ(record.verdict, Verdict::kOk);
      ++refused;
    } else if (record.verdict == Verdict::kOk) {
      EXPECT_EQ(record.block_tasks, kBlocks);
      ++overtaken;
    } else {
      EXPECT_EQ(record.verdict, Verdict::kCancelled);
      EXPECT_LT(record.block_tasks, kBlocks);
      ++cancelled;
    }
  }
  EXPECT_GT(cancelled, 0);
  EXPECT_GT(overtaken, 0) << "the last workers were at their last block task";
  EXPECT_GT(refused, 0);
}

TEST_F(CancelTest, WorkThatHasNotStartedDoesNotRun) {
  const TicketId first = Submit(queue_);
  const TicketId behind = Submit(queue_);
  ASSERT_TRUE(scheduler_->PollUntil(scheduler_->NowNs() + 20 * kUs).ok());
  ASSERT_TRUE(scheduler_->Cancel(behind).ok());
  const TicketId submitted = Submit(other_queue_);  // not even admitted
  ASSERT_TRUE(scheduler_->Cancel(submitted).ok());
  for (const TicketId ticket : {behind, submitted}) {
    const CompletionRecord record = Finish(ticket);
    EXPECT_EQ(record.verdict, Verdict::kCancelled);
    EXPECT_EQ(record.launches, 0);
    EXPECT_EQ(record.block_tasks, 0);
  }
  EXPECT_EQ(Finish(first).verdict, Verdict::kOk);
}

TEST_F(CancelTest, TheOthersOfAQueueKeepTheirOrder) {
  std::vector<TicketId> tickets;
  for (int i = 0; i < 7; ++i) tickets.push_back(Submit(queue_));
  ASSERT_TRUE(scheduler_->Poll().ok());  // the first one runs, the others wait
  // Two neighbours, the last one, and the head of those that wait.
  for (const size_t cancelled : {size_t{2}, size_t{3}, size_t{6}, size_t{1}}) {
    ASSERT_TRUE(scheduler_->Cancel(tickets[cancelled]).ok());
    EXPECT_TRUE(scheduler_->CheckInvariants().ok());
  }
  tickets.push_back(Submit(queue_));  // behind the sixth, which is the last now
  TimeNs last_ns = 0;
  for (size_t i = 0; i < tickets.size(); ++i) {
    const CompletionRecord record = Finish(tickets[i]);
    const bool cancelled = i == 6 || (i >= 1 && i <= 3);
    EXPECT_EQ(record.verdict, cancelled ? Verdict::kCancelled : Verdict::kOk) << i;
    if (cancelled) continue;
    EXPECT_GT(record.complete_ns, last_ns) << i;
    last_ns = record.complete_ns;
  }
}

}  // namespace
}  // namespace gpushare::core
