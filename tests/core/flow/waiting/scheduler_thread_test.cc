// The scheduler's thread on a device in real time: it does nothing while nothing is there to do,
// and every call that gives it something to do wakes it.

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "src/core/flow/scheduler.h"
#include "src/core/policies/registry.h"
#include "src/models/online/online_model.h"
#include "src/null/paced_device.h"
#include "tests/core/plan_with.h"

namespace gpushare::core {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kPatienceNs = 20'000 * kMs;

void SleepMs(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

class SchedulerThreadTest : public ::testing::TestWithParam<WaitMode> {
 protected:
  void SetUp() override {
    SchedulerOptions options;
    options.wait_mode = GetParam();
    options.report = [this](const std::string& sentence) {
      const std::lock_guard lock(reports_mutex_);
      reports_.push_back(sentence);
    };
    auto device = null::MakePacedDevice();
    auto model = models::MakeOnlineModel(device->capabilities().profile);
    scheduler_ =
        Scheduler::Create(options, std::move(device), std::move(model), *MakePolicy("adaptive"))
            .value();
    lc_ = MakeQueue("service", AppClass::kLatencyCritical);
    be_ = MakeQueue("training", AppClass::kBestEffort);
    query_ = MakeKernel("query", kMs / 2);
    train_ = MakeKernel("train", 3 * kMs);
    ASSERT_TRUE(scheduler_->StartThread().ok());
  }

  QueueId MakeQueue(const char* name, AppClass app_class) {
    return *scheduler_->CreateQueue(*scheduler_->CreateApp({.name = name, .app_class = app_class}));
  }
  KernelId MakeKernel(const char* name, int64_t duration_ns) {
    KernelDesc kernel;
    kernel.name = name;
    kernel.simulation.present = true;
    kernel.simulation.block_task_ns = duration_ns;
    return *scheduler_->RegisterKernel(kernel);
  }
  TaskSpec Spec(AppClass app_class) const {
    TaskSpec spec;
    spec.queue = app_class == AppClass::kBestEffort ? be_ : lc_;
    spec.kernel = app_class == AppClass::kBestEffort ? train_ : query_;
    spec.work.block_tasks = 1;
    return spec;
  }
  TicketId Submit(AppClass app_class, const TaskSpec& spec) {
    const auto ticket = app_class == AppClass::kBestEffort ? scheduler_->SubmitBe(spec)
                                                           : scheduler_->SubmitLc(spec);
    EXPECT_TRUE(ticket.ok()) << ticket.status();
    return *ticket;
  }
  TicketId Submit(AppClass app_class) { return Submit(app_class, Spec(app_class)); }
  void Finish(TicketId ticket) {
    const absl::Status waited = scheduler_->Wait(ticket, scheduler_->NowNs() + kPatienceNs);
    EXPECT_TRUE(waited.ok()) << waited;
    EXPECT_EQ(scheduler_->Record(ticket)->verdict, Verdict::kOk);
    EXPECT_TRUE(scheduler_->ReleaseTicket(ticket).ok());
  }
  // Until the thread parks: in spin mode after 10 ms.
  void AwaitPark() {
    ASSERT_TRUE(scheduler_->Drain(scheduler_->NowNs() + kPatienceNs).ok());
    int64_t ticks = -1;
    for (int looks = 0; looks < 1000 && ticks != scheduler_->Stats().ticks; ++looks) {
      ticks = scheduler_->Stats().ticks;
      SleepMs(30);
    }
  }

  std::vector<std::string> Reports() {
    const std::lock_guard lock(reports_mutex_);
    return reports_;
  }

  std::mutex reports_mutex_;
  std::vector<std::string> reports_;
  std::unique_ptr<Scheduler> scheduler_;
  QueueId lc_, be_;
  KernelId query_, train_;
};

INSTANTIATE_TEST_SUITE_P(Modes, SchedulerThreadTest,
                         ::testing::Values(WaitMode::kBalanced, WaitMode::kSpin),
                         [](const auto& mode) {
                           return mode.param == WaitMode::kSpin ? "spin" : "balanced";
                         });

TEST_P(SchedulerThreadTest, AnIdleThreadDoesNotWakeUp) {
  for (const AppClass app_class : {AppClass::kBestEffort, AppClass::kLatencyCritical}) {
    Finish(Submit(app_class));
    AwaitPark();
    const int64_t ticks = scheduler_->Stats().ticks;
    SleepMs(100);
    EXPECT_EQ(scheduler_->Stats().ticks, ticks);
  }
}

TEST_P(SchedulerThreadTest, ASubmitWakesAParkedThread) {
  for (int i = 0; i < 5; ++i) {
    for (const AppClass app_class : {AppClass::kBestEffort, AppClass::kLatencyCritical}) {
      AwaitPark();
      Finish(Submit(app_class));
    }
  }
}

// A route is published by a plan, so that the first query of a new app launches by itself.
TEST_P(SchedulerThreadTest, ANewAppWakesAParkedThread) {
  AwaitPark();
  lc_ = MakeQueue("second", AppClass::kLatencyCritical);
  AwaitPark();
  const int64_t launches = scheduler_->Stats().fast_path_launches;
  Finish(Submit(AppClass::kLatencyCritical));
  EXPECT_EQ(scheduler_->Stats().fast_path_launches, launches + 1);
}

TEST_P(SchedulerThreadTest, AResumeWakesAParkedThread) {
  ASSERT_TRUE(scheduler_->Quiesce(scheduler_->NowNs() + kPatienceNs).ok());
  const TicketId be = Submit(AppClass::kBestEffort);
  SleepMs(50);
  EXPECT_FALSE(*scheduler_->IsComplete(be));
  ASSERT_TRUE(scheduler_->Resume().ok());
  Finish(be);
}

// A policy that works with slices waits for the end of each, not for that of the task.
TEST_P(SchedulerThreadTest, TheEndOfASliceIsSeenInTime) {
  constexpr int64_t kSlices = 20;
  TaskSpec task = Spec(AppClass::kBestEffort);
  const KernelDesc kernel = *scheduler_->FindKernel(task.kernel);
  const int64_t wave = int64_t{scheduler_->capabilities().profile.sm_count} *
                       std::max(1, kernel.resources.workers_per_sm_max);
  task.work.block_tasks = kSlices * wave;
  for (int i = 0; i < 4; ++i) Finish(Submit(AppClass::kBestEffort, task));  // known from here on
  ASSERT_TRUE(scheduler_
                  ->SetPolicy(std::make_unique<PlanWith>([&](const Snapshot& snapshot, Plan& plan) {
                    for (const HeadView& head : snapshot.heads) {
                      PlannedLaunch& launch = plan.launches.Add();
                      launch.task = head.task;
                      launch.form = Form::kSlice;
                      launch.blocks_max = wave;
                    }
                  }))
                  .ok());
  int64_t least_ns = kNever;
  for (int i = 0; i < 3; ++i) {
    const TimeNs begin_ns = scheduler_->NowNs();
    Finish(Submit(AppClass::kBestEffort, task));
    least_ns = std::min(least_ns, scheduler_->NowNs() - begin_ns);
  }
  EXPECT_LT(least_ns, 2 * kSlices * 3 * kMs);
}

TEST_P(SchedulerThreadTest, ACancellationWakesItsWaiterAndItsCallback) {
  ASSERT_TRUE(scheduler_->Quiesce(scheduler_->NowNs() + kPatienceNs).ok());
  std::atomic<int> calls{0};
  TaskSpec spec = Spec(AppClass::kBestEffort);
  spec.callback_user = &calls;
  spec.callback = [](void* user, const CompletionRecord&) {
    static_cast<std::atomic<int>*>(user)->fetch_add(1);
  };
  const TicketId ticket = Submit(AppClass::kBestEffort, spec);
  std::thread waiter(
      [&] { EXPECT_TRUE(scheduler_->Wait(ticket, scheduler_->NowNs() + kPatienceNs).ok()); });
  SleepMs(50);
  ASSERT_TRUE(scheduler_->Cancel(ticket).ok());
  waiter.join();
  ASSERT_TRUE(scheduler_->Resume().ok());
  AwaitPark();
  EXPECT_EQ(calls.load(), 1);
}

// The cancellation ends the task outside a Tick, and the next Tick finds nothing to do.
TEST_P(SchedulerThreadTest, ADrainReturnsOnceTheLastPendingTaskWasCancelled) {
  ASSERT_TRUE(scheduler_->Quiesce(scheduler_->NowNs() + kPatienceNs).ok());
  const TicketId ticket = Submit(AppClass::kBestEffort);
  const TimeNs deadline_ns = scheduler_->NowNs() + kPatienceNs;
  std::thread drain([&] { EXPECT_TRUE(scheduler_->Drain(deadline_ns).ok()); });
  SleepMs(50);
  ASSERT_TRUE(scheduler_->Cancel(ticket).ok());
  drain.join();
  EXPECT_LT(scheduler_->NowNs(), deadline_ns - kPatienceNs / 2);
}

// Each caller counts the times that it slept. One that is woken for each task of others sleeps
// hundreds of times.
TEST_P(SchedulerThreadTest, CallersThatWaitForSomethingElseSleepOn) {
  constexpr int kCallers = 64;
  constexpr int kTasks = 300;
  void* stream = nullptr;
  const auto region = scheduler_->RegionBegin(lc_, kMs, &stream).value();
  std::vector<int64_t> sleeps(kCallers);
  std::vector<std::thread> callers;
  const TimeNs deadline_ns = scheduler_->NowNs() + kPatienceNs;
  for (int i = 0; i < kCallers; ++i) {
    callers.emplace_back([&, i] {
      EXPECT_TRUE(i % 2 == 0 ? scheduler_->Drain(deadline_ns).ok()
                             : scheduler_->Wait(region, deadline_ns).ok());
      rusage use = {};
      getrusage(RUSAGE_THREAD, &use);
      sleeps[static_cast<size_t>(i)] = use.ru_nvcsw;
    });
  }
  SleepMs(50);
  const QueueId other = MakeQueue("other", AppClass::kLatencyCritical);
  TaskSpec spec = Spec(AppClass::kLatencyCritical);
  spec.queue = other;
  spec.kernel = MakeKernel("short", 1000);
  for (int i = 0; i < kTasks; ++i) Finish(Submit(AppClass::kLatencyCritical, spec));
  ASSERT_TRUE(scheduler_->RegionEnd(region).ok());
  for (std::thread& caller : callers) caller.join();
  EXPECT_LT(*std::max_element(sleeps.begin(), sleeps.end()), kTasks / 10);
}

TEST_P(SchedulerThreadTest, AWaitThatNothingCanEndIsLoggedOnceWithItsReason) {
  ASSERT_TRUE(scheduler_->Quiesce(scheduler_->NowNs() + kPatienceNs).ok());
  const TicketId ticket = Submit(AppClass::kBestEffort);
  SleepMs(50);  // the thread parks before anybody waits
  std::thread drain([&] { EXPECT_TRUE(scheduler_->Drain(kNever).ok()); });
  std::thread wait([&] { EXPECT_TRUE(scheduler_->Wait(ticket, kNever).ok()); });
  for (int looks = 0; looks < 100 && Reports().empty(); ++looks) SleepMs(100);
  SleepMs(1500);
  ASSERT_EQ(Reports().size(), 1U);
  EXPECT_EQ(Reports()[0],
            "2 calls wait without a deadline with 1 tasks pending, and nothing is due that could "
            "end the wait: the runtime is quiesced, until gpushare_runtime_resume.");
  ASSERT_TRUE(scheduler_->Resume().ok());
  drain.join();
  wait.join();
  void* stream = nullptr;
  const auto region = scheduler_->RegionBegin(lc_, kMs, &stream).value();
  std::thread again([&] { EXPECT_TRUE(scheduler_->Drain(kNever).ok()); });
  // The region's app is reported as well, once the region is overdue.
  const auto said = [&] {
    const auto reports = Reports();
    return std::count_if(reports.begin(), reports.end(), [](const std::string& report) {
      return report.find("of app 'service' is a region that is open") != std::string::npos;
    });
  };
  for (int looks = 0; looks < 100 && said() == 0; ++looks) SleepMs(100);
  ASSERT_TRUE(scheduler_->RegionEnd(region).ok());
  again.join();
  EXPECT_EQ(said(), 1) << ::testing::PrintToString(Reports());
}

TEST_P(SchedulerThreadTest, AWaitWithADeadlineOrForWorkThatRunsIsNotLogged) {
  ASSERT_TRUE(scheduler_->Quiesce(scheduler_->NowNs() + kPatienceNs).ok());
  const TicketId ticket = Submit(AppClass::kBestEffort);
  EXPECT_FALSE(scheduler_->Wait(ticket, scheduler_->NowNs() + 1300 * kMs).ok());
  ASSERT_TRUE(scheduler_->Resume().ok());
  Finish(ticket);
  TaskSpec spec = Spec(AppClass::kBestEffort);
  spec.kernel = MakeKernel("hours", 1300 * kMs);
  EXPECT_TRUE(scheduler_->Wait(Submit(AppClass::kBestEffort, spec), kNever).ok());
  EXPECT_TRUE(Reports().empty()) << Reports()[0];
}

// The thread has parked again since the region began.
TEST_P(SchedulerThreadTest, TheEndOfARegionWakesAParkedThread) {
  void* stream = nullptr;
  const auto region = scheduler_->RegionBegin(lc_, kMs, &stream).value();
  SleepMs(50);
  ASSERT_TRUE(scheduler_->RegionEnd(region).ok());
  Finish(region);
}

TEST_P(SchedulerThreadTest, AWaitEndsAtItsDeadline) {
  ASSERT_TRUE(scheduler_->Quiesce(scheduler_->NowNs() + kPatienceNs).ok());
  const TicketId ticket = Submit(AppClass::kBestEffort);
  const TimeNs deadline_ns = scheduler_->NowNs() + 20 * kMs;
  EXPECT_EQ(scheduler_->Wait(ticket, deadline_ns).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_GE(scheduler_->NowNs(), deadline_ns);
  ASSERT_TRUE(scheduler_->Resume().ok());
  Finish(ticket);
}

TEST_P(SchedulerThreadTest, AShutdownWithALaunchInFlightEndsBeforeItsDeadline) {
  const TicketId be = Submit(AppClass::kBestEffort);
  std::thread waiter(
      [&] { EXPECT_TRUE(scheduler_->Wait(be, scheduler_->NowNs() + kPatienceNs).ok()); });
  SleepMs(1);
  EXPECT_TRUE(scheduler_->Shutdown(scheduler_->NowNs() + kPatienceNs).ok());
  waiter.join();
}

// Each thread submits, waits and releases, while others do: a missed completion would hang.
TEST_P(SchedulerThreadTest, ManyCallersEachSeeTheirOwnCompletion) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([this, t] {
      const AppClass app_class = t % 2 == 0 ? AppClass::kLatencyCritical : AppClass::kBestEffort;
      for (int i = 0; i < 30; ++i) Finish(Submit(app_class));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(scheduler_->Stats().tasks_pending, 0);
}

}  // namespace
}  // namespace gpushare::core
