// The skinny GEMM as a part of fused kernels: the body for sm_90a.

#ifndef GPUSHARE_SRC_CUDA_KERNELS_FUSED_GEMM_SKINNY_PART_CUH_
#define GPUSHARE_SRC_CUDA_KERNELS_FUSED_GEMM_SKINNY_PART_CUH_

#include <gpushare/device/fused.cuh>

#include "src/cuda/kernels/tensor/gemm_skinny.cuh"

namespace gpushare::device {

// 32 sums and 16 words of activations a thread, and addresses. The loads of a
// k block pass the products of the one before: 8 bytes are spilled at 96, none at 104.
template <>
struct FusedTraits<kernels::gpushare_gemm_skinny> {
  static constexpr bool kOnlySm90a = true;
  static constexpr int kRegistersMin = 104;
  static constexpr int kLaunchRegistersMin = 0;
};

}  // namespace gpushare::device

#endif  // GPUSHARE_SRC_CUDA_KERNELS_FUSED_GEMM_SKINNY_PART_CUH_
