// No wake-up is lost, and nobody is woken for what concerns others. Under the thread sanitizer
// also: no data race.

#include <atomic>
#include <chrono>
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

// A thread that waits until its task is complete, as Driver::AwaitThread does.
class Waiting {
 public:
  Waiting(Waiters& waiters, Task* task)
      : thread_([this, &waiters, task] {
          Waiter waiter(waiters, task, kNever);
          for (;;) {
            waiter.Prepare();
            started.store(true);
            if (task == nullptr ? ends.load() : task->complete.load()) return;
            waiter.Sleep(kNever);
            looks.fetch_add(1);
          }
        }) {
    while (!started.load()) std::this_thread::yield();
  }
  ~Waiting() { thread_.join(); }

  std::atomic<bool> started{false};
  std::atomic<bool> ends{false};
  std::atomic<int> looks{0};

 private:
  std::thread thread_;
};

TEST(WaitersTest, OnlyTheWaitersOfACompletedTaskWakeUp) {
  Waiters waiters;
  std::vector<Task> tasks(2);
  Task* const done[] = {&tasks[0]};
  Waiting other(waiters, &tasks[1]);
  Waiting whole(waiters, nullptr);
  EXPECT_TRUE(waiters.AnyForFlow());
  {
    Waiting first(waiters, &tasks[0]);
    Waiting second(waiters, &tasks[0]);
    EXPECT_TRUE(tasks[0].awaited.load());
    tasks[0].complete.store(true);
    waiters.NotifyTasks(done);
  }
  SleepMs(20);
  EXPECT_EQ(other.looks.load(), 0);
  EXPECT_EQ(whole.looks.load(), 0);
  whole.ends.store(true);
  waiters.NotifyFlow();
  tasks[1].complete.store(true);
  SleepMs(20);
  EXPECT_EQ(other.looks.load(), 0) << "it waits for a task, not for the flow";
  waiters.NotifyAll();
}

TEST(WaitersTest, TheEarliestDeadlineIsOfThoseWhoStillWait) {
  Waiters waiters;
  EXPECT_EQ(waiters.EarliestDeadline(), kNever);
  const Waiter late(waiters, nullptr, 300);
  {
    const Waiter early(waiters, nullptr, 100);
    const Waiter between(waiters, nullptr, 200);
    EXPECT_EQ(waiters.EarliestDeadline(), 100);
  }
  EXPECT_EQ(waiters.EarliestDeadline(), 300);
  EXPECT_TRUE(waiters.Any());
}

// A task completes at any moment of its caller's way into the sleep.
TEST(WaitersTest, NoCompletionIsMissedOnTheWayIntoTheSleep) {
  constexpr int kRounds = 2000;
  Waiters waiters;
  std::vector<Task> tasks(1);
  Task& task = tasks[0];
  Task* const done[] = {&task};
  std::atomic<int> round{0};
  std::atomic<int> seen{0};
  std::thread caller([&] {
    for (int i = 1; i <= kRounds; ++i) {
      while (round.load() < i) std::this_thread::yield();
      Waiter waiter(waiters, &task, kNever);
      for (;;) {
        waiter.Prepare();
        if (task.complete.load()) break;
        waiter.Sleep(kNever);
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
    while (seen.load() < i) std::this_thread::yield();
  }
  caller.join();
  EXPECT_EQ(seen.load(), kRounds);
}

}  // namespace
}  // namespace gpushare::core
