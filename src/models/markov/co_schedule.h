// Two kernels on every SM of a device: IPC of each, when each finishes, and what sharing gains.
//
// A planner calls PredictPair with counters and gets both finish times.
// Allocates nothing. Threads: one a workspace.

#ifndef GPUSHARE_SRC_MODELS_MARKOV_CO_SCHEDULE_H_
#define GPUSHARE_SRC_MODELS_MARKOV_CO_SCHEDULE_H_

#include <array>
#include <cstdint>
#include <span>

#include "src/models/markov/chain.h"
#include "src/models/markov/counters.h"
#include "src/models/markov/virtual_sm.h"

namespace gpushare::models::markov {

// One kernel of a co-schedule.
struct Side {
  KernelCounters counters = {};
  int32_t blocks_per_sm = 0;  // resident beside the other kernel
  double blocks = 0;          // of the whole launch, over all SMs
};

struct SidePrediction {
  double ipc = 0;              // of an SM, beside the other kernel (eq. 5, 6)
  double ipc_alone = 0;        // of an SM that holds as many of its blocks as fit (eq. 4)
  double finish_ns = 0;        // both start at 0; who is left runs on alone
  double finish_alone_ns = 0;  // without the other kernel
};

struct PairPrediction {
  bool known = false;  // false: an input is out of range, or the blocks do not fit on an SM
  std::array<SidePrediction, 2> sides = {};
  double profit = 0;  // CP (eq. 1); above 0, sharing beats one after the other
};

// Whether all numbers are in their ranges and the blocks of both fit on one SM.
bool AreUsable(const GpuShape& gpu, const std::array<Side, 2>& sides);

// From both IPCs of `prediction`, the finish times: both start at 0 and run at their shared speed
// until the first is done; the other then runs as if alone.
void SetFinishTimes(const GpuShape& gpu, const std::array<Side, 2>& sides,
                    PairPrediction& prediction);

// CP = 1 - 1 / sum(cIPC_i / IPC_i) (eq. 1). Both spans have one entry a kernel; an IPC of 0 alone
// has no ratio and counts as 0. Without any speed the profit is minus infinity.
double CoScheduleProfit(std::span<const double> concurrent_ipc, std::span<const double> ipc_alone);

// The states of a chain are bounded by kPlannedStatesMax.
PairPrediction PredictPair(const GpuShape& gpu, const std::array<Side, 2>& sides, Unit unit,
                           ChainWorkspace& workspace);

}  // namespace gpushare::models::markov

#endif  // GPUSHARE_SRC_MODELS_MARKOV_CO_SCHEDULE_H_
