// softmax: bound by DRAM. A warp holds a row in registers, so that it is read once; maximum and sum
// are taken lane by lane and then over the lanes, always in the same order.

#ifndef GPUSHARE_KERNELS_DNN_SOFTMAX_CUH_
#define GPUSHARE_KERNELS_DNN_SOFTMAX_CUH_

#include "kernels/dnn/softmax.h"
#include "kernels/warp_reduce.cuh"

namespace gpushare::kernels {
namespace softmax {

__device__ __forceinline__ float WarpMax(float value) {
#pragma unroll
  for (uint32_t lane = kWarpThreads / 2; lane > 0; lane /= 2) {
    value = fmaxf(value, __shfl_xor_sync(0xFFFFFFFFU, value, lane));
  }
  return value;
}

__device__ __forceinline__ float4 Exp(float4 value, float largest) {
  return make_float4(__expf(value.x - largest), __expf(value.y - largest),
                     __expf(value.z - largest), __expf(value.w - largest));
}

struct gpushare_softmax {
  using Params = SoftmaxParams;
  struct Shared {};
  struct State {};
  static constexpr int kThreads = kSoftmaxWarps * kWarpThreads;
  static constexpr int kMinBlocksPerSm = 6;  // 40 registers: 16 are the row
  static constexpr int kWorkersPerSm = 4;    // as fast as 6 within 1 %, and sooner evicted
  static constexpr bool kKeepsL1 = true;     // for 96 KB of loads in flight an SM

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared&, State&, Ctx& ctx) {
    const uint32_t first = ctx.block_index() % params.ring * params.rows;
#pragma unroll 1
    for (uint32_t row = ctx.thread() / kWarpThreads; row < params.rows; row += kSoftmaxWarps) {
      Row(params, first + row, ctx.thread() % kWarpThreads);
    }
  }

 private:
  __device__ __forceinline__ static void Row(const Params& params, uint32_t row, uint32_t lane) {
    // One 32-bit index instead of two pointers, which would not fit in registers beside the values.
    const uint32_t vectors = params.length / 4;
    const uint32_t at = row * vectors + lane;
    const float4* in = reinterpret_cast<const float4*>(params.in) + at;
    float4 values[kSoftmaxVectors];
    float largest = -INFINITY;
#pragma unroll
    for (uint32_t i = 0; i < kSoftmaxVectors; ++i) {
      values[i] = make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY);
      if (lane + i * kWarpThreads < vectors) values[i] = in[i * kWarpThreads];
    }
#pragma unroll
    for (uint32_t i = 0; i < kSoftmaxVectors; ++i) {
      largest =
          fmaxf(largest, fmaxf(fmaxf(values[i].x, values[i].y), fmaxf(values[i].z, values[i].w)));
    }
    largest = WarpMax(largest);
    float sum = 0;
#pragma unroll
    for (uint32_t i = 0; i < kSoftmaxVectors; ++i) {
      values[i] = Exp(values[i], largest);  // 0 of what is past the end
      sum += (values[i].x + values[i].y) + (values[i].z + values[i].w);
    }
    float4* out = reinterpret_cast<float4*>(params.out) + at;
    const float scale = __fdividef(1.0F, WarpSum(sum));
#pragma unroll
    for (uint32_t i = 0; i < kSoftmaxVectors; ++i) {
      if (lane + i * kWarpThreads < vectors) {
        __stcs(out + i * kWarpThreads, make_float4(scale * values[i].x, scale * values[i].y,
                                                   scale * values[i].z, scale * values[i].w));
      }
    }
  }
};
}  // namespace softmax

using softmax::gpushare_softmax;

}  // namespace gpushare::kernels

#endif  // GPUSHARE_KERNELS_DNN_SOFTMAX_CUH_
