// A kernel whose amount of work is chosen: a warp trace with the iterations of its outer loop left
// open.
//
// Threads: any.

#ifndef GPUSHARE_SRC_SIM_WARP_KERNELS_GENERATOR_H_
#define GPUSHARE_SRC_SIM_WARP_KERNELS_GENERATOR_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "src/sim/warp/program.h"

namespace gpushare::sim::warp {

struct KernelGenerator {
  absl::string_view name;
  bool memory_intensive = false;  // the thesis's type
  int64_t iterations = 1;         // of the outer loop, in the figures
  absl::string_view trace;        // $0: the iterations
};

// The kernel's program with so many iterations. Errors: as ParseTrace.
absl::StatusOr<Program> Generate(const KernelGenerator& generator, int64_t iterations);

}  // namespace gpushare::sim::warp

#endif  // GPUSHARE_SRC_SIM_WARP_KERNELS_GENERATOR_H_
