// How the workloads of this folder turn a wanted length of a block task into a number of units
// (passes, rows, strips, tiles) of it.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_DNN_SIZES_H_
#define GPUSHARE_BENCHMARKS_KERNELS_DNN_SIZES_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "benchmarks/kernels/workload_base.h"

namespace gpushare::kernels {

constexpr double kDnnBytesMax = 2.0 * (1 << 30);  // read and written, of distinct block tasks

// Units that fill the options' block task at `workers_per_sm` and DRAM's full bandwidth; at least
// one.
inline uint32_t UnitsPerBlockTask(const WorkloadOptions& options, uint32_t workers_per_sm,
                                  double bytes_per_unit) {
  const double bytes =
      kReferenceDramBytesPerUs * options.block_task_us / (options.sms * workers_per_sm);
  return std::max(1U, static_cast<uint32_t>(std::lround(bytes / bytes_per_unit)));
}

// How many distinct block tasks of `bytes_per_block_task` bytes memory allows.
inline uint32_t DnnRing(const WorkloadOptions& options, uint32_t block_tasks,
                        double bytes_per_block_task) {
  return RingOf(options, block_tasks, static_cast<uint32_t>(kDnnBytesMax / bytes_per_block_task));
}

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_DNN_SIZES_H_
