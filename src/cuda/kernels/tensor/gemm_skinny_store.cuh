// What both bodies of gemm_skinny end a panel with: partial sums in shared memory are added and
// stored as bf16.

#ifndef GPUSHARE_SRC_CUDA_KERNELS_TENSOR_GEMM_SKINNY_STORE_CUH_
#define GPUSHARE_SRC_CUDA_KERNELS_TENSOR_GEMM_SKINNY_STORE_CUH_

#include <cstdint>

#include "src/cuda/kernels/tensor/gemm_skinny.h"
#include "src/cuda/kernels/tensor/mma.cuh"

namespace gpushare::kernels {

// Four columns of a row a thread. kPartials sets of sums, kPartialWords apart, with rows of
// kRowWords; added in their order, so the bits are always the same.
template <uint32_t kPartials, uint32_t kPartialWords, uint32_t kRowWords, uint32_t kThreads>
__device__ __forceinline__ void StorePartials(const GemmSkinnyParams& params, const float* partials,
                                              uint32_t panel, uint32_t thread) {
  constexpr uint32_t kFours = kSkinnyColumns / 4;
  const uint32_t column = thread % kFours * 4;
#pragma unroll 1
  for (uint32_t row = thread / kFours; row < params.m; row += kThreads / kFours) {
    float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll
    for (uint32_t i = 0; i < kPartials; ++i) {
      const float4 more =
          *reinterpret_cast<const float4*>(partials + i * kPartialWords + row * kRowWords + column);
      sum = make_float4(sum.x + more.x, sum.y + more.y, sum.z + more.z, sum.w + more.w);
    }
    uint16_t* const to =
        params.c + static_cast<uint64_t>(row) * params.n + panel * kSkinnyColumns + column;
    *reinterpret_cast<uint2*>(to) =
        make_uint2(mma::PackBf16(sum.x, sum.y), mma::PackBf16(sum.z, sum.w));
  }
}

}  // namespace gpushare::kernels

#endif  // GPUSHARE_SRC_CUDA_KERNELS_TENSOR_GEMM_SKINNY_STORE_CUH_
