// Generators of the thesis's eight benchmarks (table 4.2) as warp programs.
//
// Each is written from its kernel's source: the loops, the accesses per thread and how they
// coalesce, the barriers, and the arithmetic between them. No number was fitted to a result: the
// generators were committed before the first run of figures 4.2 and 4.3. An instance has 32 warps
// on the SM, 8 a scheduler, which is half of it; its outer loop stands for the blocks that would
// follow. Simplification: a fused multiply-add waits for two operands, its vector load and its sum.
// Threads: any.

#ifndef GPUSHARE_SRC_SIM_WARP_KERNELS_THESIS_KERNELS_H_
#define GPUSHARE_SRC_SIM_WARP_KERNELS_THESIS_KERNELS_H_

#include <cstdint>

#include "absl/types/span.h"
#include "src/sim/warp/kernels/generator.h"

namespace gpushare::sim::warp {

// In the order of table 4.2.
absl::Span<const KernelGenerator> ThesisKernels();

// Figures 4.2 and 4.3: K2 is launched this many cycles behind K1. A block scheduler places one
// instance's blocks before the next one's; no source states the distance.
inline constexpr int64_t kSecondLaunchCycle = 100;

}  // namespace gpushare::sim::warp

#endif  // GPUSHARE_SRC_SIM_WARP_KERNELS_THESIS_KERNELS_H_
