// Who uses a graph: the class of the apps that submit it, its open tasks, and whether it is
// retired.
//
// Invariants: one word holds all of it, so a retired graph without an open task never gets another
// one. Threads: any.

#ifndef GPUSHARE_SRC_CORE_STATE_LAUNCHES_GRAPH_USE_H_
#define GPUSHARE_SRC_CORE_STATE_LAUNCHES_GRAPH_USE_H_

#include <atomic>
#include <cstdint>

#include "src/core/base/types.h"

namespace gpushare::core {

class GraphUse {
 public:
  enum class Answer : uint8_t { kEntered, kOtherClass, kRetired };

  // For a task that is about to be accepted. `one_class`: the first task decides which class of
  // apps may submit the graph, for good.
  Answer Enter(AppClass app_class, bool one_class) {
    const uint32_t own = static_cast<uint32_t>(app_class) + 1;
    uint32_t word = word_.load(std::memory_order_relaxed);
    uint32_t next = 0;
    do {
      if ((word & kRetired) != 0) return Answer::kRetired;
      const uint32_t claimed = word & kClassMask;
      if (one_class && claimed != 0 && claimed != own) return Answer::kOtherClass;
      next = (word | (one_class ? own : 0)) + kOneTask;
    } while (!word_.compare_exchange_weak(word, next, std::memory_order_acq_rel,
                                          std::memory_order_relaxed));
    return Answer::kEntered;
  }
  // The task is complete, and none of its launches is on the device.
  void Leave() { word_.fetch_sub(kOneTask, std::memory_order_acq_rel); }

  // No task enters from now on.
  void Retire() { word_.fetch_or(kRetired, std::memory_order_acq_rel); }
  // True once: the graph is retired and its last task has left.
  bool TakeIdle() {
    uint32_t word = word_.load(std::memory_order_acquire);
    if ((word & kRetired) == 0 || (word & kTaken) != 0 || word >= kOneTask) return false;
    return word_.compare_exchange_strong(word, word | kTaken, std::memory_order_acq_rel);
  }

  // No task of the graph is open.
  bool IsIdle() const { return word_.load(std::memory_order_acquire) < kOneTask; }
  // Another kernel takes the place of the graph, which is idle.
  void Reset() { word_.store(0, std::memory_order_release); }

 private:
  static constexpr uint32_t kClassMask = 3;  // AppClass + 1; 0: none
  static constexpr uint32_t kRetired = 4;
  static constexpr uint32_t kTaken = 8;
  static constexpr uint32_t kOneTask = 16;

  std::atomic<uint32_t> word_{0};
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_STATE_LAUNCHES_GRAPH_USE_H_
