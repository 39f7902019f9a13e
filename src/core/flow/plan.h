// Stage 4, plan: the snapshot, and the policy's answer to it.
//
// It copies what a policy may know into buffers that are allocated once; the policy is a
// pure function of it. A plan is made when something changed or when the last plan asked for one.
// Thread: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_FLOW_PLAN_H_
#define GPUSHARE_SRC_CORE_FLOW_PLAN_H_

#include "src/core/state/flow.h"

namespace gpushare::core {

void MakePlan(Flow& flow);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_PLAN_H_
