// fifo: everything in order of submission (fifo.h).

#include "src/core/policies/fifo.h"

#include "src/core/policies/baseline.h"
#include "src/core/policies/lc_first.h"
#include "src/core/policies/quiet.h"

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
