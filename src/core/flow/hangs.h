// Part of stage 6, complete: launches that do not end, and evictions that take no effect in time.
//
// A launch hangs when neither it nor its lane makes progress for its limit. Its lane is abandoned,
// the lane's tasks end with kTimedOut, and a new lane replaces it if the device has one. Threads:
// the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_FLOW_HANGS_H_
#define GPUSHARE_SRC_CORE_FLOW_HANGS_H_

#include "src/core/state/flow.h"

namespace gpushare::core {

// Abandons every lane with a hung launch. Returns whether there was one.
bool CheckHangs(Flow& flow);

// Counts evictions that took no effect in time while their launches still run, once a launch.
void CheckBlockedEvictions(Flow& flow);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_HANGS_H_
