// How a value may differ among the threads of a block, and which branches separate them.
//
// Where in the flow: flow graph -> divergence -> checks.
// A register that is written where threads may be separated counts as differing like they do, so
// the answer errs on the safe side. Blocks are flat (x only) where the text requires it; where it
// states no shape, they are taken as flat if the kernel never reads another dimension.
// Threads: any; pure functions.

#ifndef GPUSHARE_SRC_PTX_ANALYSIS_DIVERGENCE_H_
#define GPUSHARE_SRC_PTX_ANALYSIS_DIVERGENCE_H_

#include <cstdint>
#include <vector>

#include "src/ptx/analysis/flow_graph.h"
#include "src/ptx/base/step_budget.h"
#include "src/ptx/text/module.h"

namespace gpushare::ptx {

enum class Spread : uint8_t {
  kBlock,   // the same in all threads of a block
  kWarp,    // the same in all threads of a warp
  kThread,  // the thread's index in a flat block, unchanged
  kVaries,
};

struct Divergence {
  std::vector<Spread> values;    // by symbol
  std::vector<Spread> branches;  // by block: of what its branch depends on
  // By block: where threads that its branch separates are together again (Postdominators).
  std::vector<uint32_t> joins;
};

// The shape of blocks that the text allows, as far as warps depend on it.
enum class BlockShape : uint8_t {
  kFlat,     // stated: one dimension
  kAssumed,  // not stated, and the kernel reads no other dimension than x
  kDeep,     // may have several dimensions
};
BlockShape ShapeOf(const Module& module);

// `flat`: blocks have one dimension.
Divergence FindDivergence(const Module& module, const FlowGraph& graph, bool flat,
                          StepBudget& budget);

}  // namespace gpushare::ptx

#endif  // GPUSHARE_SRC_PTX_ANALYSIS_DIVERGENCE_H_
