// The list of callers that wait. See waiters.h.

#include "src/core/flow/waiting/waiters.h"

#include <algorithm>

#include "src/core/base/containers/bounded_list.h"
#include "src/core/base/futex.h"

namespace gpushare::core {

Waiter::Waiter(Waiters& waiters, Task* task, TimeNs deadline_ns)
    : waiters_(waiters), task_(task), deadline_ns_(deadline_ns) {
  waiters_.Add(*this);
  if (task != nullptr) task->awaited.store(true, std::memory_order_seq_cst);
}

Waiter::~Waiter() { waiters_.Remove(*this); }

void Waiter::Sleep(int64_t time_ns) { FutexWait(word_, kWaits, time_ns); }

void Waiters::Add(Waiter& waiter) {
  MutexLock lock(&mutex_);
  waiter.next_ = first_;
  if (first_ != nullptr) first_->previous_ = &waiter;
  first_ = &waiter;
  count_.fetch_add(1, std::memory_order_seq_cst);
  if (waiter.task_ == nullptr) for_flow_.fetch_add(1, std::memory_order_seq_cst);
  deadline_ns_.store(std::min(deadline_ns_.load(std::memory_order_relaxed), waiter.deadline_ns_),
                     std::memory_order_seq_cst);
}

void Waiters::Remove(Waiter& waiter) {
  MutexLock lock(&mutex_);
  (waiter.previous_ == nullptr ? first_ : waiter.previous_->next_) = waiter.next_;
  if (waiter.next_ != nullptr) waiter.next_->previous_ = waiter.previous_;
  count_.fetch_sub(1, std::memory_order_seq_cst);
  if (waiter.task_ == nullptr) for_flow_.fetch_sub(1, std::memory_order_seq_cst);
  if (waiter.deadline_ns_ > deadline_ns_.load(std::memory_order_relaxed)) return;
  TimeNs earliest = kNever;
  for (const Waiter* at = first_; at != nullptr; at = at->next_) {
    earliest = std::min(earliest, at->deadline_ns_);
  }
  deadline_ns_.store(earliest, std::memory_order_seq_cst);
}

// The system calls come after the unlock, so that a woken caller finds the list free. Its word may
// be gone by then (futex.h).
template <class Match>
void Waiters::Notify(Match matches) {
  constexpr int kAtOnce = 32;
  BoundedList<const std::atomic<uint32_t>*, kAtOnce> woken;
  bool more = true;
  while (more) {
    woken.Clear();
    more = false;
    {
      MutexLock lock(&mutex_);
      for (Waiter* at = first_; at != nullptr && !more; at = at->next_) {
        if (!matches(*at) || at->word_.load(std::memory_order_relaxed) != Waiter::kWaits) continue;
        at->word_.store(Waiter::kNotified, std::memory_order_seq_cst);
        woken.Add(&at->word_);
        more = woken.full();
      }
    }
    for (const std::atomic<uint32_t>* word : woken) FutexWake(*word, 1);
  }
}

void Waiters::NotifyTasks(absl::Span<Task* const> tasks) {
  if (tasks.empty()) return;
  Notify([tasks](const Waiter& waiter) {
    return std::find(tasks.begin(), tasks.end(), waiter.task_) != tasks.end();
  });
}

void Waiters::NotifyFlow() {
  Notify([](const Waiter& waiter) { return waiter.task_ == nullptr; });
}

void Waiters::NotifyAll() {
  Notify([](const Waiter&) { return true; });
}

}  // namespace gpushare::core
