// How much best-effort work a region may have on the device: the plan says it, callers read it.
//
// Where in the flow: the launch stage publishes it with each plan; a region's begin
// (flow/entry/region) and the gate of an eager loop (bindings/python/native) read it, the latter
// before each launch. So a reader takes no lock, and mostly reads two words.
//
// Whether LC work is in flight is not here: LcGate counts it, and a reader asks both. Invariant: a
// reader may see one word of an older plan beside another of the next one; each is a bound that a
// plan allowed. Memory order: relaxed, because nothing else is read by these words.
//
// Threads: Publish the one that runs Tick, the others any.

#ifndef GPUSHARE_SRC_CORE_STATE_SHARED_REGION_ROOM_H_
#define GPUSHARE_SRC_CORE_STATE_SHARED_REGION_ROOM_H_

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "src/core/base/types.h"

namespace gpushare::core {

// What a plan allows, in time on the device. 0: no region.
struct RegionRoom {
  int64_t longest_ns = 0;    // what every LC app tolerates in front of its next query
  int64_t on_credit_ns = 0;  // what every app that tolerates less has credit for
  // An app that works in steps expects its next query until then, and tolerates no more before.
  TimeNs gap_until_ns = 0;
  int64_t gap_ns = 0;
};

class RegionRooms {
 public:
  void Publish(const RegionRoom& room) {
    longest_ns_.store(room.longest_ns, std::memory_order_relaxed);
    on_credit_ns_.store(room.on_credit_ns, std::memory_order_relaxed);
    gap_ns_.store(room.gap_ns, std::memory_order_relaxed);
    gap_until_ns_.store(room.gap_until_ns, std::memory_order_relaxed);
  }

  // `now_ns` gives the time, and is called only inside or behind a gap.
  template <class Clock>
  int64_t Longest(Clock&& now_ns) const {
    const int64_t longest_ns = longest_ns_.load(std::memory_order_relaxed);
    const TimeNs gap_until_ns = gap_until_ns_.load(std::memory_order_relaxed);
    if (gap_until_ns == 0 || now_ns() >= gap_until_ns) return longest_ns;
    return std::min(longest_ns, gap_ns_.load(std::memory_order_relaxed));
  }

  // As Longest, but on credit: nothing starts so where a query is expected.
  template <class Clock>
  int64_t OnCredit(Clock&& now_ns) const {
    const TimeNs gap_until_ns = gap_until_ns_.load(std::memory_order_relaxed);
    if (gap_until_ns != 0 && now_ns() < gap_until_ns) return 0;
    return on_credit_ns_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<int64_t> longest_ns_{0};
  std::atomic<int64_t> on_credit_ns_{0};
  std::atomic<int64_t> gap_ns_{0};
  std::atomic<TimeNs> gap_until_ns_{0};
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_STATE_SHARED_REGION_ROOM_H_
