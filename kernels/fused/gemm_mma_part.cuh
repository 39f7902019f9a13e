// The mma.sync GEMM as a part of fused kernels.

#ifndef GPUSHARE_KERNELS_FUSED_GEMM_MMA_PART_CUH_
#define GPUSHARE_KERNELS_FUSED_GEMM_MMA_PART_CUH_

#include <gpushare/device/fused.cuh>

#include "kernels/tensor/gemm_mma.cuh"

namespace gpushare::device {

// With its 64 sums a thread and the fragments, it spills 190 bytes at 80 registers and 50 at 96.
template <>
struct FusedTraits<kernels::gpushare_gemm_mma> {
  static constexpr bool kOnlySm90a = false;
  static constexpr int kRegistersMin = 104;
  static constexpr int kLaunchRegistersMin = 0;
};

}  // namespace gpushare::device

#endif  // GPUSHARE_KERNELS_FUSED_GEMM_MMA_PART_CUH_
