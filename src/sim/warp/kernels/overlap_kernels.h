// The kernels of the overlap table of docs/hardware.md as warp programs: one block of 256 threads
// an SM, of an H200.
//
// Threads: any.

#ifndef GPUSHARE_SRC_SIM_WARP_KERNELS_OVERLAP_KERNELS_H_
#define GPUSHARE_SRC_SIM_WARP_KERNELS_OVERLAP_KERNELS_H_

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "src/sim/warp/kernels/generator.h"

namespace gpushare::sim::warp {

// ffma, streaming, sincos, wgmma.
absl::Span<const KernelGenerator> OverlapKernels();

// The one of that name, or null.
const KernelGenerator* FindOverlapKernel(absl::string_view name);

}  // namespace gpushare::sim::warp

#endif  // GPUSHARE_SRC_SIM_WARP_KERNELS_OVERLAP_KERNELS_H_
