// What a calibration is asked to measure: kernels with a sample task each, and fused kernels.
//
// The caller fills these. The arguments and the buffers behind them stay the caller's until
// Calibrate() returns. Threads: any.

#ifndef GPUSHARE_SRC_CALIBRATION_BASE_ITEM_H_
#define GPUSHARE_SRC_CALIBRATION_BASE_ITEM_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/core/seams/kernel.h"

namespace gpushare::models {

// A kernel and one sample task of it. The task runs many times, so its result must not depend on
// the number of runs.
struct CalibrationItem {
  core::KernelDesc kernel;
  std::vector<unsigned char> arguments;
  int64_t block_tasks = 0;  // kKernel: blocks of the original grid
  int32_t grid_x = 0, grid_y = 0, grid_z = 0;

  // Graphs and library calls have no block tasks, no workers and no slices.
  bool has_block_tasks() const { return kernel.kind() == core::TaskKind::kKernel; }
};

// A fused kernel of two items.
struct CalibrationFused {
  core::FusedKernelDesc kernel;  // Calibrate() fills in the identifiers of the parts
  size_t tensor_item = 0;        // indices into the items
  size_t cuda_item = 0;
  int32_t local_bytes = 0;  // local memory of a thread; above 0 it spills and is not measured

  bool spills() const { return local_bytes > 0; }
};

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_CALIBRATION_BASE_ITEM_H_
