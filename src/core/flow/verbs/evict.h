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

// What became of an eviction: there was nothing to evict, every word was written, or one was not.
// Of several the largest counts.
enum class Eviction : uint8_t { kNothing = 0, kWritten, kFailed };

// Evicts every evictable launch on lanes that share an SM with `place`. The caller has entered the
// gate.
Eviction EvictOverlapping(Flow& flow, PlaceIndex place, Reason reason);

// Evicts the BE work that shares an SM with `place`, and notes in the LC task whether its launch
// waits until the SMs are empty. `place` may be wider than the route's. The caller has entered the
// gate.
void EvictForRoute(Flow& flow, Task& task, const LcRoute& route, PlaceIndex place);

// Writes the lane's eviction word so that all but `workers_to_keep` of its workers leave. `task`
// labels the event; 0 stands for every launch of the lane. `own`: as in LcGate::IsOpen.
Eviction EvictLane(Flow& flow, LaneIndex lane, int32_t workers_to_keep, TicketId task,
                   Reason reason, int64_t own = 0);

// The time after which an eviction of the task counts as blocked.
inline int64_t BlockedEvictionNs(const Task& task) {
  return kBlockedEvictionFactor * task.progress.eviction_p99_ns + kBlockedEvictionFloorNs;
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_VERBS_EVICT_H_
