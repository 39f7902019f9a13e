// What a profiler counted of a kernel: the ABI's struct to the core's, and back. Pure.

#ifndef GPUSHARE_BINDINGS_C_KERNEL_COUNTERS_H_
#define GPUSHARE_BINDINGS_C_KERNEL_COUNTERS_H_

#include <gpushare/gpushare.h>

#include "absl/status/status.h"
#include "src/core/seams/kernel.h"

namespace gpushare::abi {

// The given counters replace those of `kernel`. Its simulation record keeps its occupancy.
absl::Status ReadCounters(const gpushare_kernel_counters& given, core::KernelDesc& kernel);

gpushare_kernel_counters CountersToC(const core::KernelCounters& counters,
                                     double saturating_occupancy);

}  // namespace gpushare::abi

#endif  // GPUSHARE_BINDINGS_C_KERNEL_COUNTERS_H_
