// The verb "evict": writes eviction words. A policy, a route or a call such as cancel decides to
// evict; this file carries it out.
//
//   raise the lane's epoch in the gate -> Device::Evict with the new word -> event
//
// Invariant: a lane's last word is that of its newest epoch, whatever order two threads write in.
//
// Threads: any. An LC submitter evicts from its own thread while the flow evicts for a plan.

#ifndef GPUSHARE_SRC_CORE_FLOW_VERBS_EVICT_H_
#define GPUSHARE_SRC_CORE_FLOW_VERBS_EVICT_H_

#include <cstdint>

#include "src/core/base/tuning.h"
#include "src/core/state/flow.h"

namespace gpushare::core {

enum class Eviction : uint8_t { kNothing = 0, kWritten, kFailed };

// Evicts every evictable launch on lanes that share an SM with `place`. The caller has entered the
// gate. kFailed: a word could not be written.
Eviction EvictOverlapping(Flow& flow, PlaceIndex place, Reason reason);

// Whether an LC launch may wait until its SMs are empty: it evicted something, and nothing else
// holds them. No eviction reaches an open region or work that hung, so none waits beside these. The
// caller has entered the gate.
inline bool MayWaitForEmptySms(const Flow& flow, Eviction eviction) {
  return eviction == Eviction::kWritten && flow.gate.InFlight() == 1 &&
         flow.open_regions.load(std::memory_order_acquire) == 0 &&
         flow.counters.hung.load(std::memory_order_relaxed) == 0;
}

// Writes the lane's eviction word so that all but `workers_to_keep` of its workers leave. `task`
// labels the event; 0 stands for every launch of the lane.
Eviction EvictLane(Flow& flow, LaneIndex lane, int32_t workers_to_keep, TicketId task,
                   Reason reason);

// The time after which an eviction of the task counts as blocked.
inline int64_t BlockedEvictionNs(const Task& task) {
  return kBlockedEvictionFactor * task.progress.eviction_p99_ns + kBlockedEvictionFloorNs;
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_VERBS_EVICT_H_
