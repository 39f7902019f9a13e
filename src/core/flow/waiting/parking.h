// Where the scheduler's thread sleeps, and what wakes it.
//
//   thread: Announce -> look for work, under the locks that it needs -> Sleep, or Withdraw
//   others: post work -> Wake
//
// Invariant: no wake-up is lost. The thread announces before it looks for work, and others post
// before they look at the announcement, so one of the two sees the other. Both use seq_cst, and a
// push to the submit ring is a full barrier.
// Cost of Wake: one load while the thread is awake, else one system call; of several submitters
// only one makes it. The word has a cache line of its own, because every submit reads it.
// Threads: one thread sleeps; any thread wakes.

#ifndef GPUSHARE_SRC_CORE_FLOW_WAITING_PARKING_H_
#define GPUSHARE_SRC_CORE_FLOW_WAITING_PARKING_H_

#include <atomic>
#include <cstdint>

#include "src/core/base/futex.h"
#include "src/core/base/types.h"

namespace gpushare::core {

class alignas(64) Parking {
 public:
  void Announce() { word_.store(kAsleep, std::memory_order_seq_cst); }
  void Withdraw() { word_.store(kAwake, std::memory_order_relaxed); }

  // Sleeps until a Wake since Announce, or for `time_ns`; kNever: no limit. True: it was woken.
  bool Sleep(int64_t time_ns) {
    FutexWait(word_, kAsleep, time_ns);
    return word_.exchange(kAwake, std::memory_order_seq_cst) == kAwake;
  }

  void Wake() {
    if (word_.load(std::memory_order_seq_cst) == kAwake) return;
    if (word_.exchange(kAwake, std::memory_order_seq_cst) == kAsleep) FutexWake(word_, 1);
  }

 private:
  static constexpr uint32_t kAwake = 0;
  static constexpr uint32_t kAsleep = 1;

  std::atomic<uint32_t> word_{kAwake};
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_WAITING_PARKING_H_
