// Who uses a graph: the kind of apps that submit it, its open tasks, and whether it is retired.
//
// Invariants: one word holds all of it, so a retired graph without an open task never gets another
// one. Threads: any.

#ifndef GPUSHARE_SRC_CORE_STATE_LAUNCHES_GRAPH_USE_H_
#define GPUSHARE_SRC_CORE_STATE_LAUNCHES_GRAPH_USE_H_

#include <atomic>
#include <cstdint>

namespace gpushare::core {

// By how a graph that can run in segments runs for them: whole, for LC apps; in segments, for BE
// apps; in segments, for LC apps that yield.
enum class GraphUser : uint8_t { kLc = 1, kBe = 2, kYieldingLc = 3 };

class GraphUse {
 public:
  enum class Answer : uint8_t { kEntered, kOtherUser, kRetired };

  // For a task that is about to be accepted. `one_user`: the first task decides which kind of apps
  // may submit the graph, for good.
  Answer Enter(GraphUser user, bool one_user) {
    const auto own = static_cast<uint32_t>(user);
    uint32_t word = word_.load(std::memory_order_relaxed);
    uint32_t next = 0;
    do {
      if ((word & kRetired) != 0) return Answer::kRetired;
      const uint32_t claimed = word & kUserMask;
      if (one_user && claimed != 0 && claimed != own) return Answer::kOtherUser;
      next = (word | (one_user ? own : 0)) + kOneTask;
    } while (!word_.compare_exchange_weak(word, next, std::memory_order_acq_rel,
                                          std::memory_order_relaxed));
    return Answer::kEntered;
  }
  // Of a graph that has one kind of user and had a task.
  GraphUser first_user() const {
    return static_cast<GraphUser>(word_.load(std::memory_order_acquire) & kUserMask);
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
  static constexpr uint32_t kUserMask = 3;  // GraphUser; 0: none
  static constexpr uint32_t kRetired = 4;
  static constexpr uint32_t kTaken = 8;
  static constexpr uint32_t kOneTask = 16;

  std::atomic<uint32_t> word_{0};
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_STATE_LAUNCHES_GRAPH_USE_H_
