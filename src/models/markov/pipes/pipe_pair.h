// Two kernels on every SM by the chain with pipes: the IPC of each as the one that arrived last.
//
//   const CalibratedKernel a = Calibrate(MakePreRun(...), workspace);  // once a kernel
//   PairPrediction pair = PredictPairWithPipes(gpu, {side_a, side_b}, {a, b}, {}, workspace);
//
// Allocates nothing. Threads: one a workspace.

#ifndef GPUSHARE_SRC_MODELS_MARKOV_PIPES_PIPE_PAIR_H_
#define GPUSHARE_SRC_MODELS_MARKOV_PIPES_PIPE_PAIR_H_

#include <array>

#include "src/models/markov/co_schedule.h"
#include "src/models/markov/pipes/pipe_chain.h"
#include "src/models/markov/pipes/pre_run.h"

namespace gpushare::models::markov {

// Units are blocks. Two chains, one for each kernel as the younger one: which one is younger later
// is not known. The sum of both IPCs may thus pass what one chain can give. `kernels` stand in the
// order of `sides`.
PairPrediction PredictPairWithPipes(const GpuShape& gpu, const std::array<Side, 2>& sides,
                                    const std::array<CalibratedKernel, 2>& kernels,
                                    const Arbitration& arbitration, ChainWorkspace& workspace);

}  // namespace gpushare::models::markov

#endif  // GPUSHARE_SRC_MODELS_MARKOV_PIPES_PIPE_PAIR_H_
