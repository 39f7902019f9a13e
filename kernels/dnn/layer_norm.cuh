// layer_norm: bound by DRAM. A block holds four rows in registers, so that they are read once, and
// reduces them together: thread by thread, over the lanes, over the warps, always in the same
// order.

#ifndef GPUSHARE_KERNELS_DNN_LAYER_NORM_CUH_
#define GPUSHARE_KERNELS_DNN_LAYER_NORM_CUH_

#include "kernels/dnn/layer_norm.h"
#include "kernels/warp_reduce.cuh"

namespace gpushare::kernels {
namespace layer_norm {

constexpr uint32_t kWarps = kLayerNormThreads / kWarpThreads;

struct Partial {
  float sums[kLayerNormRows * kWarps];  // of row 0 by all warps, then of row 1
};
static_assert(kLayerNormRows * kWarps == kWarpThreads, "a lane takes one partial sum");

__device__ __forceinline__ float Sum(float4 value) {
  return (value.x + value.y) + (value.z + value.w);
}

__device__ __forceinline__ float4 Minus(float4 value, float mean) {
  return make_float4(value.x - mean, value.y - mean, value.z - mean, value.w - mean);
}

__device__ __forceinline__ float Squares(float4 value) {
  return fmaf(value.x, value.x, value.y * value.y) + fmaf(value.z, value.z, value.w * value.w);
}

struct gpushare_layer_norm {
  using Params = LayerNormParams;
  // One array for the means, one for the variances. Between two writes of one array lies the
  // barrier of the other, so no thread overwrites what another still reads.
  struct Shared {
    Partial sums;
    Partial squares;
  };
  struct State {};
  static constexpr int kThreads = kLayerNormThreads;
  static constexpr int kMinBlocksPerSm = 6;  // 40 registers: 16 are the rows
  static constexpr int kWorkersPerSm = 4;    // as fast as 6 within 1 %, and sooner evicted
  static constexpr bool kKeepsL1 = true;     // gamma and beta are read for every four rows

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared& shared, State&, Ctx& ctx) {
    const uint32_t first = ctx.block_index() % params.ring * params.rows;
    const uint32_t stride = params.length / 4;
    const bool inside = ctx.thread() < stride;
    // One 32-bit index instead of two pointers, which would not fit in registers beside the values.
    uint32_t at = first * stride + ctx.thread();
#pragma unroll 1
    for (uint32_t row = 0; row < params.rows; row += kLayerNormRows) {
      float4 values[kLayerNormRows];
#pragma unroll
      for (uint32_t r = 0; r < kLayerNormRows; ++r) {
        values[r] = make_float4(0, 0, 0, 0);
        if (inside) values[r] = reinterpret_cast<const float4*>(params.in)[at + r * stride];
      }
      Center(params, shared.sums, ctx, inside, values);
      float scales[kLayerNormRows];
      Scales(params, shared.squares, ctx, values, scales);
      if (inside) Write(params, ctx.thread(), at, values, scales);
      at += kLayerNormRows * stride;
    }
  }

 private:
  // All threads get the sums of the rows over the block: a lane takes one partial sum, and eight
  // lanes those of a row.
  template <class Ctx>
  __device__ __forceinline__ static void Reduce(Partial& partial, Ctx& ctx,
                                                float (&sums)[kLayerNormRows]) {
    const uint32_t lane = ctx.thread() % kWarpThreads;
#pragma unroll
    for (uint32_t r = 0; r < kLayerNormRows; ++r) {
      const float sum = WarpSum(sums[r]);
      if (lane == 0) partial.sums[r * kWarps + ctx.thread() / kWarpThreads] = sum;
    }
    ctx.sync();
    float sum = partial.sums[lane];
#pragma unroll
    for (uint32_t other = kWarps / 2; other > 0; other /= 2) {
      sum += __shfl_xor_sync(0xFFFFFFFFU, sum, other);
    }
#pragma unroll
    for (uint32_t r = 0; r < kLayerNormRows; ++r) {
      sums[r] = __shfl_sync(0xFFFFFFFFU, sum, r * kWarps);
    }
  }

  // Subtracts the means; threads past the end of the rows keep zeros.
  template <class Ctx>
  __device__ __forceinline__ static void Center(const Params& params, Partial& partial, Ctx& ctx,
                                                bool inside, float4 (&values)[kLayerNormRows]) {
    float sums[kLayerNormRows];
#pragma unroll
    for (uint32_t r = 0; r < kLayerNormRows; ++r) sums[r] = Sum(values[r]);
    Reduce(partial, ctx, sums);
    const float one_over_length = __fdividef(1.0F, static_cast<float>(params.length));
#pragma unroll
    for (uint32_t r = 0; r < kLayerNormRows; ++r) {
      if (inside) values[r] = Minus(values[r], sums[r] * one_over_length);
    }
  }

  // One over the standard deviations.
  template <class Ctx>
  __device__ __forceinline__ static void Scales(const Params& params, Partial& partial, Ctx& ctx,
                                                const float4 (&values)[kLayerNormRows],
                                                float (&scales)[kLayerNormRows]) {
#pragma unroll
    for (uint32_t r = 0; r < kLayerNormRows; ++r) scales[r] = Squares(values[r]);
    Reduce(partial, ctx, scales);
    const float one_over_length = __fdividef(1.0F, static_cast<float>(params.length));
#pragma unroll
    for (uint32_t r = 0; r < kLayerNormRows; ++r) {
      scales[r] = rsqrtf(fmaf(scales[r], one_over_length, params.epsilon));
    }
  }

  __device__ __forceinline__ static void Write(const Params& params, uint32_t column, uint32_t at,
                                               const float4 (&values)[kLayerNormRows],
                                               const float (&scales)[kLayerNormRows]) {
    float4* const out = reinterpret_cast<float4*>(params.out);
    const float4 gamma = reinterpret_cast<const float4*>(params.gamma)[column];
    const float4 beta = reinterpret_cast<const float4*>(params.beta)[column];
#pragma unroll
    for (uint32_t r = 0; r < kLayerNormRows; ++r) {
      const float4 value = values[r];
      const float scale = scales[r];
      __stcs(out + at + r * (params.length / 4),
             make_float4(
                 fmaf(value.x * scale, gamma.x, beta.x), fmaf(value.y * scale, gamma.y, beta.y),
                 fmaf(value.z * scale, gamma.z, beta.z), fmaf(value.w * scale, gamma.w, beta.w)));
    }
  }
};
}  // namespace layer_norm

using layer_norm::gpushare_layer_norm;

}  // namespace gpushare::kernels

#endif  // GPUSHARE_KERNELS_DNN_LAYER_NORM_CUH_
