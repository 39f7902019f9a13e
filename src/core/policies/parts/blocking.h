// Blocking time: the longest that a launch of a task can keep an LC kernel waiting.
//
// min(remaining duration, what an eviction adds to a query) where it can be evicted; else its
// remaining duration with one standard deviation of the prediction's error. A place smaller than
// the device stretches the remaining duration in proportion.

#ifndef GPUSHARE_SRC_CORE_POLICIES_PARTS_BLOCKING_H_
#define GPUSHARE_SRC_CORE_POLICIES_PARTS_BLOCKING_H_

#include <algorithm>
#include <cstdint>

#include "src/core/base/types.h"
#include "src/core/policies/parts/launch_form.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

inline int64_t RemainingOn(const Snapshot& snapshot, const HeadView& task, PlaceIndex place) {
  const int64_t whole_ns =
      std::min(task.remaining.duration_ns + task.remaining.error_ns, kMaxDurationNs * 24);
  if (place == kWholeDevice || whole_ns <= 0) return std::max<int64_t>(whole_ns, 0);
  const int32_t sms = std::max(snapshot.places[static_cast<size_t>(place)].sms, 1);
  return whole_ns * std::max(snapshot.sm_count, sms) / sms;
}

inline int64_t BlockingOn(const Snapshot& snapshot, const HeadView& task, PlaceIndex place) {
  const int64_t remaining_ns = RemainingOn(snapshot, task, place);
  return CanBeEvicted(snapshot, task) ? std::min(remaining_ns, task.eviction_ns) : remaining_ns;
}

// The p99 of the time in which a task that can be evicted has left the place.
inline int64_t LeavesWithin(const Snapshot& snapshot, const HeadView& task, PlaceIndex place) {
  return std::min(RemainingOn(snapshot, task, place), task.eviction_p99_ns);
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_PARTS_BLOCKING_H_
