// The whole flow on the null device: every accepted task completes exactly once, whatever the
// caller does.

#include "src/core/flow/scheduler.h"

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "src/core/policies/registry.h"
#include "src/models/online/online_model.h"
#include "src/null/null_device.h"

namespace gpushare::core {
namespace {

constexpr int64_t kMs = 1000 * 1000;

class SchedulerTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    auto device = null::MakeNullDevice();
    auto model = models::MakeOnlineModel(device->capabilities().profile);
    auto policy = MakePolicy(GetParam()).value();
    scheduler_ = Scheduler::Create(SchedulerOptions(), std::move(device), std::move(model),
                                   std::move(policy))
                     .value();
    KernelDesc kernel;
    kernel.name = "work";
    kernel.evictable = true;
    kernel_ = *scheduler_->RegisterKernel(kernel);
    lc_ = MakeQueue(AppClass::kLatencyCritical, "server", &lc_app_);
    be_ = MakeQueue(AppClass::kBestEffort, "train", &be_app_);
  }

  QueueId MakeQueue(AppClass app_class, const char* name, AppId* app) {
    *app = *scheduler_->CreateApp({.name = name, .app_class = app_class});
    return *scheduler_->CreateQueue(*app);
  }

  TaskSpec Spec(QueueId queue) const {
    TaskSpec spec;
    spec.queue = queue;
    spec.kernel = kernel_;
    spec.work.block_tasks = 64;
    return spec;
  }

