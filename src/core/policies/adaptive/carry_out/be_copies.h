// BE copies under adaptive, in pieces within the blocking budgets and headrooms.
//
// Priorities do not order copies (docs/hardware.md: a pinned copy behind one of 256 MB waits 4.8
// ms), so a BE copy is launched in pieces that an LC copy can wait for, at most N_tr a direction,
// also while no query is active. The two directions do not disturb each other (Baymax 6.1).
//
// Pinned copies to the device slow a decoder by 2 %, both directions by 4 %; its p99 rises by 7 %
// at a load of 0.5 (H200). Directions in which copies would break a bound or a target are used only
// while no query is active, one piece at a time, which slows the next query by half of a blocking
// budget at most. Now and then a copy runs beside a query on the tail accounts.
//
// A copy of pageable memory keeps the thread that launches it inside the driver. Beside copies of
// 16 MB no query of an LC app came to an end for seconds (H100), probably because other launches
// wait for the driver meanwhile. Beside LC apps such a copy runs in short pieces, one at a time.

#ifndef GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_CARRY_OUT_BE_COPIES_H_
#define GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_CARRY_OUT_BE_COPIES_H_

#include "src/core/policies/parts/fair_share.h"
#include "src/core/policies/parts/lc_activity.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

void PlanBeCopies(const Snapshot& snapshot, const LcActivity& lc, FairShare& shares, Plan& plan);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_CARRY_OUT_BE_COPIES_H_
