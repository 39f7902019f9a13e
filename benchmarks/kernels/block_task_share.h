// How much work makes a block task of the wanted length, where a bandwidth is what bounds it.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_BLOCK_TASK_SHARE_H_
#define GPUSHARE_BENCHMARKS_KERNELS_BLOCK_TASK_SHARE_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "benchmarks/kernels/workload_base.h"

namespace gpushare::kernels {

// Bytes that one of so many workers an SM moves in the options' block_task_us.
inline double BlockTaskBytes(const WorkloadOptions& options, double bytes_per_us,
                             uint32_t workers_per_sm) {
  return bytes_per_us * options.block_task_us / (options.sms * static_cast<double>(workers_per_sm));
}

// Whole units of work, one at least.
inline uint32_t WholeUnits(double amount, double unit) {
  return std::max(1U, static_cast<uint32_t>(std::lround(amount / unit)));
}

// The largest ring whose slots of so many bytes take this memory.
inline uint32_t RingWithin(const WorkloadOptions& options, uint32_t block_tasks, double bytes_max,
                           double slot_bytes) {
  return RingOf(options, block_tasks, static_cast<uint32_t>(bytes_max / slot_bytes));
}

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_BLOCK_TASK_SHARE_H_
