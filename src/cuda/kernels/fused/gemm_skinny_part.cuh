// The skinny GEMM as a part of fused kernels.

#ifndef GPUSHARE_SRC_CUDA_KERNELS_FUSED_GEMM_SKINNY_PART_CUH_
#define GPUSHARE_SRC_CUDA_KERNELS_FUSED_GEMM_SKINNY_PART_CUH_

#include <gpushare/device/fused.cuh>

#include "src/cuda/kernels/tensor/gemm_skinny.cuh"

namespace gpushare::device {

// Loads in flight fill the registers: 840 bytes are spilled at 96, 16 at 168.
template <>
struct FusedTraits<kernels::gpushare_gemm_skinny> {
  static constexpr bool kOnlySm90a = false;
  static constexpr int kRegistersMin = 168;
  static constexpr int kLaunchRegistersMin = 0;
};

}  // namespace gpushare::device

#endif  // GPUSHARE_SRC_CUDA_KERNELS_FUSED_GEMM_SKINNY_PART_CUH_
