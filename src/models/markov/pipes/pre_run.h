// A kernel's stalls and pipe costs from its counters: the chain's inputs from a pre-run.
//
// Kernelet 4.4 allows inputs from a pre-run; the equations are ours (docs/models.md, "Chain with
// pipes"). With these inputs the chain of the kernel alone has the IPC that was measured. Allocates
// nothing. Threads: one a workspace.

#ifndef GPUSHARE_SRC_MODELS_MARKOV_PIPES_PRE_RUN_H_
#define GPUSHARE_SRC_MODELS_MARKOV_PIPES_PRE_RUN_H_

#include <cstdint>

#include "src/core/seams/kernel.h"
#include "src/models/markov/chain.h"
#include "src/models/markov/pipes/pipe_chain.h"

namespace gpushare::models::markov {

// What was measured of a kernel alone, with as many workers as an SM holds.
struct PreRun {
  double issue = 0;    // share of the schedulers' slots that it used
  PipeCosts use = {};  // share of each pipe's peak
  double memory_share = 0;
  // Below full occupancy the speed is min(1, occupancy / saturating_occupancy).
  double saturating_occupancy = 1;
  int32_t blocks = 0;         // workers an SM held
  double warps_per_unit = 1;  // warps of a block, on one scheduler
};

// `warps_per_block` over all schedulers.
PreRun MakePreRun(const core::KernelCounters& counters, double saturating_occupancy, int32_t blocks,
                  double warps_per_block, int32_t schedulers);

struct CalibratedKernel {
  bool known = false;  // false: a number is out of range
  PipeKernel kernel = {};
  double ipc_alone = 0;  // of one scheduler, by the chain
};

CalibratedKernel Calibrate(const PreRun& pre_run, ChainWorkspace& workspace);

}  // namespace gpushare::models::markov

#endif  // GPUSHARE_SRC_MODELS_MARKOV_PIPES_PRE_RUN_H_
