// How long segments of BE graphs may be: as long as the waits allow that LC apps tolerate.
//
// In segments of the length L, a query that arrives meets one that is L long at most, and another
// one behind it. It waits for the rest of the first, uniform on (0, L), and for the second: the
// delay of an eviction of L and of a launch of L that nothing evicts (arrangement/shift.h). Each
// idle period may end with it, or, while no LC app has a load, credit covers both, as it does for
// other work that nothing evicts. Without an LC app the whole graph is one segment.
//
// Beside an active query, beside other BE work, and where an LC app states nothing, graphs run in
// their own segments. So an LC app meets no longer wait than the one that was judged.
// Pure; the planner's thread.

#ifndef GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_CARRY_OUT_SEGMENT_LENGTH_H_
#define GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_CARRY_OUT_SEGMENT_LENGTH_H_

#include "src/core/policies/adaptive/arrangement/shift.h"
#include "src/core/policies/parts/lc_activity.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

// Writes Plan::longest_segment_ns, and the reason of launches that this length starts on credit.
// Call when the plan has its launches. `shifts` follow the snapshot.
void PlanSegmentLength(const Snapshot& snapshot, const LcActivity& lc, Shifts& shifts, Plan& plan);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_CARRY_OUT_SEGMENT_LENGTH_H_
