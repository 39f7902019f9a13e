// Part of stage 4, plan: marks the queue heads that are ready.
//
// The head of a queue is ready once the tickets that it waits for are done. If one of their tasks
// did not end OK, the head fails and its record names that ticket. A task that only stands behind
// another one in its queue runs however that one ended. Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_FLOW_PLANNING_PROMOTE_H_
#define GPUSHARE_SRC_CORE_FLOW_PLANNING_PROMOTE_H_

#include "src/core/state/flow.h"

namespace gpushare::core {

// Before each plan. May finish tasks.
void PromoteHeads(Flow& flow);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_PLANNING_PROMOTE_H_
