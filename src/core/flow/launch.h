// Stage 5, launch: turns a plan into device calls.
//
//   publish the routes -> evict -> launch -> record the holds
//
// BE launches pass the gate: epoch first, gate second (lc_gate.h). One task by itself is
// verbs/launch_task.h; two in one launch are fused/fused_launch.h. No lock is held over a device
// call. Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_FLOW_LAUNCH_H_
#define GPUSHARE_SRC_CORE_FLOW_LAUNCH_H_

#include "src/core/state/flow.h"

namespace gpushare::core {

void Launch(Flow& flow);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_LAUNCH_H_
