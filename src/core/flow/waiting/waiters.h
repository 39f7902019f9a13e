// The callers that wait while the scheduler's thread drives the flow, each listed by what it waits
// for.
//
//   caller: Waiter waiter(...) -> done? -> was notified? Rejoin and look again -> Sleep -> done?
//   ... flow:   after a Tick, NotifyTasks and NotifyState release those that can go on; WakeSome
//   wakes
//           a few of them, and the next Tick the rest
//
// Invariants:
//  - Only callers whose task has ended, or whose state was reached since they began to wait, are
//    released. So a Tick costs nothing for all others, however many they are. Whoever notifies of a
//    state asks Joined before it looks at the state: callers that came later are not meant.
//  - No wake-up is lost. A caller is listed, and marks its task awaited, before it asks whether it
//    is done; the flow completes the task, or reaches the state, before it looks at the mark or the
//    count. All four are seq_cst.
//  - No system call is made with the lock held, and a Tick makes at most kWakesAtOnce.
//  - Nobody wakes by the clock, except at a deadline.
// Threads: any.

#ifndef GPUSHARE_SRC_CORE_FLOW_WAITING_WAITERS_H_
#define GPUSHARE_SRC_CORE_FLOW_WAITING_WAITERS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "src/core/base/mutex.h"
#include "src/core/base/types.h"
#include "src/core/state/task.h"

namespace gpushare::core {

class Waiters;

// What a caller waits for. The states of the flow last for a moment: who waited then may go on.
enum class Awaited : uint8_t {
  kTask = 0,     // the end of one task
  kDrained = 1,  // no task is pending
  kQuiet = 2,    // nothing is on the device, and no region is open
  kTime = 3,     // a deadline, and nothing else
};
inline constexpr size_t kAwaitedStates = 4;

// A ring of callers, or one caller's place in it.
struct WaitLinks {
  WaitLinks* next = this;
  WaitLinks* previous = this;

  WaitLinks() = default;
  WaitLinks(const WaitLinks&) = delete;
  WaitLinks& operator=(const WaitLinks&) = delete;
  bool empty() const { return next == this; }
  void InsertBefore(WaitLinks& place) {
    previous = place.previous;
    next = &place;
    previous->next = this;
    place.previous = this;
  }
  void Unlink() {
    previous->next = next;
    next->previous = previous;
    next = previous = this;
  }
};

// One caller that waits; it lives on that caller's stack.
class Waiter {
 public:
  // `task`: for kTask.
  Waiter(Waiters& waiters, Awaited awaited, Task* task, TimeNs deadline_ns);
  ~Waiter();
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  // Whether the state that it waits for was reached since it was made.
  bool WasReached() const;
  // True: it was notified, and is listed again. The condition must be looked at again.
  bool Rejoin();
  // Until a notification since it was listed, or for `time_ns`; kNever: no limit.
  void Sleep(int64_t time_ns);

 private:
  friend class Waiters;
  static constexpr uint32_t kWaits = 0;
  static constexpr uint32_t kNotified = 1;
  struct Entry : WaitLinks {
    Waiter* waiter = nullptr;
  };

  Waiters& waiters_;
  const Awaited awaited_;
  const Task* const task_;
  const TimeNs deadline_ns_;
  uint64_t number_ = 0;          // in the order of their making
  uint64_t reports_before_ = 0;  // Waiters::reports_ when it was made
  bool released_ = false;        // in Waiters::released_
  std::atomic<uint32_t> word_{kWaits};
  Entry entry_;  // in the list of what it waits for, or in Waiters::released_
  Entry timed_;  // in Waiters::timed_
};

class alignas(64) Waiters {
 public:
  // Most callers that one WakeSome wakes: some 20 us of system calls.
  static constexpr int kWakesAtOnce = 16;

  // `keeps_deadlines`: in virtual time, which goes on to the earliest deadline.
  explicit Waiters(bool keeps_deadlines) : keeps_deadlines_(keeps_deadlines) {}

  bool Any() const { return count_.load(std::memory_order_seq_cst) > 0; }
  bool AnyFor(Awaited state) const {
    return waiting_[static_cast<size_t>(state)].load(std::memory_order_seq_cst) > 0;
  }
  // How many callers there have been.
  uint64_t Joined() const { return joined_.load(std::memory_order_seq_cst); }
  // The earliest deadline of a caller; kNever: none.
  TimeNs EarliestDeadline() const { return deadline_ns_.load(std::memory_order_seq_cst); }

  // These release callers; WakeSome wakes them.
  // Those that wait for one of the tasks. A task's slot may be reused by now: its caller looks
  // again.
  void NotifyTasks(absl::Span<Task* const> tasks);
  void NotifyAllTasks();
  // Those of the first `joined` callers that wait for the state: it was reached after they came.
  void NotifyState(Awaited state, uint64_t joined);
  void NotifyDue(TimeNs now_ns);  // those whose deadline has passed
  void NotifyAll();

  // True: more are left.
  bool WakeSome();
  void WakeAll() {
    while (WakeSome()) {
    }
  }
  int64_t woken() const { return woken_.load(std::memory_order_relaxed); }

  // Callers without a deadline that are in no report yet, and the report that takes them all.
  bool AnyEndless() const { return endless_.load(std::memory_order_seq_cst) > 0; }
  int TakeEndless();

 private:
  friend class Waiter;
  static constexpr size_t kBuckets = 64;

  void Add(Waiter& waiter);
  void Remove(Waiter& waiter);
  void Enlist(Waiter& waiter) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Release(Waiter& waiter) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReleaseList(WaitLinks& list) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  WaitLinks& BucketOf(const Task* task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const bool keeps_deadlines_;
  Mutex mutex_;
  std::array<WaitLinks, kBuckets> tasks_ ABSL_GUARDED_BY(mutex_);  // by their address
  std::array<WaitLinks, kAwaitedStates> states_ ABSL_GUARDED_BY(mutex_);
  WaitLinks released_ ABSL_GUARDED_BY(mutex_);  // to be woken, those of a task first
  WaitLinks timed_ ABSL_GUARDED_BY(mutex_);     // with a deadline, until they leave
  std::array<std::atomic<uint64_t>, kAwaitedStates> reached_{};  // by so many first callers
  uint64_t reports_ ABSL_GUARDED_BY(mutex_) = 0;
  std::atomic<uint64_t> joined_{0};
  std::atomic<int> count_{0};
  std::array<std::atomic<int>, kAwaitedStates> waiting_{};  // listed, and not released
  std::atomic<int> to_wake_{0};                             // in released_
  std::atomic<int> endless_{0};
  std::atomic<int64_t> woken_{0};
  std::atomic<TimeNs> deadline_ns_{kNever};
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_WAITING_WAITERS_H_
