// Whether tasks of a kernel may run as slices: ranges of block tasks, each launched by itself.
//
// Where in the flow: planning asks it for a task's forms, the C ABI for a kernel's guarantees.

#ifndef GPUSHARE_SRC_CORE_SEAMS_SLICEABLE_H_
#define GPUSHARE_SRC_CORE_SEAMS_SLICEABLE_H_

#include "src/core/seams/kernel.h"

namespace gpushare::core {

// A CUDA kernel runs slices by its slice function or its worker function. On the simulated device
// there are no functions, and every kernel with block tasks runs slices, unless its PTX was
// refused. A simulated chain of nodes has no block tasks.
inline bool IsSliceable(const KernelDesc& kernel) {
  if (kernel.kind() != TaskKind::kKernel || !kernel.simulation.nodes.empty()) return false;
  if (kernel.ptx() != nullptr) return kernel.ptx()->RunsSlices();
  const FunctionCode* const functions = kernel.functions();
  const bool native = functions != nullptr && functions->original != nullptr;
  return !native || functions->slice != nullptr || functions->worker != nullptr;
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_SEAMS_SLICEABLE_H_
