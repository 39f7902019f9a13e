// baymax: BE heads in fair order against one ledger (baymax.h).

#include "src/core/policies/papers/baymax.h"

#include "src/core/policies/papers/headroom_ledger.h"
#include "src/core/policies/parts/copy_slots.h"
#include "src/core/policies/parts/launch_form.h"
#include "src/core/policies/parts/lc_first.h"
#include "src/core/policies/parts/quiet.h"

namespace gpushare::core {

void BaymaxPolicy::MakePlan(const Snapshot& snapshot, Plan& plan) {
  if (PlanQuiesced(snapshot, plan)) return;
  LcRoute route;
  route.lane_class = LaneClass::kPlain;  // no priorities: order comes from not launching
  PublishRoutes(snapshot, route, plan);
  HeadroomLedger ledger(snapshot, LaunchLcHeads(snapshot, plan));
  CopySlots slots(snapshot);

  BeOrder order;
  ledger.shares().Order(order);
  for (const HeadView* head : order) {
    if (head->kind == TaskKind::kMemcpy && !manages_copies_) {
      plan.launches.TryAdd(
          MakeLaunch(head->task, Form::kMemcpy, kWholeDevice, LaneClass::kCopy, Reason::kBaseline));
    } else if (head->kind == TaskKind::kMemcpy) {
      PlanCopy(*head, slots, ledger, plan);
    } else {
      PlanBeCompute(snapshot, *head, ledger, plan);
    }
  }
}

}  // namespace gpushare::core
