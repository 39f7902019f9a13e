// What the baselines bare, fifo and priority share: launching a head as it comes.

#ifndef GPUSHARE_SRC_CORE_POLICIES_BASELINE_H_
#define GPUSHARE_SRC_CORE_POLICIES_BASELINE_H_

#include "src/core/policies/launch_form.h"
#include "src/core/snapshot.h"

namespace gpushare::core {

// The head, and the tasks of its queue that may follow it in a row, on the whole device. Returns
// false when the plan is full.
inline bool LaunchAsItComes(const HeadView& head, LaneClass lane_class, Plan& plan) {
  PlannedLaunch launch;
  launch.task = head.task;
  launch.count = head.ready_count;
  launch.form = OrdinaryForm(head.kind);
  launch.lane_class = lane_class;
  launch.reason = Reason::kBaseline;
  return plan.AddLaunch(launch);
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_BASELINE_H_
