// How much work makes a block task of the wanted length, where a bandwidth bounds the kernel.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_BLOCK_TASK_SHARE_H_
#define GPUSHARE_BENCHMARKS_KERNELS_BLOCK_TASK_SHARE_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "benchmarks/kernels/workload_base.h"

namespace gpushare::kernels {

// Bytes that one worker moves in the options' block_task_us, with `workers_per_sm` of them in an
// SM.
inline double BlockTaskBytes(const WorkloadOptions& options, double bytes_per_us,
                             uint32_t workers_per_sm) {
  return bytes_per_us * options.block_task_us / (options.sms * static_cast<double>(workers_per_sm));
}

// The amount as a whole number of units, one at least.
inline uint32_t WholeUnits(double amount, double unit) {
  return std::max(1U, static_cast<uint32_t>(std::lround(amount / unit)));
}

// The largest ring whose slots together take at most `bytes_max`.
inline uint32_t RingWithin(const WorkloadOptions& options, uint32_t block_tasks, double bytes_max,
                           double slot_bytes) {
  return RingOf(options, block_tasks, static_cast<uint32_t>(bytes_max / slot_bytes));
}

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_BLOCK_TASK_SHARE_H_
