// Changing the arrangement without making LC wait for BE parts of the old one.
//
// BE parts on places that the new arrangement does not use are evicted. While one of them could
// block the new LC route for longer than the budget, the old routes stay in force and no BE work is
// launched.

#ifndef GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_CARRY_OUT_CHANGE_H_
#define GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_CARRY_OUT_CHANGE_H_

#include <cstdint>

#include "src/core/base/types.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

PlaceIndex LcPlaceOf(const Snapshot& snapshot, int32_t split);

// Places that the arrangement uses for BE, as a mask.
uint64_t BePlacesOf(const Snapshot& snapshot, int32_t split);

// The longest that BE parts of arrangement `from` would block the LC route of arrangement `to`; 0
// when none overlaps it that did not overlap the old route as well.
int64_t BlockingOfChange(const Snapshot& snapshot, int32_t from, int32_t to);

// Evicts parts of confinable BE tasks on places that neither `split` uses nor `except` names,
// and parts of confined work outside its home (be_quota.h).
void EvictForChange(const Snapshot& snapshot, int32_t split, uint64_t except, Plan& plan);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_CARRY_OUT_CHANGE_H_
