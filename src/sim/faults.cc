// Decides when a trigger fires. See faults.h.

#include "src/sim/faults.h"

namespace gpushare::sim {

bool FaultInjector::Fires(const FaultTrigger& trigger, int64_t& calls) {
  ++calls;
  if (trigger.nth != 0 && calls == trigger.nth) return true;
  return trigger.probability > 0 && random_.Uniform() < trigger.probability;
}

}  // namespace gpushare::sim
