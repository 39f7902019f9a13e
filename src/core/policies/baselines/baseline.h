// What the baselines bare, fifo and priority share: launching a head as it comes, and for bare and
// fifo all heads in order of submission.

#ifndef GPUSHARE_SRC_CORE_POLICIES_BASELINES_BASELINE_H_
#define GPUSHARE_SRC_CORE_POLICIES_BASELINES_BASELINE_H_

#include <utility>

#include "src/core/base/containers/bounded_list.h"
#include "src/core/base/limits.h"
#include "src/core/policies/parts/launch_form.h"
#include "src/core/seams/snapshot.h"

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
  return plan.launches.TryAdd(launch);
}

// All heads on plain lanes, whatever their class. A snapshot has the LC heads first: they are put
// back in order of submission.
inline void LaunchInOrderOfSubmission(const Snapshot& snapshot, Plan& plan) {
  BoundedList<const HeadView*, kMaxHeads> order;
  for (const HeadView& head : snapshot.heads) {
    if (!order.TryAdd(&head)) break;
    for (int at = order.size() - 1; at > 0 && order[at - 1]->sequence > head.sequence; --at) {
      std::swap(order[at - 1], order[at]);
    }
  }
  for (const HeadView* head : order) {
    if (!LaunchAsItComes(*head, LaneClass::kPlain, plan)) return;
  }
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_BASELINES_BASELINE_H_
