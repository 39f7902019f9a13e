// The wgmma GEMMs as parts of fused kernels.

#ifndef GPUSHARE_KERNELS_FUSED_GEMM_WGMMA_PART_CUH_
#define GPUSHARE_KERNELS_FUSED_GEMM_WGMMA_PART_CUH_

#include <gpushare/device/fused.cuh>

#include "kernels/tensor/gemm_wgmma.cuh"

namespace gpushare::device {

// 128 sums a thread, which ptxas wants within the registers at launch: at most 416 threads could
// have so many, and these are 384. So every fused form of it is dropped; the roomy one is the form
// that shares an SM (docs/decisions/0009-fused-forms.md).
template <>
struct FusedTraits<kernels::gpushare_gemm_wgmma> {
  static constexpr bool kOnlySm90a = true;
  static constexpr int kRegistersMin = 160;
  static constexpr int kLaunchRegistersMin = 154;
};

// 64 sums a thread.
template <>
struct FusedTraits<kernels::gpushare_gemm_roomy> {
  static constexpr bool kOnlySm90a = true;
  static constexpr int kRegistersMin = 96;
  static constexpr int kLaunchRegistersMin = 96;
};

}  // namespace gpushare::device

#endif  // GPUSHARE_KERNELS_FUSED_GEMM_WGMMA_PART_CUH_
