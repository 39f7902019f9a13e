// Callers that wait for LC work: they spin near the predicted end, within bounds, and nobody else
// does. On the paced device, in real time. Processor time is asserted and not wall time, so that a
// busy machine fails nothing.

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "src/core/base/tuning.h"
#include "src/core/flow/scheduler.h"
#include "src/core/flow/verbs/spin_window.h"
#include "src/core/flow/waiting/spinners.h"
#include "src/core/policies/registry.h"
#include "src/models/online/online_model.h"
#include "src/null/paced_device.h"

namespace gpushare::core {
namespace {

constexpr int64_t kUs = 1000;
constexpr int64_t kMs = 1000 * kUs;
constexpr int64_t kPatienceNs = 20'000 * kMs;

// --- the window ---

TEST(SpinWindowTest, AShortQueryIsSpunOnFromItsBegin) {
  const SpinWindow window = SpinWindowOf(1000 * kUs, 1200 * kUs, 0, WaitMode::kBalanced, 2 * kMs);
  EXPECT_LE(window.from_ns, 1000 * kUs);
  EXPECT_EQ(window.until_ns, 1200 * kUs + kLcSpinNs);
}

TEST(SpinWindowTest, ALongQueryIsSpunOnNearItsEndAlone) {
  // 3/8 of 2 ms, and two error bars.
  const SpinWindow window = SpinWindowOf(0, 2 * kMs, 20 * kUs, WaitMode::kBalanced, 2 * kMs);
  EXPECT_EQ(window.from_ns, 2 * kMs - 750 * kUs - 40 * kUs);
  EXPECT_EQ(window.until_ns, 2 * kMs + 500 * kUs);
}

TEST(SpinWindowTest, TheBoundIsHalfBeforeTheEndAndHalfBehind) {
  for (const WaitMode mode : {WaitMode::kBalanced, WaitMode::kSpin}) {
    const SpinWindow window = SpinWindowOf(0, 900 * kMs, 100 * kMs, mode, 2 * kMs);
    EXPECT_EQ(window.from_ns, 899 * kMs);
    EXPECT_EQ(window.until_ns, 901 * kMs);
  }
  const SpinWindow whole = SpinWindowOf(0, 4 * kMs, 0, WaitMode::kSpin, kCallerSpinModeNs);
  EXPECT_EQ(whole.from_ns, 0);
}

TEST(SpinWindowTest, TheModeGivesTheBoundUnlessOneIsGiven) {
  SchedulerOptions options;
  EXPECT_EQ(CallerSpinNs(options), kCallerSpinNs);
  options.wait_mode = WaitMode::kSpin;
  EXPECT_EQ(CallerSpinNs(options), kCallerSpinModeNs);
  options.caller_spin_ns = 5 * kUs;
  EXPECT_EQ(CallerSpinNs(options), 5 * kUs);
  options.caller_spin_ns = -1;
  EXPECT_EQ(CallerSpinNs(options), 0);
}

// --- how many spin ---

TEST(SpinnersTest, HalfOfTheCoresSpinAndASingleOneNever) {
  EXPECT_EQ(Spinners::MostOf(1), 0);
  EXPECT_EQ(Spinners::MostOf(2), 1);
  EXPECT_EQ(Spinners::MostOf(16), 8);
  EXPECT_GE(UsableCores(), 1);
}

TEST(SpinnersTest, AnotherMaySpinOnceOneHasLeft) {
  Spinners none(0);
  EXPECT_FALSE(none.TryEnter(0));
  Spinners two(2);
  EXPECT_TRUE(two.TryEnter(0));
  EXPECT_TRUE(two.TryEnter(0));
  EXPECT_FALSE(two.TryEnter(0));
  two.Leave({0, false});
  EXPECT_TRUE(two.TryEnter(0));
}

TEST(SpinnersTest, NobodySpinsForAWhileAfterACrowdedSpin) {
  Spinners spinners(1);
  TimeNs now_ns = 0;
  for (int64_t rest_ns = kCrowdedRestNsMin; rest_ns < kCrowdedRestNsMax; rest_ns *= 2) {
    ASSERT_TRUE(spinners.TryEnter(now_ns)) << rest_ns;
    spinners.Leave({now_ns, true});
    EXPECT_FALSE(spinners.TryEnter(now_ns + rest_ns - 1)) << rest_ns;
    now_ns += rest_ns;
  }
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(spinners.TryEnter(now_ns));
    spinners.Leave({now_ns, true});
    now_ns += kCrowdedRestNsMax;
  }
  ASSERT_TRUE(spinners.TryEnter(now_ns));
  spinners.Leave({now_ns, false, true});  // the core is its own again
  ASSERT_TRUE(spinners.TryEnter(now_ns));
  spinners.Leave({now_ns, true});
  EXPECT_TRUE(spinners.TryEnter(now_ns + kCrowdedRestNsMin));
}

TEST(SpinnersTest, ASpinWithoutAYieldDoesNotEndTheRests) {
  Spinners spinners(1);
  ASSERT_TRUE(spinners.TryEnter(0));
  spinners.Leave({0, true});
  TimeNs now_ns = kCrowdedRestNsMin;
  ASSERT_TRUE(spinners.TryEnter(now_ns));
  spinners.Leave({now_ns, false, false});  // over before it saw who wants the core
  ASSERT_TRUE(spinners.TryEnter(now_ns));
  spinners.Leave({now_ns, true});
  EXPECT_FALSE(spinners.TryEnter(now_ns + 2 * kCrowdedRestNsMin - 1));
  EXPECT_TRUE(spinners.TryEnter(now_ns + 2 * kCrowdedRestNsMin));
}

// Against a device whose clock does not matter: the spin ends by `done` or by the time.
TEST(SpinnersTest, ASpinEndsByItsConditionOrItsTime) {
  const auto device = null::MakePacedDevice();
  int looks = 0;
  const auto always = [](TimeNs) { return true; };
  const Spun seen = SpinWhile(*device, always, [&] { return ++looks == 5; });
  EXPECT_EQ(looks, 5);
  EXPECT_FALSE(seen.crowded);
  EXPECT_FALSE(seen.yielded) << "it ended before its first look at the clock";
  const TimeNs end_ns = device->NowNs() + 200 * kUs;
  const Spun late = SpinWhile(
      *device, [&](TimeNs now_ns) { return now_ns < end_ns; }, [] { return false; });
  EXPECT_TRUE(late.crowded || late.ended_ns >= end_ns);
  EXPECT_TRUE(late.crowded || late.yielded);
}

// --- waits ---

// What this thread has used.
struct Use {
  int64_t cpu_ns = 0;
  int64_t sleeps = 0;
};
Use UseNow() {
  timespec cpu = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
  rusage use = {};
  getrusage(RUSAGE_THREAD, &use);
  return {cpu.tv_sec * 1000 * kMs + cpu.tv_nsec, use.ru_nvcsw};
}

// Whether other threads take this thread's core.
bool IsCrowded() {
  const auto device = null::MakePacedDevice();
  for (int i = 0; i < 10; ++i) {
    const TimeNs end_ns = device->NowNs() + 5 * kMs;
    const auto goes_on = [&](TimeNs now_ns) { return now_ns < end_ns; };
    if (SpinWhile(*device, goes_on, [] { return false; }).crowded) return true;
  }
  return false;
}

class CallerSpinTest : public ::testing::TestWithParam<WaitMode> {
 protected:
  void Open(int64_t caller_spin_ns) {
    SchedulerOptions options;
    options.wait_mode = GetParam();
    options.caller_spin_ns = caller_spin_ns;
    auto device = null::MakePacedDevice();
    auto model = models::MakeOnlineModel(device->capabilities().profile);
    scheduler_ =
        Scheduler::Create(options, std::move(device), std::move(model), *MakePolicy("adaptive"))
            .value();
    lc_ = MakeQueue("service", AppClass::kLatencyCritical);
    be_ = MakeQueue("training", AppClass::kBestEffort);
    short_ = MakeKernel("short", 200 * kUs);
    long_ = MakeKernel("long", 40 * kMs);
    ASSERT_TRUE(scheduler_->StartThread().ok());
  }
  void TearDown() override {
    if (scheduler_ == nullptr) return;
    EXPECT_TRUE(scheduler_->Shutdown(scheduler_->NowNs() + kPatienceNs).ok());
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
  TicketId Submit(QueueId queue, KernelId kernel) {
    TaskSpec spec;
    spec.queue = queue;
    spec.kernel = kernel;
    spec.work.block_tasks = 1;
    const auto ticket = queue == be_ ? scheduler_->SubmitBe(spec) : scheduler_->SubmitLc(spec);
    EXPECT_TRUE(ticket.ok()) << ticket.status();
    return *ticket;
  }
  void Run(QueueId queue, KernelId kernel) {
    const TicketId ticket = Submit(queue, kernel);
    EXPECT_TRUE(scheduler_->Wait(ticket, scheduler_->NowNs() + kPatienceNs).ok());
    EXPECT_TRUE(scheduler_->ReleaseTicket(ticket).ok());
  }
  // What so many of them cost this thread, each.
  Use CostOf(QueueId queue, KernelId kernel, int runs) {
    for (int i = 0; i < 5; ++i) Run(queue, kernel);  // its duration is known from here on
    const Use before = UseNow();
    for (int i = 0; i < runs; ++i) Run(queue, kernel);
    const Use after = UseNow();
    return {(after.cpu_ns - before.cpu_ns) / runs, after.sleeps - before.sleeps};
  }

  std::unique_ptr<Scheduler> scheduler_;
  QueueId lc_, be_;
  KernelId short_, long_;
};

INSTANTIATE_TEST_SUITE_P(Modes, CallerSpinTest,
                         ::testing::Values(WaitMode::kBalanced, WaitMode::kSpin),
                         [](const auto& mode) {
                           return mode.param == WaitMode::kSpin ? "spin" : "balanced";
                         });

TEST_P(CallerSpinTest, ACallerOfAShortQueryDoesNotSleep) {
  if (Spinners::MostOf(UsableCores()) == 0) GTEST_SKIP() << "nobody spins on a single core";
  constexpr int kRuns = 50;
  constexpr int kAttempts = 10;
  Open(-1);
  EXPECT_GE(CostOf(lc_, short_, kRuns).sleeps, kRuns * 3 / 4) << "without spins";
  int64_t least = kRuns;
  int crowded = 0;  // attempts before which others took the core
  for (int attempt = 0; attempt < kAttempts && least > kRuns / 4; ++attempt) {
    TearDown();
    crowded += IsCrowded() ? 1 : 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(20) *
                                attempt);  // others take the cores now and then
    Open(0);
    least = std::min(least, CostOf(lc_, short_, kRuns).sleeps);
  }
  if (least > kRuns / 2 && crowded >= kAttempts / 3)
    GTEST_SKIP() << "others take the cores, so that it sleeps";
  EXPECT_LE(least, kRuns / 2);
}

// Compared with a caller that may not spin: what a sleep costs depends on the machine.
TEST_P(CallerSpinTest, ACallerOfBestEffortWorkSleeps) {
  const auto least_ns = [this] {
    int64_t least = kMs;
    for (int attempt = 0; attempt < 5; ++attempt) {
      least = std::min(least, CostOf(be_, long_, 1).cpu_ns);
    }
    return least;
  };
  Open(-1);
  const int64_t asleep_ns = least_ns();
  TearDown();
  Open(0);
  EXPECT_GE(CostOf(be_, short_, 50).sleeps, 40);
  EXPECT_LE(least_ns(), asleep_ns + kCallerFirstSpinNs * 3 / 4)
      << "not even while nobody knows the end";
}

// Unlike a wait for BE work it has something to spin on.
TEST_P(CallerSpinTest, TheSpinOfOneWaitHasABound) {
  Open(0);
  const int64_t bound_ns = GetParam() == WaitMode::kSpin ? kCallerSpinModeNs : kCallerSpinNs;
  EXPECT_LE(CostOf(lc_, long_, 5).cpu_ns, bound_ns + kMs);
  TearDown();
  Open(200 * kUs);
  EXPECT_LE(CostOf(lc_, long_, 5).cpu_ns, 200 * kUs + kMs);
}

TEST_P(CallerSpinTest, AnEndThatComesAfterTheSpinIsSeenAsleep) {
  Open(kUs);
  for (int i = 0; i < 20; ++i) Run(lc_, short_);
  Run(lc_, long_);
}

TEST_P(CallerSpinTest, AWaitEndsAtADeadlineInsideItsSpin) {
  Open(0);
  for (int i = 0; i < 5; ++i) Run(lc_, long_);
  // Nobody knows the end yet, asleep before the spin, and in it.
  for (const int64_t wait_ns : {50 * kUs, kMs, 39 * kMs}) {
    const TimeNs begin_ns = scheduler_->NowNs();
    const TicketId ticket = Submit(lc_, long_);
    const absl::Status waited = scheduler_->Wait(ticket, begin_ns + wait_ns);
    const TimeNs ended_ns = scheduler_->NowNs();
    // A thread that got no core for long enough finds the task complete.
    if (waited.ok()) {
      EXPECT_GE(ended_ns, begin_ns + 40 * kMs) << wait_ns;
    } else {
      EXPECT_EQ(waited.code(), absl::StatusCode::kDeadlineExceeded);
      EXPECT_GE(ended_ns, begin_ns + wait_ns);
    }
    EXPECT_TRUE(scheduler_->Wait(ticket, kNever).ok());
    EXPECT_TRUE(scheduler_->ReleaseTicket(ticket).ok());
  }
}

// More callers than may spin, on queues of their own. A missed end would hang.
TEST_P(CallerSpinTest, ManyCallersShareTheCores) {
  Open(0);
  std::vector<std::thread> callers;
  for (int t = 0; t < 6; ++t) {
    callers.emplace_back([this, queue = MakeQueue("of its own", AppClass::kLatencyCritical)] {
      for (int i = 0; i < 40; ++i) Run(queue, short_);
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(scheduler_->Stats().tasks_pending, 0);
}

}  // namespace
}  // namespace gpushare::core
