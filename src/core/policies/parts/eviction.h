// Planning the eviction of live BE parts.
//
// A part that has no eviction word, or is already evicted, is skipped.

#ifndef GPUSHARE_SRC_CORE_POLICIES_PARTS_EVICTION_H_
#define GPUSHARE_SRC_CORE_POLICIES_PARTS_EVICTION_H_

#include <cstdint>

#include "src/core/base/types.h"
#include "src/core/policies/parts/launch_form.h"
#include "src/core/seams/launch_claims.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

constexpr uint64_t PlaceBit(PlaceIndex place) { return uint64_t{1} << place; }

// One eviction for each place in `places` on which the task has evictable parts.
inline void EvictTaskParts(const RunningView& task, uint64_t places, Reason reason, Plan& plan) {
  uint64_t named = 0;
  for (int32_t i = 0; i < task.parts.size(); ++i) {
    const PartView& part = task.parts[i];
    if (part.place < 0 || part.evicting || !ClaimsBlockTasks(part.form)) continue;
    const uint64_t bit = PlaceBit(part.place);
    if ((bit & places) == 0 || (bit & named) != 0) continue;
    named |= bit;
    plan.evictions.TryAdd({.task = task.task.task, .place = part.place, .reason = reason});
  }
}

inline void EvictBeParts(const Snapshot& snapshot, uint64_t places, Reason reason, Plan& plan) {
  if (!snapshot.eviction_available) return;
  for (const RunningView& task : snapshot.running) {
    if (task.task.app_class != AppClass::kBestEffort) continue;
    EvictTaskParts(task, places, reason, plan);
  }
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_PARTS_EVICTION_H_
