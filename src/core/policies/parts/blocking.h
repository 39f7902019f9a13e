// Blocking time: the longest that a launch of a task can keep an LC kernel waiting.
//
// min(remaining duration, what an eviction adds to a query) where it can be evicted; else its
// remaining duration with one standard deviation of the prediction's error. A place smaller than
// the device stretches the remaining duration in proportion. Fewer workers an SM stretch it by
// their speed, and shorten the eviction.

#ifndef GPUSHARE_SRC_CORE_POLICIES_PARTS_BLOCKING_H_
#define GPUSHARE_SRC_CORE_POLICIES_PARTS_BLOCKING_H_

#include <algorithm>
#include <cstdint>

#include "src/core/base/types.h"
#include "src/core/policies/parts/launch_form.h"
#include "src/core/seams/snapshot.h"
#include "src/core/seams/width.h"

namespace gpushare::core {

inline int64_t RemainingOn(const Snapshot& snapshot, const HeadView& task, PlaceIndex place,
                           const Width& width = {}) {
  constexpr int64_t kMostNs = kMaxDurationNs * 24;
  int64_t whole_ns = std::min(task.remaining.duration_ns + task.remaining.error_ns, kMostNs);
  if (width.speed < 1) {
    const double slower_ns = static_cast<double>(whole_ns) / width.speed;
    whole_ns = static_cast<int64_t>(std::min(slower_ns, static_cast<double>(kMostNs)));
  }
  if (place == kWholeDevice || whole_ns <= 0) return std::max<int64_t>(whole_ns, 0);
  const int32_t sms = std::max(snapshot.places[static_cast<size_t>(place)].sms, 1);
  return whole_ns * std::max(snapshot.sm_count, sms) / sms;
}

inline int64_t BlockingOn(const Snapshot& snapshot, const HeadView& task, PlaceIndex place,
                          const Width& width = {}) {
  const int64_t remaining_ns = RemainingOn(snapshot, task, place, width);
  if (!CanBeEvicted(snapshot, task)) return remaining_ns;
  return std::min(remaining_ns, EvictionOf(task.eviction_ns, width, snapshot.eviction_write_ns));
}

// The p99 of the time in which a task that can be evicted has left the place.
inline int64_t LeavesWithin(const Snapshot& snapshot, const HeadView& task, PlaceIndex place,
                            const Width& width = {}) {
  return std::min(RemainingOn(snapshot, task, place, width),
                  EvictionOf(task.eviction_p99_ns, width, snapshot.eviction_write_ns));
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_PARTS_BLOCKING_H_
