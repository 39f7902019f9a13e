// bare: the reference 'alone' (bare.h).

#include "src/core/policies/baselines/bare.h"

#include "src/core/policies/baselines/baseline.h"
#include "src/core/policies/parts/lc_first.h"
#include "src/core/policies/parts/quiet.h"

namespace gpushare::core {

void BarePolicy::MakePlan(const Snapshot& snapshot, Plan& plan) {
  if (PlanQuiesced(snapshot, plan)) return;
  LcRoute route;
  route.lane_class = LaneClass::kPlain;
  PublishRoutes(snapshot, route, plan);
  LaunchInOrderOfSubmission(snapshot, plan);
}

}  // namespace gpushare::core
