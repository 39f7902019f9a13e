// Mutex and condition variable with thread annotations, over the standard ones.
//
// Why not absl::Mutex: distributions ship Abseil without ThreadSanitizer's annotations, and then
// every lock is invisible to it and every guarded access a false report. The standard ones are
// pthread's, which it knows.

#ifndef GPUSHARE_SRC_CORE_BASE_MUTEX_H_
#define GPUSHARE_SRC_CORE_BASE_MUTEX_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "absl/base/thread_annotations.h"

namespace gpushare::core {

class ABSL_LOCKABLE Mutex {
 public:
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }
  bool TryLock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) { return mutex_.try_lock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex_->Lock();
  }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_->Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex* const mutex_;
};

class CondVar {
 public:
  void NotifyOne() { condition_.notify_one(); }
  // The caller holds `mutex`. Returns after a signal, the time, or without a cause.
  void WaitFor(Mutex* mutex, int64_t time_ns) {
    std::unique_lock<std::mutex> lock(mutex->mutex_, std::adopt_lock);
    condition_.wait_for(lock, std::chrono::nanoseconds(time_ns));
    lock.release();
  }

 private:
  std::condition_variable condition_;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_BASE_MUTEX_H_
