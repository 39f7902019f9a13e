// A bounded lock-free queue that hands memory over with each element.
//
// atomic_queue's pop does not acquire what its push released (it orders only the element itself).
// Here an element is the index or the handle of a record that the other side has written, so the
// pop must acquire. Threads: any on both sides. Users never exceed the capacity, so Push always
// finds room.

#ifndef GPUSHARE_SRC_CORE_BASE_CONTAINERS_HANDOFF_QUEUE_H_
#define GPUSHARE_SRC_CORE_BASE_CONTAINERS_HANDOFF_QUEUE_H_

#include <atomic>

#include "absl/base/config.h"
#include "atomic_queue/atomic_queue.h"

namespace gpushare::core {

template <class T>
class HandoffQueue {
 public:
  explicit HandoffQueue(unsigned capacity) : queue_(capacity) {}

  // `element` is not 0.
  void Push(T element) {
#if defined(ABSL_HAVE_THREAD_SANITIZER)
    order_.fetch_add(1, std::memory_order_release);  // ThreadSanitizer knows no fences
#endif
    queue_.push(element);
  }

  bool TryPop(T& element) {
    if (!queue_.try_pop(element)) return false;
#if defined(ABSL_HAVE_THREAD_SANITIZER)
    order_.load(std::memory_order_acquire);
#else
    std::atomic_thread_fence(std::memory_order_acquire);
#endif
    return true;
  }

  bool Empty() const { return queue_.was_empty(); }

 private:
  atomic_queue::AtomicQueueB<T> queue_;
#if defined(ABSL_HAVE_THREAD_SANITIZER)
  std::atomic<unsigned> order_{0};
#endif
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_BASE_CONTAINERS_HANDOFF_QUEUE_H_
