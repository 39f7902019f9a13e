// Part of stage 3, predict: the tables of fused kernels and of co-schedules in the snapshot.
//
// Invariants: a kernel keeps its row. A new kernel adds its row, and only its pairs are predicted.
// When the model's version of the fused table changes, that table is made anew. Of co-schedules the
// pairs that the model names are. A Tick predicts one new row and kMaxPairRefills changed pairs at
// most, so that the last ones may come some plans later. What slices did is kept until another
// kernel takes the row. Nothing allocates: PlanBuffers reserves both. Threads: the one that runs
// Tick.

#ifndef GPUSHARE_SRC_CORE_FLOW_PLANNING_OVERLAP_TABLES_H_
#define GPUSHARE_SRC_CORE_FLOW_PLANNING_OVERLAP_TABLES_H_

#include "src/core/state/flow.h"

namespace gpushare::core {

void UpdateOverlapTables(Flow& flow);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_PLANNING_OVERLAP_TABLES_H_
