// Part of stage 4, plan: marks the queue heads that are ready.
//
// The head of a queue is ready once the tickets that it waits for are done. A ticket that failed
// fails its dependants. Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_FLOW_PROMOTE_H_
#define GPUSHARE_SRC_CORE_FLOW_PROMOTE_H_

#include "src/core/state/flow.h"

namespace gpushare::core {

// Before each plan. May finish tasks.
void PromoteHeads(Flow& flow);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_PROMOTE_H_
