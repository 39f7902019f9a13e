// Part of stage 6, complete: launches that do not end, and evictions that take no effect in time.
//
// A launch hangs when it shows no progress for its limit (hang_limit.h). Progress is a completion
// on its lane, a block task that its task claims, or an earlier launch that holds its SMs. The last
// two are looked at only when the limit has passed, so a hang is found within twice the limit. A
// device that does not say what was claimed gets the limit once more.
//
// The lane of a hung launch is given up (lane_loss.h). Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_FLOW_LOSS_HANGS_H_
#define GPUSHARE_SRC_CORE_FLOW_LOSS_HANGS_H_

#include "src/core/state/flow.h"

namespace gpushare::core {

// Gives up every lane with a hung launch. Returns whether there was one.
bool CheckHangs(Flow& flow);

// Counts evictions that took no effect in time while their launches still run, once a launch.
void CheckBlockedEvictions(Flow& flow);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_LOSS_HANGS_H_
