// Whether an LC grid waits, behind an eviction, until its SMs are empty.
//
// An SM changes how it divides its memory between L1 and shared memory only when it is empty, and
// most workers take the largest shared memory. A grid that starts before the last of them has left
// keeps what they left of L1 until it ends. To wait costs what is left of the eviction. So it pays
// where queries are long beside an eviction, and is safe where a query finds nothing but such
// workers on its SMs. A query counts as one kernel: of many short ones only the first waits.
//
// The last step of a plan: what it launches counts with what runs. Threads: the planner's. Pure;
// nothing allocates.

#ifndef GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_CARRY_OUT_EMPTY_SMS_H_
#define GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_CARRY_OUT_EMPTY_SMS_H_

#include "src/core/seams/snapshot.h"

namespace gpushare::core {

void LetGridsWait(const Snapshot& snapshot, Plan& plan);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_CARRY_OUT_EMPTY_SMS_H_
