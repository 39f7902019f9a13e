// The barriers of a kernel, and whether threads may end before the others' last one.
//
// Where in the flow: divergence -> barriers -> checks; the transforms use the plan.
//
// A thread of a twin does not end with its block task: it waits at the worker's barrier. In the
// original it would no longer count at the block's barriers, and other threads of its warp would
// synchronise without it. So these cases matter:
// - no early exits: the body's barriers stay as they are;
// - early exits beside full barriers: the body's barriers also count the threads that have ended;
// - early exits beside partial barriers or operations of a warp: refused.

#ifndef GPUSHARE_SRC_PTX_ANALYSIS_BARRIERS_H_
#define GPUSHARE_SRC_PTX_ANALYSIS_BARRIERS_H_

#include <cstdint>
#include <vector>

#include "src/ptx/analysis/divergence.h"
#include "src/ptx/analysis/flow_graph.h"
#include "src/ptx/base/refusal.h"
#include "src/ptx/base/step_budget.h"
#include "src/ptx/text/module.h"

namespace gpushare::ptx {

struct BarrierPlan {
  bool early_exits = false;
  uint32_t loop_barrier = 0;         // the number of the worker's own barrier
  uint32_t exits = 0;                // statements that end a thread
  std::vector<uint32_t> statements;  // the body's full barriers; filled with early exits alone

  bool operator==(const BarrierPlan&) const = default;
};

Refusal PlanBarriers(const Module& module, const FlowGraph& graph, const Divergence& divergence,
                     StepBudget& budget, BarrierPlan& plan);

}  // namespace gpushare::ptx

#endif  // GPUSHARE_SRC_PTX_ANALYSIS_BARRIERS_H_
