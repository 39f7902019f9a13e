// No wake-up is lost, and nobody is woken for what concerns others. Under the thread sanitizer
// also: no data race.

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "src/core/flow/waiting/parking.h"
#include "src/core/flow/waiting/waiters.h"

namespace gpushare::core {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;

void SleepMs(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

// The sleeper looks for work only between Announce and Sleep, so a lost wake-up is a sleep that
// ends by its time.
TEST(ParkingTest, NoWakeUpIsLostBetweenTheLookForWorkAndTheSleep) {
  constexpr int kRounds = 20'000;
  Parking parking;
  std::atomic<int> posted{0};
  std::atomic<int> taken{0};
  int lost = 0;
  std::thread sleeper([&] {
    while (taken.load() < kRounds) {
      if (posted.load() > taken.load()) {
        taken.fetch_add(1);
        continue;
      }
      parking.Announce();
      if (posted.load() > taken.load()) {
        parking.Withdraw();
      } else if (!parking.Sleep(5 * kSecondNs) && posted.load() > taken.load()) {
        ++lost;
      }
    }
  });
  for (int i = 0; i < kRounds; ++i) {
    while (taken.load() < i) std::this_thread::yield();
    posted.fetch_add(1);
    parking.Wake();
  }
  sleeper.join();
  EXPECT_EQ(lost, 0);
}

TEST(ParkingTest, ASleepEndsAtItsTime) {
  Parking parking;
  parking.Announce();
  EXPECT_FALSE(parking.Sleep(1'000'000));
  parking.Wake();  // nobody sleeps: it has no effect on the next sleep
  parking.Announce();
  EXPECT_FALSE(parking.Sleep(1'000'000));
  parking.Announce();
  parking.Wake();
  EXPECT_TRUE(parking.Sleep(kNever));
}

// A thread that waits until its task is complete, or its state was reached, as Driver::AwaitThread
// does.
class Waiting {
 public:
  Waiting(Waiters& waiters, Awaited awaited, Task* task = nullptr)
      : thread_([this, &waiters, awaited, task] {
          Waiter waiter(waiters, awaited, task, kNever);
          for (;;) {
            started.store(true);
            if (waiter.WasReached() || (task != nullptr && task->complete.load())) return;
            if (waiter.Rejoin()) continue;
            waiter.Sleep(kNever);
            looks.fetch_add(1);
          }
        }) {
    while (!started.load()) std::this_thread::yield();
  }
  ~Waiting() { thread_.join(); }

  std::atomic<bool> started{false};
  std::atomic<int> looks{0};

 private:
  std::thread thread_;
};

TEST(WaitersTest, OnlyTheWaitersOfACompletedTaskWakeUp) {
  Waiters waiters(true);
  std::vector<Task> tasks(2);
  Task* const done[] = {&tasks[0]};
  Waiting other(waiters, Awaited::kTask, &tasks[1]);
  Waiting whole(waiters, Awaited::kDrained);
  EXPECT_TRUE(waiters.AnyFor(Awaited::kDrained));
  EXPECT_FALSE(waiters.AnyFor(Awaited::kQuiet));
  {
    Waiting first(waiters, Awaited::kTask, &tasks[0]);
    Waiting second(waiters, Awaited::kTask, &tasks[0]);
    EXPECT_TRUE(tasks[0].awaited.load());
    tasks[0].complete.store(true);
    waiters.NotifyTasks(done);
    waiters.WakeAll();
  }
  SleepMs(20);
  EXPECT_EQ(other.looks.load(), 0);
  EXPECT_EQ(whole.looks.load(), 0);
  waiters.NotifyState(Awaited::kDrained, waiters.Joined());
  tasks[1].complete.store(true);
  waiters.WakeAll();
  SleepMs(20);
  EXPECT_EQ(other.looks.load(), 0) << "it waits for a task, not for the flow";
  waiters.NotifyAllTasks();
  waiters.WakeAll();
}

// A state lasts for a moment, and a caller may look for it too late.
TEST(WaitersTest, AStateIsReachedForThoseWhoWaitedThenAndForNobodyElse) {
  Waiters waiters(true);
  const Waiter before(waiters, Awaited::kQuiet, nullptr, kNever);
  const uint64_t joined = waiters.Joined();
  const Waiter after(waiters, Awaited::kQuiet, nullptr, kNever);
  const Waiter drains(waiters, Awaited::kDrained, nullptr, kNever);
  waiters.NotifyState(Awaited::kQuiet, joined);
  EXPECT_TRUE(before.WasReached());
  EXPECT_FALSE(after.WasReached());
  EXPECT_FALSE(drains.WasReached());
  EXPECT_FALSE(waiters.WakeSome());
  EXPECT_EQ(waiters.woken(), 1);
}

TEST(WaitersTest, ATickWakesAFewAndLeavesTheRestToTheNext) {
  constexpr int kCallers = 2 * Waiters::kWakesAtOnce + 1;
  Waiters waiters(true);
  std::vector<std::unique_ptr<Waiter>> callers;
  for (int i = 0; i < kCallers; ++i) {
    callers.push_back(std::make_unique<Waiter>(waiters, Awaited::kDrained, nullptr, kNever));
  }
  Task task;
  const Waiter of_task(waiters, Awaited::kTask, &task, kNever);
  waiters.NotifyState(Awaited::kDrained, waiters.Joined());
  EXPECT_FALSE(waiters.AnyFor(Awaited::kDrained));
  EXPECT_TRUE(waiters.WakeSome());
  EXPECT_EQ(waiters.woken(), Waiters::kWakesAtOnce);
  callers.pop_back();  // it saw the state by itself
  EXPECT_FALSE(waiters.WakeSome());
  EXPECT_EQ(waiters.woken(), kCallers - 1);
  EXPECT_FALSE(waiters.WakeSome());
}

TEST(WaitersTest, ACallerThatWasWokenForAnotherTaskIsListedAgain) {
  Waiters waiters(true);
  Task task;
  Task* const done[] = {&task};
  Waiter waiter(waiters, Awaited::kTask, &task, kNever);
  EXPECT_FALSE(waiter.Rejoin());
  for (int round = 1; round <= 3; ++round) {
    waiters.NotifyTasks(done);
    waiters.NotifyTasks(done);
    waiters.WakeAll();
    EXPECT_EQ(waiters.woken(), round);
    EXPECT_TRUE(waiter.Rejoin());
    EXPECT_FALSE(waiter.Rejoin());
  }
}

TEST(WaitersTest, TheEarliestDeadlineIsOfThoseWhoStillWait) {
  Waiters waiters(true);
  EXPECT_EQ(waiters.EarliestDeadline(), kNever);
  const Waiter late(waiters, Awaited::kTime, nullptr, 300);
  {
    const Waiter early(waiters, Awaited::kDrained, nullptr, 100);
    const Waiter between(waiters, Awaited::kTime, nullptr, 200);
    EXPECT_EQ(waiters.EarliestDeadline(), 100);
    waiters.NotifyDue(150);
    waiters.WakeAll();
    EXPECT_EQ(waiters.woken(), 1);
    EXPECT_EQ(waiters.EarliestDeadline(), 100) << "time waits until the caller has left";
  }
  EXPECT_EQ(waiters.EarliestDeadline(), 300);
  EXPECT_TRUE(waiters.Any());
}

TEST(WaitersTest, ACallerWithoutADeadlineIsInOneReport) {
  Waiters waiters(false);
  const Waiter timed(waiters, Awaited::kDrained, nullptr, 100);
  EXPECT_FALSE(waiters.AnyEndless());
  {
    const Waiter first(waiters, Awaited::kDrained, nullptr, kNever);
    const Waiter second(waiters, Awaited::kQuiet, nullptr, kNever);
    EXPECT_EQ(waiters.TakeEndless(), 2);
    EXPECT_FALSE(waiters.AnyEndless());
    const Waiter third(waiters, Awaited::kQuiet, nullptr, kNever);
    EXPECT_TRUE(waiters.AnyEndless());
  }
  EXPECT_FALSE(waiters.AnyEndless());
  EXPECT_EQ(waiters.EarliestDeadline(), kNever) << "in real time each caller keeps its own";
}

// A task completes at any moment of its caller's way into the sleep.
TEST(WaitersTest, NoCompletionIsMissedOnTheWayIntoTheSleep) {
  constexpr int kRounds = 2000;
  Waiters waiters(true);
  std::vector<Task> tasks(1);
  Task& task = tasks[0];
  Task* const done[] = {&task};
  std::atomic<int> round{0};
  std::atomic<int> seen{0};
  std::thread caller([&] {
    for (int i = 1; i <= kRounds; ++i) {
      while (round.load() < i) std::this_thread::yield();
      Waiter waiter(waiters, Awaited::kTask, &task, kNever);
      while (!task.complete.load()) {
        if (!waiter.Rejoin()) waiter.Sleep(kNever);
      }
      seen.store(i);
    }
  });
  for (int i = 1; i <= kRounds; ++i) {
    task.complete.store(false);
    round.store(i);
    for (int pause = 0; pause < i % 50; ++pause) round.load();
    task.complete.store(true, std::memory_order_seq_cst);
    if (task.awaited.load(std::memory_order_seq_cst)) waiters.NotifyTasks(done);
    waiters.WakeAll();
    while (seen.load() < i) std::this_thread::yield();
  }
  caller.join();
  EXPECT_EQ(seen.load(), kRounds);
}

}  // namespace
}  // namespace gpushare::core
