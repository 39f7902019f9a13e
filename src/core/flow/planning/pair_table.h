// Part of stage 3, predict: the pair table of the snapshot.
//
// A row is one LC app beside one BE kernel, on every split. An update computes the rows that may
// have changed: of a new app, of an app with another main kernel, of a new BE kernel, and of pairs
// that the model names (CostModel::TakePairChanges). The table's version changes only if a number
// did, so that plans keep what they derived from it. Invariant: the table is what computing every
// row would give. Nothing allocates: PlanBuffers reserves the rows. Threads: the one that runs
// Tick.

#ifndef GPUSHARE_SRC_CORE_FLOW_PLANNING_PAIR_TABLE_H_
#define GPUSHARE_SRC_CORE_FLOW_PLANNING_PAIR_TABLE_H_

#include "src/core/state/flow.h"

namespace gpushare::core {

void UpdatePairs(Flow& flow);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_PLANNING_PAIR_TABLE_H_
