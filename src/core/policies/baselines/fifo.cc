// fifo: everything in order of submission (fifo.h).

#include "src/core/policies/baselines/fifo.h"

#include "src/core/policies/baselines/baseline.h"
#include "src/core/policies/parts/lc_first.h"
#include "src/core/policies/parts/quiet.h"

namespace gpushare::core {

void FifoPolicy::MakePlan(const Snapshot& snapshot, Plan& plan) {
  if (PlanQuiesced(snapshot, plan)) return;
  LcRoute route;
  route.lane_class = LaneClass::kPlain;
  route.fast_path = false;
  PublishRoutes(snapshot, route, plan);
  LaunchInOrderOfSubmission(snapshot, plan);
}

}  // namespace gpushare::core
