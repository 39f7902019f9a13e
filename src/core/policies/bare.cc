// bare: the reference 'alone' (bare.h).

#include "src/core/policies/bare.h"

#include "src/core/policies/baseline.h"
#include "src/core/policies/lc_first.h"
#include "src/core/policies/quiet.h"

namespace gpushare::core {

void BarePolicy::MakePlan(const Snapshot& snapshot, Plan& plan) {
  if (PlanQuiesced(snapshot, plan)) return;
  LcRoute route;
  route.lane_class = LaneClass::kPlain;
  PublishRoutes(snapshot, route, plan);
  LaunchInOrderOfSubmission(snapshot, plan);
}

}  // namespace gpushare::core
