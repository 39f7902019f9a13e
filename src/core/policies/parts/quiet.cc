// The plan while the application asks for quiet (quiet.h).

#include "src/core/policies/parts/quiet.h"

#include "src/core/policies/parts/eviction.h"
#include "src/core/policies/parts/lc_first.h"

namespace gpushare::core {

bool PlanQuiesced(const Snapshot& snapshot, Plan& plan) {
  if (!snapshot.quiesced) return false;
  LcRoute closed;
  closed.fast_path = false;
  PublishRoutes(snapshot, closed, plan);
  for (const HeadView& head : snapshot.heads) {
    plan.holds.TryAdd({.task = head.task, .reason = Reason::kHoldQuiesced});
  }
  EvictBeParts(snapshot, ~uint64_t{0}, Reason::kHoldQuiesced, plan);
  return true;
}

}  // namespace gpushare::core
