// How much best-effort work a region may have on the device: the plan says it, callers read it.
//
// Where in the flow: the launch stage publishes it with each plan; a region's begin
// (flow/entry/region) and the gate of an eager loop (bindings/python/native) read it, the latter
// before each launch. So a reader takes no lock, and mostly reads two words.
//
// Whether LC work is in flight is not here: LcGate counts it, and a reader asks both. Invariant: a
// reader never sees more than a plan allowed: the gap of a plan is written before its room, and
// read behind it. What a plan has on credit goes to one region, of an app that the plan names.
//
// Threads: Publish the one that runs Tick, the others any.

#ifndef GPUSHARE_SRC_CORE_STATE_SHARED_REGION_ROOM_H_
#define GPUSHARE_SRC_CORE_STATE_SHARED_REGION_ROOM_H_

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "src/core/base/limits.h"
#include "src/core/base/types.h"

namespace gpushare::core {

static_assert(kMaxApps <= 64, "a bit an app");

// What a plan allows, in time on the device. 0: no region.
struct RegionRoom {
  int64_t longest_ns = 0;    // what every LC app tolerates in front of its next query
  int64_t saved_ns = 0;      // one launch, for which every app that tolerates less has saved
  int64_t on_credit_ns = 0;  // what every app that tolerates less has credit for
  uint64_t credit_apps = 0;  // a bit for the slot of each BE app that may take either
  // An app that works in steps expects its next query until then, and tolerates no more before.
  TimeNs gap_until_ns = 0;
  int64_t gap_ns = 0;
};

class RegionRooms {
 public:
  void Publish(const RegionRoom& room) {
    gap_ns_.store(room.gap_ns, std::memory_order_relaxed);
    gap_until_ns_.store(room.gap_until_ns, std::memory_order_relaxed);
    credit_apps_.store(room.credit_apps, std::memory_order_relaxed);
    on_credit_ns_.store(room.on_credit_ns, std::memory_order_release);
    saved_ns_.store(room.saved_ns, std::memory_order_release);
    longest_ns_.store(room.longest_ns, std::memory_order_release);
  }

  // `now_ns` gives the time, and is called only inside or behind a gap.
  template <class Clock>
  int64_t Longest(Clock&& now_ns) const {
    const int64_t longest_ns = longest_ns_.load(std::memory_order_acquire);
    const TimeNs gap_until_ns = gap_until_ns_.load(std::memory_order_relaxed);
    if (gap_until_ns == 0 || now_ns() >= gap_until_ns) return longest_ns;
    return std::min(longest_ns, gap_ns_.load(std::memory_order_relaxed));
  }

  // Takes what a plan has saved for a region of one launch, until GiveSavedBack. False: there is
  // less, it is another app's turn, or another region has it: of two a query would wait for both.
  // Nothing starts so where a query is expected.
  template <class Clock>
  bool TakeSaved(uint32_t app_slot, int64_t bound_ns, Clock&& now_ns) {
    const int64_t saved_ns = saved_ns_.load(std::memory_order_acquire);
    if (bound_ns > saved_ns || !IsTurnOf(app_slot) || IsInGap(now_ns)) return false;
    return !saved_taken_.exchange(true, std::memory_order_acq_rel);
  }
  void GiveSavedBack() { saved_taken_.store(false, std::memory_order_release); }

  // The same of the plan's credit.
  template <class Clock>
  bool TakeCredit(uint32_t app_slot, int64_t bound_ns, Clock&& now_ns) {
    int64_t on_credit_ns = on_credit_ns_.load(std::memory_order_acquire);
    if (!IsTurnOf(app_slot) || IsInGap(now_ns)) return false;
    return bound_ns <= on_credit_ns && on_credit_ns_.compare_exchange_strong(on_credit_ns, 0);
  }

 private:
  bool IsTurnOf(uint32_t app_slot) const {
    return (credit_apps_.load(std::memory_order_relaxed) >> app_slot & 1) != 0;
  }
  // Whether a query is expected.
  template <class Clock>
  bool IsInGap(Clock&& now_ns) const {
    const TimeNs gap_until_ns = gap_until_ns_.load(std::memory_order_relaxed);
    return gap_until_ns != 0 && now_ns() < gap_until_ns;
  }

  std::atomic<int64_t> longest_ns_{0};
  std::atomic<int64_t> saved_ns_{0};
  std::atomic<bool> saved_taken_{false};
  std::atomic<int64_t> on_credit_ns_{0};
  std::atomic<uint64_t> credit_apps_{0};
  std::atomic<int64_t> gap_ns_{0};
  std::atomic<TimeNs> gap_until_ns_{0};
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_STATE_SHARED_REGION_ROOM_H_
