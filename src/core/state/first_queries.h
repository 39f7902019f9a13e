// Queries that meet no other on the device: what they say of the delay by BE work (start_delay.h).
//
// Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_STATE_FIRST_QUERIES_H_
#define GPUSHARE_SRC_CORE_STATE_FIRST_QUERIES_H_

#include "src/core/state/flow.h"

namespace gpushare::core {

// Call before the query is in the list of active ones.
void MarkFirst(Flow& flow, QueryState& query);

// Call once it has ended and is not in the list any more.
void LearnFirst(Flow& flow, const QueryState& query);

// What evictions cost LC apps beyond their predictions, at most, in steps of kStartStepNs.
int64_t StartExcess(const Flow& flow);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_STATE_FIRST_QUERIES_H_
