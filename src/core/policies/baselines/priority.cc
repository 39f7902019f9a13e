// priority: stream priorities and nothing else (priority.h).

#include "src/core/policies/baselines/priority.h"

#include "src/core/policies/baselines/baseline.h"
#include "src/core/policies/parts/lc_first.h"
#include "src/core/policies/parts/quiet.h"

namespace gpushare::core {

void PriorityPolicy::MakePlan(const Snapshot& snapshot, Plan& plan) {
  if (PlanQuiesced(snapshot, plan)) return;
  PublishRoutes(snapshot, LcRoute(), plan);
  LaunchLcHeads(snapshot, plan);
  for (const HeadView& head : snapshot.heads) {
    if (head.app_class == AppClass::kLatencyCritical) continue;
    if (!LaunchAsItComes(head, LaneClass::kBe, plan)) return;
  }
}

}  // namespace gpushare::core
