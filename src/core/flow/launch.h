// Stage 5, launch: turns a plan into device calls.
//
//   publish the routes -> evict -> launch -> record the holds
//
// A BE launch reads its lane's epoch first and checks the gate second (state/shared/lc_gate.h). One
// task by itself is launched by verbs/launch_task.h, two in one launch by fused/fused_launch.h.
// Opaque work calls the application, so it is deferred until Tick has released its lock. Threads:
// the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_FLOW_LAUNCH_H_
#define GPUSHARE_SRC_CORE_FLOW_LAUNCH_H_

#include "src/core/state/flow.h"

namespace gpushare::core {

void Launch(Flow& flow);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_LAUNCH_H_
