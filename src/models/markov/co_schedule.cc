#include "src/models/markov/co_schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace gpushare::models::markov {
namespace {

double IpcAlone(const GpuShape& gpu, const KernelCounters& counters, Unit unit,
                ChainWorkspace& workspace) {
  const ResidentKernel resident = MakeResident(gpu, counters, BlocksAlone(gpu, counters), unit);
  return SolveChain(MakeVirtualSm(gpu), std::span(&resident, 1), kPlannedStatesMax, workspace)
      .ipc[0];
}

ChainIpc IpcTogether(const GpuShape& gpu, const std::array<ResidentKernel, 2>& residents,
                     ChainWorkspace& workspace) {
  return SolveChain(MakeVirtualSm(gpu), residents, kPlannedStatesMax, workspace);
}

}  // namespace

void SetFinishTimes(const GpuShape& gpu, const std::array<Side, 2>& sides,
                    PairPrediction& prediction) {
  const double ns_per_cycle = 1e9 / gpu.clock_hz;
  std::array<double, 2> instructions = {};
  double first_cycles = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < 2; ++i) {
    instructions[i] = sides[i].blocks * sides[i].counters.instructions_per_block / gpu.sms;
    first_cycles = std::min(first_cycles, instructions[i] / prediction.sides[i].ipc);
  }
  for (size_t i = 0; i < 2; ++i) {
    SidePrediction& side = prediction.sides[i];
    const double left = std::max(0.0, instructions[i] - first_cycles * side.ipc);
    side.finish_ns = (first_cycles + left / side.ipc_alone) * ns_per_cycle;
    side.finish_alone_ns = instructions[i] / side.ipc_alone * ns_per_cycle;
    // The first to finish has nothing left but rounding.
    if (instructions[i] <= first_cycles * side.ipc) side.finish_ns = first_cycles * ns_per_cycle;
  }
}

bool AreUsable(const GpuShape& gpu, const std::array<Side, 2>& sides) {
  for (const Side& side : sides) {
    if (!IsUsable(side.counters) || side.blocks_per_sm < 1) return false;
    if (!std::isfinite(side.blocks) || side.blocks < 0) return false;
  }
  return gpu.sms > 0 && gpu.schedulers_per_sm > 0 && std::isfinite(gpu.clock_hz) &&
         gpu.clock_hz > 0 &&
         FitsTogether(gpu, sides[0].counters, sides[0].blocks_per_sm, sides[1].counters,
                      sides[1].blocks_per_sm);
}

double CoScheduleProfit(std::span<const double> concurrent_ipc, std::span<const double> ipc_alone) {
  double speeds = 0;
  for (size_t i = 0; i < concurrent_ipc.size(); ++i) {
    if (ipc_alone[i] > 0) speeds += concurrent_ipc[i] / ipc_alone[i];
  }
  return speeds > 0 ? 1 - 1 / speeds : -std::numeric_limits<double>::infinity();
}

PairPrediction PredictPair(const GpuShape& gpu, const std::array<Side, 2>& sides, Unit unit,
                           ChainWorkspace& workspace) {
  PairPrediction prediction;
  if (!AreUsable(gpu, sides)) return prediction;
  std::array<ResidentKernel, 2> residents;
  std::array<double, 2> alone = {};
  for (size_t i = 0; i < 2; ++i) {
    residents[i] = MakeResident(gpu, sides[i].counters, sides[i].blocks_per_sm, unit);
    alone[i] = IpcAlone(gpu, sides[i].counters, unit, workspace);
  }
  const ChainIpc together = IpcTogether(gpu, residents, workspace);
  const std::array<double, 2> shared = {together.ipc[0], together.ipc[1]};
  if (!together.known || !(std::min({shared[0], shared[1], alone[0], alone[1]}) > 0)) {
    return prediction;
  }
  prediction.known = true;
  for (size_t i = 0; i < 2; ++i) {
    prediction.sides[i].ipc = shared[i];
    prediction.sides[i].ipc_alone = alone[i];
  }
  prediction.profit = CoScheduleProfit(shared, alone);
  SetFinishTimes(gpu, sides, prediction);
  return prediction;
}

}  // namespace gpushare::models::markov
