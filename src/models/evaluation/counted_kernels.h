// Kernels as the rows of a samples file describe them: what a profiler counted, and how their
// workers use an SM.
//
// Pure functions. Threads: any.

#ifndef GPUSHARE_SRC_MODELS_EVALUATION_COUNTED_KERNELS_H_
#define GPUSHARE_SRC_MODELS_EVALUATION_COUNTED_KERNELS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "src/core/seams/kernel.h"
#include "src/models/samples/samples_file.h"

namespace gpushare::models {

struct CountedKernel {
  core::KernelCounters counters;
  double cycles_per_ns = 0;  // clock while it was counted
  double dram_bytes_per_ns = 0;
  int32_t threads_per_block = 0;
  int32_t workers_per_sm_max = 0;
  double saturating_occupancy = 1;  // from the rows of fewer workers
};

// Kernels of which a needed counter is missing, or no row tells how many workers an SM holds, are
// left out.
std::map<std::string, CountedKernel> CountedKernels(const Samples& samples);

// A kernel timed while workers of another one share every SM.
struct SharedSm {
  const SampleRow* row = nullptr;
  const CountedKernel* kernel = nullptr;
  const CountedKernel* neighbour = nullptr;
  double speed = 0;       // relative to alone with all workers
  bool held_out = false;  // both orders and all numbers of workers of two kernels, or none
};

// Rows of `samples` whose kernels are both in `kernels`; the result points into both.
std::vector<SharedSm> SharedSms(const Samples& samples,
                                const std::map<std::string, CountedKernel>& kernels);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_EVALUATION_COUNTED_KERNELS_H_
