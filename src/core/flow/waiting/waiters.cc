// The lists of callers that wait. See waiters.h.

#include "src/core/flow/waiting/waiters.h"

#include <algorithm>

#include "src/core/base/containers/bounded_list.h"
#include "src/core/base/futex.h"

namespace gpushare::core {

Waiter::Waiter(Waiters& waiters, Awaited awaited, Task* task, TimeNs deadline_ns)
    : waiters_(waiters), awaited_(awaited), task_(task), deadline_ns_(deadline_ns) {
  entry_.waiter = timed_.waiter = this;
  waiters_.Add(*this);
  if (task != nullptr) task->awaited.store(true, std::memory_order_seq_cst);
}

Waiter::~Waiter() { waiters_.Remove(*this); }

bool Waiter::WasReached() const {
  const auto& reached = waiters_.reached_[static_cast<size_t>(awaited_)];
  return reached.load(std::memory_order_seq_cst) >= number_;
}

bool Waiter::Rejoin() {
  if (word_.load(std::memory_order_acquire) == kWaits) return false;
  MutexLock lock(&waiters_.mutex_);
  word_.store(kWaits, std::memory_order_seq_cst);
  waiters_.Enlist(*this);
  return true;
}

void Waiter::Sleep(int64_t time_ns) { FutexWait(word_, kWaits, time_ns); }

WaitLinks& Waiters::BucketOf(const Task* task) {
  return tasks_[reinterpret_cast<uintptr_t>(task) / alignof(Task) % kBuckets];
}

void Waiters::Enlist(Waiter& waiter) {
  const auto state = static_cast<size_t>(waiter.awaited_);
  const bool task = waiter.awaited_ == Awaited::kTask;
  waiter.entry_.InsertBefore(task ? BucketOf(waiter.task_) : states_[state]);
  waiting_[state].fetch_add(1, std::memory_order_seq_cst);
}

void Waiters::Add(Waiter& waiter) {
  MutexLock lock(&mutex_);
  waiter.number_ = joined_.fetch_add(1, std::memory_order_seq_cst) + 1;
  Enlist(waiter);
  count_.fetch_add(1, std::memory_order_seq_cst);
  if (waiter.deadline_ns_ == kNever) {
    waiter.reports_before_ = reports_;
    endless_.fetch_add(1, std::memory_order_seq_cst);
  } else if (keeps_deadlines_) {
    waiter.timed_.InsertBefore(timed_);
    const TimeNs earliest_ns = deadline_ns_.load(std::memory_order_relaxed);
    deadline_ns_.store(std::min(earliest_ns, waiter.deadline_ns_), std::memory_order_seq_cst);
  }
}

void Waiters::Remove(Waiter& waiter) {
  MutexLock lock(&mutex_);
  if (waiter.released_) {
    to_wake_.fetch_sub(1, std::memory_order_seq_cst);
  } else if (!waiter.entry_.empty()) {
    waiting_[static_cast<size_t>(waiter.awaited_)].fetch_sub(1, std::memory_order_seq_cst);
  }
  waiter.entry_.Unlink();
  count_.fetch_sub(1, std::memory_order_seq_cst);
  if (waiter.deadline_ns_ == kNever) {
    if (waiter.reports_before_ == reports_) endless_.fetch_sub(1, std::memory_order_seq_cst);
    return;
  }
  if (!keeps_deadlines_) return;
  waiter.timed_.Unlink();
  if (waiter.deadline_ns_ > deadline_ns_.load(std::memory_order_relaxed)) return;
  TimeNs earliest_ns = kNever;
  for (const WaitLinks* at = timed_.next; at != &timed_; at = at->next) {
    earliest_ns =
        std::min(earliest_ns, static_cast<const Waiter::Entry*>(at)->waiter->deadline_ns_);
  }
  deadline_ns_.store(earliest_ns, std::memory_order_seq_cst);
}

// Moves a listed caller to those that are to be woken. A caller of a task goes before callers of
// states, of which many may have been released at once.
void Waiters::Release(Waiter& waiter) {
  if (waiter.released_ || waiter.entry_.empty()) return;
  waiter.entry_.Unlink();
  waiter.entry_.InsertBefore(waiter.awaited_ == Awaited::kTask ? *released_.next : released_);
  waiter.released_ = true;
  waiting_[static_cast<size_t>(waiter.awaited_)].fetch_sub(1, std::memory_order_seq_cst);
  to_wake_.fetch_add(1, std::memory_order_seq_cst);
}

void Waiters::ReleaseList(WaitLinks& list) {
  while (!list.empty()) Release(*static_cast<Waiter::Entry*>(list.next)->waiter);
}

void Waiters::NotifyTasks(absl::Span<Task* const> tasks) {
  if (tasks.empty()) return;
  MutexLock lock(&mutex_);
  for (const Task* const task : tasks) {
    WaitLinks& bucket = BucketOf(task);
    for (WaitLinks* at = bucket.next; at != &bucket;) {
      Waiter& waiter = *static_cast<Waiter::Entry*>(at)->waiter;
      at = at->next;
      if (waiter.task_ == task) Release(waiter);
    }
  }
}

void Waiters::NotifyAllTasks() {
  MutexLock lock(&mutex_);
  for (WaitLinks& bucket : tasks_) ReleaseList(bucket);
}

void Waiters::NotifyState(Awaited state, uint64_t joined) {
  MutexLock lock(&mutex_);
  auto& reached = reached_[static_cast<size_t>(state)];
  reached.store(std::max(reached.load(std::memory_order_relaxed), joined),
                std::memory_order_seq_cst);
  WaitLinks& list = states_[static_cast<size_t>(state)];
  for (WaitLinks* at = list.next; at != &list;) {
    Waiter& waiter = *static_cast<Waiter::Entry*>(at)->waiter;
    at = at->next;
    if (waiter.number_ <= joined) Release(waiter);
  }
}

void Waiters::NotifyDue(TimeNs now_ns) {
  MutexLock lock(&mutex_);
  for (WaitLinks* at = timed_.next; at != &timed_; at = at->next) {
    Waiter& waiter = *static_cast<Waiter::Entry*>(at)->waiter;
    if (waiter.deadline_ns_ <= now_ns) Release(waiter);
  }
}

void Waiters::NotifyAll() {
  MutexLock lock(&mutex_);
  for (WaitLinks& bucket : tasks_) ReleaseList(bucket);
  for (WaitLinks& state : states_) ReleaseList(state);
}

// The system calls come after the unlock, so that a woken caller finds the lists free. Its word may
// be gone by then (futex.h).
bool Waiters::WakeSome() {
  if (to_wake_.load(std::memory_order_seq_cst) == 0) return false;
  BoundedList<const std::atomic<uint32_t>*, kWakesAtOnce> woken;
  bool more = false;
  {
    MutexLock lock(&mutex_);
    while (!released_.empty() && !woken.full()) {
      Waiter& waiter = *static_cast<Waiter::Entry*>(released_.next)->waiter;
      waiter.entry_.Unlink();
      waiter.released_ = false;
      to_wake_.fetch_sub(1, std::memory_order_seq_cst);
      waiter.word_.store(Waiter::kNotified, std::memory_order_seq_cst);
      woken.Add(&waiter.word_);
    }
    more = !released_.empty();
  }
  woken_.fetch_add(woken.size(), std::memory_order_relaxed);
  for (const std::atomic<uint32_t>* word : woken) FutexWake(*word, 1);
  return more;
}

int Waiters::TakeEndless() {
  MutexLock lock(&mutex_);
  ++reports_;
  return endless_.exchange(0, std::memory_order_seq_cst);
}

}  // namespace gpushare::core
