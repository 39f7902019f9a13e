// How long segments of BE graphs may be: as long as the tightest budget of an LC app allows.
//
// In segments of the length L, a query that arrives meets one that is L long at most, and another
// one behind it. So it waits for at most 2 L, which must fit every LC app's blocking budget: the
// delay that each busy period may begin with. An app that has had no query yet limits nothing.
//
// Without an LC app a short graph is one segment. A long one runs in segments of the longest group,
// because the first query of an app that comes waits for what is on the device.
//
// While an LC app has a load, and beside other BE work, graphs run in their own segments: between
// queries a graph moves from place to place, and a long segment keeps it where it is slow. Not so
// in the silences of an engine (evidence/steps.h), which last: there a wait beyond the budget is
// allowed too where so many first steps may be late (arrangement/shift.h). Segments are short where
// an LC app states nothing. So an LC app meets no longer wait than the one that was judged, and one
// with a tight bound meets what it met before. Pure; the planner's thread.

#ifndef GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_CARRY_OUT_SEGMENT_LENGTH_H_
#define GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_CARRY_OUT_SEGMENT_LENGTH_H_

#include "src/core/policies/adaptive/arrangement/shift.h"
#include "src/core/policies/parts/lc_activity.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

// Writes Plan::longest_segment_ns. Call when the plan has its launches.
// `shifts` follow the snapshot.
void PlanSegmentLength(const Snapshot& snapshot, const LcActivity& lc, Shifts& shifts, Plan& plan);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_CARRY_OUT_SEGMENT_LENGTH_H_
