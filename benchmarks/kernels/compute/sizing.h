// How much work a block task of a wanted length has, for the kernels that instruction pipes bound.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_SIZING_H_
#define GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_SIZING_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "benchmarks/kernels/workload_base.h"

namespace gpushare::kernels {

constexpr double kSpecialPerClock = 16;  // lanes' results a clock and SM
constexpr double kFfmaPerClock = 128;
constexpr double kIntegerPerClock = 64;
constexpr double kRoundingUnit = 6e-8;  // 2^-24: the largest relative error of a float32 rounding

// Instructions of one pipe that each of 256 threads executes in `block_task_us` on the reference
// GPU, with all workers of an SM at work.
inline double PerThread(double block_task_us, double per_clock, uint32_t workers_per_sm) {
  return block_task_us * kReferenceClockMhz * per_clock / (workers_per_sm * kThreadsPerBlock);
}

// A whole number of `step`, at least one.
inline uint32_t WholeSteps(double count, uint32_t step) {
  return std::max(1U, static_cast<uint32_t>(std::lround(count / step))) * step;
}

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_SIZING_H_
