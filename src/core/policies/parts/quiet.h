// The plan while the application asks for quiet: nothing is launched, evictable BE work leaves, and
// the fast path is closed. The same for every policy.

#ifndef GPUSHARE_SRC_CORE_POLICIES_PARTS_QUIET_H_
#define GPUSHARE_SRC_CORE_POLICIES_PARTS_QUIET_H_

#include "src/core/seams/snapshot.h"

namespace gpushare::core {

// Returns whether the snapshot asks for quiet; the plan is then complete.
bool PlanQuiesced(const Snapshot& snapshot, Plan& plan);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_PARTS_QUIET_H_
