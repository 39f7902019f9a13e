// Which BE kernels still get a run by themselves, so that their durations are learned.
//
// Where there are several BE apps, the next task is often on the device before the last one ends,
// or shares SMs with it, and what each takes alone is never seen. A wrong duration would then stay,
// and with it wrong shares: weights are kept in predicted device time. So the first tasks of each
// kernel run with no other BE work beside or behind them, if they are short. LC work may still come
// between, so that a run is asked for several times.
//
// Where in the flow: WantsSoloRun in plan, NoteSoloAsked in launch, NoteSoloMeasured in complete.
// Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_EVIDENCE_SOLO_RUNS_H_
#define GPUSHARE_SRC_CORE_EVIDENCE_SOLO_RUNS_H_

#include <array>
#include <cstdint>

#include "src/core/base/limits.h"
#include "src/core/base/types.h"
#include "src/core/evidence/tuning.h"
#include "src/core/seams/kernel.h"

namespace gpushare::core {

struct SoloRuns {
  struct Counts {
    uint8_t asked = 0;
    uint8_t measured = 0;
  };
  std::array<Counts, kMaxKernels + 1> by_kernel;  // by KernelId
};

inline bool WantsSoloRun(const SoloRuns& runs, KernelId kernel) {
  const SoloRuns::Counts& counts = runs.by_kernel[kernel.value];
  return counts.measured < kSoloRunsMeasured && counts.asked < kSoloRunsAsked;
}

inline void NoteSoloAsked(SoloRuns& runs, KernelId kernel) { ++runs.by_kernel[kernel.value].asked; }

// Whether it is known how long the kernel takes alone: from a simulation record, from a hint, or
// because the model saw a run by itself.
inline bool HasKnownDuration(const SoloRuns& runs, const KernelDesc& kernel) {
  return kernel.simulation.present || kernel.solo_hint_ns > 0 ||
         runs.by_kernel[kernel.id.value].measured > 0;
}

// One task of the kernel, in one launch, with nothing beside it.
inline void NoteSoloMeasured(SoloRuns& runs, KernelId kernel) {
  SoloRuns::Counts& counts = runs.by_kernel[kernel.value];
  if (counts.measured < kSoloRunsMeasured) ++counts.measured;
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_EVIDENCE_SOLO_RUNS_H_
