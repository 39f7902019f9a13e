// Both orders of a pair; see pipe_pair.h.

#include "src/models/markov/pipes/pipe_pair.h"

#include <algorithm>
#include <cstddef>

#include "src/models/markov/counters.h"

namespace gpushare::models::markov {

PairPrediction PredictPairWithPipes(const GpuShape& gpu, const std::array<Side, 2>& sides,
                                    const std::array<CalibratedKernel, 2>& kernels,
                                    const Arbitration& arbitration, ChainWorkspace& workspace) {
  PairPrediction prediction;
  if (!AreUsable(gpu, sides) || !kernels[0].known || !kernels[1].known) return prediction;
  std::array<PipeResident, 2> residents;
  for (size_t i = 0; i < 2; ++i) {
    const ResidentKernel blocks =
        MakeResident(gpu, sides[i].counters, sides[i].blocks_per_sm, Unit::kBlock);
    residents[i] = {kernels[i].kernel, blocks.units, blocks.warps_per_unit};
  }
  std::array<double, 2> shared = {};
  std::array<double, 2> alone = {};
  for (size_t i = 0; i < 2; ++i) {
    const std::array<PipeResident, 2> oldest_first = {residents[1 - i], residents[i]};
    const ChainIpc ipc =
        SolvePipeChain(gpu.schedulers_per_sm, oldest_first, arbitration, workspace);
    shared[i] = ipc.ipc[1];
    alone[i] = kernels[i].ipc_alone * gpu.schedulers_per_sm;
    if (!ipc.known || !(shared[i] > 0)) return prediction;
    prediction.sides[i].ipc = shared[i];
    prediction.sides[i].ipc_alone = alone[i];
  }
  prediction.known = true;
  prediction.profit = CoScheduleProfit(shared, alone);
  SetFinishTimes(gpu, sides, prediction);
  return prediction;
}

}  // namespace gpushare::models::markov
