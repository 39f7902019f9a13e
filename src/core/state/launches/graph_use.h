// Who uses a graph: the kind of apps that submit it, its open tasks, and whether it is retired.
//
// All tasks of a graph share the buffers of its capture. CUDA runs two launches of one instance one
// after the other, and knows nothing of pieces (entry/pieces.h). So the open queries in pieces are
// of one queue, which orders them, and began while no other queue had an open task. What another
// queue submits later waits for them (behind_pieces), and while it is open no query is cut. Nothing
// waits in a circle: a query in pieces waits for no task that was submitted after it.
//
// Invariants: one word holds all of it, so a retired graph without an open task never gets another
// one. Threads: any.

#ifndef GPUSHARE_SRC_CORE_STATE_LAUNCHES_GRAPH_USE_H_
#define GPUSHARE_SRC_CORE_STATE_LAUNCHES_GRAPH_USE_H_

#include <atomic>
#include <cstdint>

#include "src/core/base/limits.h"

namespace gpushare::core {

// By how a graph that can run in segments runs for them: whole, for LC apps; in segments, for BE
// apps; in segments, for LC apps that yield.
enum class GraphUser : uint8_t { kLc = 1, kBe = 2, kYieldingLc = 3 };

class GraphUse {
 public:
  enum class Answer : uint8_t { kEntered, kOtherUser, kRetired };

  // For a task that is about to be accepted. `one_user`: the first task decides which kind of apps
  // may submit the graph, for good. `queue`: the slot of its queue. `behind_pieces`: it must not
  // run while the graph is InPieces.
  Answer Enter(GraphUser user, bool one_user, uint32_t queue, bool& behind_pieces) {
    const auto own = static_cast<uint64_t>(user);
    uint64_t word = word_.load(std::memory_order_relaxed);
    uint64_t next = 0;
    do {
      if ((word & kRetired) != 0) return Answer::kRetired;
      const uint64_t claimed = word & kUserMask;
      if (one_user && claimed != 0 && claimed != own) return Answer::kOtherUser;
      next = WithQueue(word, IsOfOthers(word, queue) ? kManyQueues : queue + 1);
      next = (next | (one_user ? own : 0)) + kOneTask;
    } while (!word_.compare_exchange_weak(word, next, std::memory_order_acq_rel,
                                          std::memory_order_relaxed));
    behind_pieces = (word & kPiecesMask) != 0 && QueueOf(next) == kManyQueues;
    return Answer::kEntered;
  }
  // The same for a query in pieces: for all of them, beside the uses of their own graphs. False: a
  // task of another queue is open, or the graph is retired.
  bool EnterInPieces(uint32_t queue) {
    uint64_t word = word_.load(std::memory_order_relaxed);
    do {
      if ((word & kRetired) != 0 || IsOfOthers(word, queue)) return false;
    } while (!word_.compare_exchange_weak(word,
                                          WithQueue(word, queue + 1) + kOneInPieces + kOneTask,
                                          std::memory_order_acq_rel, std::memory_order_relaxed));
    return true;
  }
  // What EnterInPieces would answer now.
  bool MayEnterInPieces(uint32_t queue) const {
    const uint64_t word = word_.load(std::memory_order_relaxed);
    return (word & kRetired) == 0 && !IsOfOthers(word, queue);
  }
  // A query in pieces is open.
  bool InPieces() const { return (word_.load(std::memory_order_acquire) & kPiecesMask) != 0; }
  // Of a graph that has one kind of user and had a task.
  GraphUser first_user() const {
    return static_cast<GraphUser>(word_.load(std::memory_order_acquire) & kUserMask);
  }
  // The task is complete, and none of its launches is on the device.
  void Leave() { Take(kOneTask, false); }
  // The query in pieces is. `hangs`: but for a launch that was given up.
  void LeavePieces(bool hangs) { Take(hangs ? kOneInPieces : kOneInPieces + kOneTask, hangs); }
  // A launch of its task was given up and may still run: the task stays, and nothing of the graph
  // is cut any more.
  void Hang() { Take(0, true); }

  // No task enters from now on.
  void Retire() { word_.fetch_or(kRetired, std::memory_order_acq_rel); }
  // True once: the graph is retired and its last task has left.
  bool TakeIdle() {
    uint64_t word = word_.load(std::memory_order_acquire);
    if ((word & kRetired) == 0 || (word & kTaken) != 0 || word >= kOneTask) return false;
    return word_.compare_exchange_strong(word, word | kTaken, std::memory_order_acq_rel);
  }

  // No task of the graph is open.
  bool IsIdle() const { return word_.load(std::memory_order_acquire) < kOneTask; }
  // Another kernel takes the place of the graph, which is idle.
  void Reset() { word_.store(0, std::memory_order_release); }

 private:
  static constexpr uint64_t kUserMask = 3;  // GraphUser; 0: none
  static constexpr uint64_t kRetired = 4;
  static constexpr uint64_t kTaken = 8;
  // Slot + 1 of the queue of all open tasks; 0: none is open.
  static constexpr int kQueueShift = 4;
  static constexpr uint64_t kManyQueues = 0xfff;
  static constexpr uint64_t kOneInPieces = uint64_t{1} << 16;
  static constexpr uint64_t kPiecesMask = uint64_t{0xffff} << 16;
  static constexpr uint64_t kOneTask = uint64_t{1} << 32;
  static_assert(kMaxQueues < kManyQueues);
  static_assert(kMaxTasks / 2 <= kPiecesMask / kOneInPieces, "a query in pieces has two tasks");

  static uint64_t QueueOf(uint64_t word) { return word >> kQueueShift & kManyQueues; }
  static uint64_t WithQueue(uint64_t word, uint64_t queue) {
    return (word & ~(kManyQueues << kQueueShift)) | queue << kQueueShift;
  }
  static bool IsOfOthers(uint64_t word, uint32_t queue) {
    return word >= kOneTask && QueueOf(word) != queue + 1;
  }

  void Take(uint64_t left, bool hangs) {
    uint64_t word = word_.load(std::memory_order_relaxed);
    uint64_t next = 0;
    do {
      next = word - left;
      if (hangs) next = WithQueue(next, kManyQueues);
      if (next < kOneTask) next = WithQueue(next, 0);
    } while (!word_.compare_exchange_weak(word, next, std::memory_order_acq_rel,
                                          std::memory_order_relaxed));
  }

  std::atomic<uint64_t> word_{0};
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_STATE_LAUNCHES_GRAPH_USE_H_