  // Only what never comes takes so long: a loaded machine may take seconds from a thread.
  TimeNs Soon() const { return scheduler_->NowNs() + 60'000 * kMs; }

  std::unique_ptr<Scheduler> scheduler_;
  KernelId kernel_;
  AppId lc_app_, be_app_;
  QueueId lc_, be_;
};

INSTANTIATE_TEST_SUITE_P(Policies, SchedulerTest,
                         ::testing::Values("bare", "fifo", "priority", "baymax", "smguard",
                                           "adaptive"));

TEST_P(SchedulerTest, EveryTaskCompletesOnceAndItsCallbackRunsOnce) {
  std::atomic<int> callbacks{0};
  std::vector<TicketId> tickets;
  for (int i = 0; i < 200; ++i) {
    TaskSpec spec = Spec(i % 3 == 0 ? lc_ : be_);
    spec.callback = [](void* user, const CompletionRecord& record) {
      EXPECT_EQ(record.verdict, Verdict::kOk);
      static_cast<std::atomic<int>*>(user)->fetch_add(1);
    };
    spec.callback_user = &callbacks;
    tickets.push_back(
        (i % 3 == 0 ? scheduler_->SubmitLc(spec) : scheduler_->SubmitBe(spec)).value());
  }
  ASSERT_TRUE(scheduler_->Drain(Soon()).ok());
  EXPECT_EQ(callbacks.load(), 200);
  for (TicketId ticket : tickets) {
    auto record = scheduler_->Record(ticket).value();
    EXPECT_EQ(record.verdict, Verdict::kOk);
    EXPECT_EQ(record.block_tasks, 64);
    EXPECT_TRUE(scheduler_->ReleaseTicket(ticket).ok());
    EXPECT_FALSE(scheduler_->Record(ticket).ok()) << "a released ticket has no record";
  }
  EXPECT_EQ(scheduler_->Stats().tasks_pending, 0);
}

TEST_P(SchedulerTest, TasksOfAQueueRunInOrderOfSubmission) {
  struct Order {
    std::vector<int> seen;
  } order;
  struct Item {
    Order* order;
    int index;
  };
  std::vector<Item> items(50);
  for (int i = 0; i < 50; ++i) {
    items[static_cast<size_t>(i)] = {&order, i};
    TaskSpec spec = Spec(be_);
    spec.detached = true;
    spec.callback_user = &items[static_cast<size_t>(i)];
    spec.callback = [](void* user, const CompletionRecord&) {
      auto* item = static_cast<Item*>(user);
      item->order->seen.push_back(item->index);
    };
    ASSERT_TRUE(scheduler_->SubmitBe(spec).ok());
  }
  ASSERT_TRUE(scheduler_->Drain(Soon()).ok());
  ASSERT_EQ(order.seen.size(), 50u);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(order.seen[static_cast<size_t>(i)], i);
}

TEST_P(SchedulerTest, AFullAppIsRefusedAndItsNeighbourIsNot) {
  AppOptions options = {.name = "small", .app_class = AppClass::kBestEffort, .tasks_max = 4};
  const QueueId queue = *scheduler_->CreateQueue(*scheduler_->CreateApp(options));
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(scheduler_->SubmitBe(Spec(queue)).ok());
  const auto refused = scheduler_->SubmitBe(Spec(queue));
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(scheduler_->SubmitBe(Spec(be_)).ok());
  ASSERT_TRUE(scheduler_->Drain(Soon()).ok());
}

TEST_P(SchedulerTest, ATaskWaitsForTheTicketsItNames) {
  const TicketId first = *scheduler_->SubmitBe(Spec(be_));
  AppId other_app;
  const QueueId other = MakeQueue(AppClass::kLatencyCritical, "other", &other_app);
  TaskSpec spec = Spec(other);
  const TicketId waits[] = {first};
  spec.wait_tickets = waits;
  const TicketId second = *scheduler_->SubmitLc(spec);
  ASSERT_TRUE(scheduler_->Wait(second, Soon()).ok());
  EXPECT_TRUE(*scheduler_->IsComplete(first));
  EXPECT_LE(scheduler_->Record(first)->complete_ns, scheduler_->Record(second)->launch_ns);
}

TEST_P(SchedulerTest, ACancelledTaskCompletesAsCancelled) {
  ASSERT_TRUE(scheduler_->Quiesce(Soon()).ok());
  const TicketId ticket = *scheduler_->SubmitBe(Spec(be_));
  scheduler_->Tick();
  ASSERT_TRUE(scheduler_->Cancel(ticket).ok());
  ASSERT_TRUE(scheduler_->Wait(ticket, Soon()).ok());
  EXPECT_EQ(scheduler_->Record(ticket)->verdict, Verdict::kCancelled);
  EXPECT_EQ(scheduler_->Cancel(ticket).code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(scheduler_->Resume().ok());
}

TEST_P(SchedulerTest, NothingIsLaunchedWhileQuiesced) {
  ASSERT_TRUE(scheduler_->Quiesce(Soon()).ok());
  const TicketId ticket = *scheduler_->SubmitLc(Spec(lc_));
  for (int i = 0; i < 10; ++i) scheduler_->Tick();
  EXPECT_FALSE(*scheduler_->IsComplete(ticket));
  ASSERT_TRUE(scheduler_->Resume().ok());
  EXPECT_TRUE(scheduler_->Wait(ticket, Soon()).ok());
}

TEST_P(SchedulerTest, AQueryIsDoneWhenItWasEndedAndItsTasksAre) {
  const QueryId query = *scheduler_->BeginQuery(lc_, 0);
  for (int i = 0; i < 72; ++i) {
    TaskSpec spec = Spec(lc_);
    spec.query = query;
    ASSERT_TRUE(scheduler_->SubmitLc(spec).ok());
  }
  ASSERT_TRUE(scheduler_->Drain(Soon()).ok());
  EXPECT_EQ(scheduler_->StatsOf(lc_app_)->latency.count, 0) << "not ended yet";
  ASSERT_TRUE(scheduler_->EndQuery(query).ok());
  for (int i = 0; i < 10; ++i) scheduler_->Tick();
  EXPECT_EQ(scheduler_->StatsOf(lc_app_)->latency.count, 1);
  EXPECT_FALSE(scheduler_->EndQuery(query).ok()) << "ended twice";
}

// A call that waits would wait for its own callback to return.
TEST_P(SchedulerTest, CallsThatWaitAreRefusedInACallback) {
  struct Probe {
    Scheduler* scheduler;
    std::vector<absl::Status> refusals;
  } probe{scheduler_.get(), {}};
  TaskSpec spec = Spec(lc_);
  spec.callback_user = &probe;
  spec.callback = [](void* user, const CompletionRecord& record) {
    auto& [scheduler, refusals] = *static_cast<Probe*>(user);
    refusals = {scheduler->Wait(record.ticket, kNever),
                scheduler->Drain(kNever),
                scheduler->Quiesce(kNever),
                scheduler->Shutdown(kNever),
                scheduler->Poll().status(),
                scheduler->PollUntil(record.complete_ns + 1)};
  };
  ASSERT_TRUE(scheduler_->SubmitLc(spec).ok());
  ASSERT_TRUE(scheduler_->Drain(Soon()).ok());
  while (scheduler_->Tick()) {
  }
  ASSERT_EQ(probe.refusals.size(), 6u);
  for (const absl::Status& refusal : probe.refusals) {
    EXPECT_EQ(refusal.code(), absl::StatusCode::kFailedPrecondition) << refusal;
  }
  EXPECT_TRUE(scheduler_->SubmitLc(Spec(lc_)).ok()) << "the scheduler still accepts work";
}

TEST_P(SchedulerTest, ShutdownCompletesWhatIsLeftAndRefusesNewWork) {
  std::vector<TicketId> tickets;
  for (int i = 0; i < 20; ++i) tickets.push_back(*scheduler_->SubmitBe(Spec(be_)));
  void* stream = nullptr;
  const TicketId region = *scheduler_->RegionBegin(lc_, kMs, &stream);
  ASSERT_TRUE(scheduler_->Shutdown(Soon()).ok());
  for (TicketId ticket : tickets) EXPECT_TRUE(*scheduler_->IsComplete(ticket));
  EXPECT_EQ(scheduler_->Record(region)->verdict, Verdict::kShutdown);
  EXPECT_EQ(scheduler_->SubmitBe(Spec(be_)).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(scheduler_->Shutdown(Soon()).ok()) << "idempotent";
}

TEST_P(SchedulerTest, ARegionCompletesAfterItsEnd) {
  void* stream = nullptr;
  const TicketId region = *scheduler_->RegionBegin(lc_, kMs, &stream);
  for (int i = 0; i < 5; ++i) scheduler_->Tick();
  EXPECT_FALSE(*scheduler_->IsComplete(region));
  ASSERT_TRUE(scheduler_->RegionEnd(region).ok());
  EXPECT_TRUE(scheduler_->Wait(region, Soon()).ok());
  EXPECT_FALSE(scheduler_->RegionEnd(region).ok()) << "ended twice";
}

TEST_P(SchedulerTest, AnAppWithPendingWorkIsNotReleased) {
  ASSERT_TRUE(scheduler_->Quiesce(Soon()).ok());
  ASSERT_TRUE(scheduler_->SubmitBe(Spec(be_)).ok());
  EXPECT_EQ(scheduler_->ReleaseApp(be_app_).code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(scheduler_->Resume().ok());
  ASSERT_TRUE(scheduler_->Drain(Soon()).ok());
  EXPECT_TRUE(scheduler_->ReleaseApp(be_app_).ok());
  EXPECT_FALSE(scheduler_->SubmitBe(Spec(be_)).ok()) << "its queue went with it";
  EXPECT_FALSE(scheduler_->ReleaseApp(be_app_).ok());
}

TEST_P(SchedulerTest, BadSubmitsAreRefusedAndLoseNothing) {
  TaskSpec spec = Spec(be_);
  spec.work.block_tasks = 0;
  EXPECT_EQ(scheduler_->SubmitBe(spec).status().code(), absl::StatusCode::kInvalidArgument);
  spec = Spec(be_);
  spec.kernel = KernelId{77};
  EXPECT_EQ(scheduler_->SubmitBe(spec).status().code(), absl::StatusCode::kInvalidArgument);
  spec = Spec(be_);
  const std::vector<char> large(kMaxArgumentBytes + 1);
  spec.work.arguments = large.data();
  spec.work.arguments_bytes = large.size();
  EXPECT_EQ(scheduler_->SubmitBe(spec).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(scheduler_->SubmitLc(Spec(be_)).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(scheduler_->Stats().tasks_pending, 0);
}

TEST_P(SchedulerTest, ManyThreadsSubmitAndEveryTaskCompletes) {
  ASSERT_TRUE(scheduler_->StartThread().ok());
  EXPECT_EQ(scheduler_->Poll().status().code(), absl::StatusCode::kFailedPrecondition);
  std::atomic<int> callbacks{0};
  std::atomic<int> accepted{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const QueueId queue = *scheduler_->CreateQueue(t % 2 == 0 ? lc_app_ : be_app_);
      for (int i = 0; i < 2000; ++i) {
        TaskSpec spec = Spec(queue);
        spec.detached = i % 4 != 0;
        spec.callback_user = &callbacks;
        spec.callback = [](void* user, const CompletionRecord&) {
          static_cast<std::atomic<int>*>(user)->fetch_add(1);
        };
        auto ticket = t % 2 == 0 ? scheduler_->SubmitLc(spec) : scheduler_->SubmitBe(spec);
        if (!ticket.ok()) {
          std::this_thread::yield();
          continue;
        }
        accepted.fetch_add(1);
        if (spec.detached) continue;
        EXPECT_TRUE(scheduler_->Wait(*ticket, Soon()).ok());
        EXPECT_TRUE(scheduler_->ReleaseTicket(*ticket).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(scheduler_->Drain(Soon()).ok());
  ASSERT_TRUE(scheduler_->Shutdown(Soon()).ok());
  EXPECT_EQ(callbacks.load(), accepted.load());
  EXPECT_GT(accepted.load(), 4000);
}

}  // namespace
}  // namespace gpushare::core
