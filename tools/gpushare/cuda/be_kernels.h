// The names that a scenario may give to BE kernels on a GPU, and the catalogue's kernel behind
// each.
//
// Threads: any; the tables are constant.

#ifndef GPUSHARE_TOOLS_GPUSHARE_CUDA_BE_KERNELS_H_
#define GPUSHARE_TOOLS_GPUSHARE_CUDA_BE_KERNELS_H_

#include <cstdint>
#include <string>

#include "benchmarks/kernels/catalogue.h"

namespace gpushare::tool {

// Distance of the yield points inside a block task of a kernel that has them.
inline constexpr int64_t kYieldIntervalNs = static_cast<int64_t>(1000 * kernels::kSincosStepUs);

struct BeKernel {
  const char* name;      // in a scenario
  const char* kernel;    // in the catalogue
  double block_task_us;  // on an H200 with 8 workers an SM
  bool yields = false;   // has yield points inside a block task, kYieldIntervalNs apart
};

// Looks among the named variants, then among the catalogue's own names. Null for an unknown name.
const BeKernel* FindBeKernel(const std::string& name);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_CUDA_BE_KERNELS_H_
