// A plan in place of the policy's, so that work goes on: after a policy threw, and at a shutdown
// whose policy leaves an idle device idle.
//
// LC heads are launched at once. BE heads are launched when the device is idle and no LC head is
// ready. Then no work needs protection, so budgets and quotas do not count. Thread: the one that
// runs Tick.

#ifndef GPUSHARE_SRC_CORE_FLOW_PLANNING_PROGRESS_PLAN_H_
#define GPUSHARE_SRC_CORE_FLOW_PLANNING_PROGRESS_PLAN_H_

#include "src/core/state/flow.h"

namespace gpushare::core {

// Adds launches of the snapshot's heads to the flow's plan.
void PlanForProgress(Flow& flow);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_PLANNING_PROGRESS_PLAN_H_
