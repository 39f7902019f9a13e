// The control-flow graph of an entry's body.
//
// Where in the flow: parser -> flow graph -> divergence -> checks.
// Invariants: block 0 is the entry. A branch, an exit or a trap is the last instruction of its
// block, guarded or not. Node `exit()` stands for the end of the thread; a trap has no successor.
// Threads: any; pure functions.

#ifndef GPUSHARE_SRC_PTX_ANALYSIS_FLOW_GRAPH_H_
#define GPUSHARE_SRC_PTX_ANALYSIS_FLOW_GRAPH_H_

#include <cstdint>
#include <vector>

#include "src/ptx/base/refusal.h"
#include "src/ptx/base/step_budget.h"
#include "src/ptx/text/module.h"

namespace gpushare::ptx {

struct Block {
  uint32_t first = 0;  // statements [first, end)
  uint32_t end = 0;
  std::vector<uint32_t> successors;
  std::vector<uint32_t> predecessors;
  uint32_t branch = UINT32_MAX;  // the statement that ends the block with a choice, if one does
};

struct FlowGraph {
  std::vector<Block> blocks;
  std::vector<uint32_t> exit_predecessors;
  std::vector<uint32_t> block_of;  // by statement

  uint32_t exit() const { return static_cast<uint32_t>(blocks.size()); }
};

Refusal BuildFlowGraph(const Module& module, StepBudget& budget, FlowGraph& graph);

// The immediate postdominator of each block: a block, exit(), or exit() where none is known
// (endless loops, traps, or an exhausted budget). exit() is always right for what uses it.
std::vector<uint32_t> Postdominators(const FlowGraph& graph, StepBudget& budget);

// The strongly connected component of each block, numbered from 0.
std::vector<uint32_t> Components(const FlowGraph& graph);

}  // namespace gpushare::ptx

#endif  // GPUSHARE_SRC_PTX_ANALYSIS_FLOW_GRAPH_H_
