// A plan in place of the policy's. See progress_plan.h.

#include "src/core/flow/planning/progress_plan.h"

#include "src/core/seams/ordinary_form.h"

namespace gpushare::core {
namespace {

bool LaunchHead(const Snapshot& snapshot, const HeadView& head, Plan& plan) {
  const bool lc = head.app_class == AppClass::kLatencyCritical;
  const bool evictable = !lc && snapshot.eviction_available && head.evictable;
  PlannedLaunch launch;
  launch.task = head.task;
  launch.count = head.ready_count;
  launch.form = evictable ? EvictableForm(head.kind) : OrdinaryForm(head.kind);
  launch.lane_class = lc ? LaneClass::kLc : evictable ? LaneClass::kBe : LaneClass::kPlain;
  launch.reason = lc ? Reason::kLcFirst : Reason::kIdleDevice;
  return plan.launches.TryAdd(launch);
}

}  // namespace

void PlanForProgress(Flow& flow) {
  const Snapshot& snapshot = flow.buffers.snapshot;
  Plan& plan = flow.buffers.plan;
  bool any_lc = false;
  for (const HeadView& head : snapshot.heads) {
    if (head.app_class != AppClass::kLatencyCritical) continue;
    any_lc = true;
    if (!LaunchHead(snapshot, head, plan)) return;
  }
  const bool idle = flow.running_be.empty() && flow.running_lc.empty() && flow.gate.InFlight() == 0;
  if (any_lc || !idle) return;
  for (const HeadView& head : snapshot.heads) {
    if (!LaunchHead(snapshot, head, plan)) return;
  }
}

}  // namespace gpushare::core
