// LC apps that yield to LC apps of higher priority (AppOptions::yield_ns_max; docs/lc-priority.md).
//
// While an LC app of higher priority has a query that does not only wait, the heads of a yielding
// app wait, and its graphs on the device, which run in segments, are evicted; a plan does not see
// these heads. A query whose tasks have waited for yield_ns_max in all goes on and stays. A
// yielding app's graph has a lane without an eviction word for workers, so no LC caller evicts it,
// only a plan does: the plan that follows a launch of the fast path.
//
// The evidence of an app stands still while one of its tasks waits so (evidence/app_evidence.h).
//
//   FindYielding      after PromoteHeads: which apps yield now
//   HeadYields        for each LC head: whether a plan may see it
//   NoteYields        after the heads: for the evidence
//   EvictYielding     after the policy's plan: adds evictions, and when a head has waited enough
//
// Without an app that yields all of it does nothing. Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_FLOW_PLANNING_YIELDS_H_
#define GPUSHARE_SRC_CORE_FLOW_PLANNING_YIELDS_H_

#include "src/core/state/flow.h"

namespace gpushare::core {

void FindYielding(Flow& flow);
// Holds the head if it waits for queries of higher priority.
bool HeadYields(Flow& flow, Task& head);
void NoteYields(Flow& flow);
void EvictYielding(Flow& flow);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_PLANNING_YIELDS_H_
