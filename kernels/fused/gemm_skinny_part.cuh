// The skinny GEMMs as parts of fused kernels: the bodies for sm_90a.

#ifndef GPUSHARE_KERNELS_FUSED_GEMM_SKINNY_PART_CUH_
#define GPUSHARE_KERNELS_FUSED_GEMM_SKINNY_PART_CUH_

#include <gpushare/device/fused.cuh>

#include "kernels/tensor/gemm_skinny.cuh"

namespace gpushare::device {

// With 16 sums a thread and the addresses, workers have 51 registers alone. Nothing is spilled at
// 56.
template <>
struct FusedTraits<kernels::gpushare_gemm_skinny> {
  static constexpr bool kOnlySm90a = true;
  static constexpr int kRegistersMin = 56;
  static constexpr int kLaunchRegistersMin = 56;
};

template <>
struct FusedTraits<kernels::gpushare_gemm_skinny_compact>
    : FusedTraits<kernels::gpushare_gemm_skinny> {};

}  // namespace gpushare::device

#endif  // GPUSHARE_KERNELS_FUSED_GEMM_SKINNY_PART_CUH_
