// What makes a twin wrong although each instruction is known: waits for other blocks, and mbarriers
// that outlive their block task.
//
// Where in the flow: flow graph -> hazards -> checks.

#ifndef GPUSHARE_SRC_PTX_ANALYSIS_HAZARDS_H_
#define GPUSHARE_SRC_PTX_ANALYSIS_HAZARDS_H_

#include "src/ptx/analysis/flow_graph.h"
#include "src/ptx/base/refusal.h"
#include "src/ptx/base/step_budget.h"
#include "src/ptx/text/module.h"

namespace gpushare::ptx {

// A loop that is left when global memory, read as other blocks write it, has some value. Block
// tasks of a worker run one after another, and an evicted launch starts no more of them, so such a
// wait may have no end.
Refusal CheckWaits(const Module& module, const FlowGraph& graph, StepBudget& budget);

// An mbarrier must be invalidated on every way from its initialisation to the exit: the next block
// task initialises it again, which is undefined for one that is still valid.
Refusal CheckMbarriers(const Module& module, const FlowGraph& graph, StepBudget& budget);

}  // namespace gpushare::ptx

#endif  // GPUSHARE_SRC_PTX_ANALYSIS_HAZARDS_H_
