// baymax: BE heads in fair order against one ledger (baymax.h).

#include "src/core/policies/papers/baymax.h"

#include <algorithm>
#include <cstdint>

#include "src/core/policies/parts/bounds.h"
#include "src/core/policies/parts/copy_slots.h"
#include "src/core/policies/parts/headroom_ledger.h"
#include "src/core/policies/parts/launch_form.h"
#include "src/core/policies/parts/lc_first.h"
#include "src/core/policies/parts/quiet.h"

namespace gpushare::core {
namespace {

// Eq. 4 exceeds eq. 3 by what concurrency saved. Where ours is the smaller one, T_q counts later
// queries' tasks too, and that is no refill.
int64_t MinSerialHeadroom(const Snapshot& snapshot) {
  int64_t headroom_ns = MinHeadroom(snapshot);
  for (const QueryView& query : snapshot.queries) {
    headroom_ns = std::min(headroom_ns, query.serial_headroom_ns);
  }
  return headroom_ns;
}

}  // namespace

void BaymaxPolicy::MakePlan(const Snapshot& snapshot, Plan& plan) {
  if (PlanQuiesced(snapshot, plan)) return;
  LcRoute route;
  route.lane_class = LaneClass::kPlain;  // no priorities: order comes from not launching
  PublishRoutes(snapshot, route, plan);
  const int64_t headroom_ns =
      form_ == BaymaxForm::kNoRefill ? MinSerialHeadroom(snapshot) : MinHeadroom(snapshot);
  HeadroomLedger ledger(snapshot, headroom_ns, LaunchLcHeads(snapshot, plan));
  CopySlots slots(snapshot, ledger.shares());

  BeOrder order;
  ledger.shares().Order(order);
  for (const HeadView* head : order) {
    if (head->kind == TaskKind::kMemcpy && form_ == BaymaxForm::kNoPcie) {
      plan.launches.TryAdd(
          MakeLaunch(head->task, Form::kMemcpy, kWholeDevice, LaneClass::kCopy, Reason::kBaseline));
    } else if (head->kind == TaskKind::kMemcpy) {
      PlanCopy(*head, slots, ledger, plan);
    } else {
      PlanBeCompute(snapshot, *head, ledger, plan);
    }
  }
  PlanRunningSegments(snapshot, ledger, plan);
}

}  // namespace gpushare::core
