// Stage 4, plan: builds the snapshot and asks the policy for a plan.
//
//   promote ready heads (promote.h) -> snapshot -> Policy::MakePlan
//
// The snapshot holds all that a policy may know, in buffers that are allocated once; the policy is
// a pure function of it. A plan is made when something changed, or when the last plan asked for
// another. Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_FLOW_PLAN_H_
#define GPUSHARE_SRC_CORE_FLOW_PLAN_H_

#include "src/core/state/flow.h"

namespace gpushare::core {

void MakePlan(Flow& flow);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_PLAN_H_
