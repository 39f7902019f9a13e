// The callers that wait while the scheduler's thread drives the flow: for one ticket, or for the
// whole flow (drain, quiesce, poll until, shutdown).
//
//   caller: Waiter waiter(waiters, task, deadline) -> done? -> waiter.Sleep -> done? ...
//   flow:   FinishTask notes an awaited task -> after the Tick, NotifyTasks wakes its callers
//
// Invariants: a caller is woken when its own task completes and not for others. No wake-up is
// lost: the caller marks its task awaited before it asks whether it is complete, and the flow
// completes the task before it reads the mark. Nobody wakes by the clock, except at a deadline.
// Threads: any.

#ifndef GPUSHARE_SRC_CORE_FLOW_WAITING_WAITERS_H_
#define GPUSHARE_SRC_CORE_FLOW_WAITING_WAITERS_H_

#include <atomic>
#include <cstdint>

#include "absl/types/span.h"
#include "src/core/base/mutex.h"
#include "src/core/base/types.h"
#include "src/core/state/task.h"

namespace gpushare::core {

class Waiters;

// One caller that waits; it lives on that caller's stack.
class Waiter {
 public:
  // `task` null: it waits for the whole flow.
  Waiter(Waiters& waiters, Task* task, TimeNs deadline_ns);
  ~Waiter();
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  // Call it before the condition is checked: a notification from then on ends the next Sleep.
  void Prepare() { word_.store(kWaits, std::memory_order_seq_cst); }
  // Until a notification since Prepare, or for `time_ns`; kNever: no limit.
  void Sleep(int64_t time_ns);

 private:
  friend class Waiters;
  static constexpr uint32_t kWaits = 0;
  static constexpr uint32_t kNotified = 1;

  Waiters& waiters_;
  const Task* const task_;
  const TimeNs deadline_ns_;
  std::atomic<uint32_t> word_{kWaits};
  Waiter* next_ = nullptr;
  Waiter* previous_ = nullptr;
};

class alignas(64) Waiters {
 public:
  bool Any() const { return count_.load(std::memory_order_seq_cst) > 0; }
  // Whether a caller waits for the whole flow.
  bool AnyForFlow() const { return for_flow_.load(std::memory_order_seq_cst) > 0; }
  // The earliest deadline of a caller; kNever: none.
  TimeNs EarliestDeadline() const { return deadline_ns_.load(std::memory_order_seq_cst); }

  // Wakes the callers that wait for one of the tasks. A task's slot may be reused by now: its
  // caller looks again.
  void NotifyTasks(absl::Span<Task* const> tasks);
  void NotifyFlow();  // those that wait for the whole flow
  void NotifyAll();

 private:
  friend class Waiter;
  void Add(Waiter& waiter);
  void Remove(Waiter& waiter);
  template <class Match>
  void Notify(Match matches);

  Mutex mutex_;
  Waiter* first_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::atomic<int> count_{0};
  std::atomic<int> for_flow_{0};
  std::atomic<TimeNs> deadline_ns_{kNever};
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_WAITING_WAITERS_H_
