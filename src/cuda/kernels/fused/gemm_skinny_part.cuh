// The skinny GEMMs as parts of fused kernels: the bodies for sm_90a.

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

// One k block at a time needs fewer addresses: nothing is spilled at 96. Beside gemm_roomy it gets
// no more: each quarter of an SM has its own registers, so the 17 warps of both count as 20.
template <>
struct FusedTraits<kernels::gpushare_gemm_skinny_compact> {
  static constexpr bool kOnlySm90a = true;
  static constexpr int kRegistersMin = 96;
  static constexpr int kLaunchRegistersMin = 0;
};

}  // namespace gpushare::device

#endif  // GPUSHARE_SRC_CUDA_KERNELS_FUSED_GEMM_SKINNY_PART_CUH_
