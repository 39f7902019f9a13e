// ffma: bound by the issue of fused multiply-adds (128 a clock and SM), registers only.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_FFMA_CUH_
#define GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_FFMA_CUH_

#include "benchmarks/kernels/compute/ffma.h"
#include "kernels/warp_reduce.cuh"

namespace gpushare::kernels {

struct gpushare_ffma {
  using Params = FfmaParams;
  struct Shared {};
  struct State {};
  static constexpr int kThreads = 256;
  static constexpr int kMinBlocksPerSm = 8;
  // Five are 0.8 % slower than eight (four: 1.6 %), and evicted in two thirds of the time.
  static constexpr int kWorkersPerSm = 5;

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared&, State&, Ctx& ctx) {
    const uint32_t thread = (ctx.block_index() % params.ring) * kThreads + ctx.thread();
    float x[kFfmaPoints];
    float y[kFfmaPoints];
#pragma unroll
    for (int i = 0; i < kFfmaPoints; ++i) {
      const FfmaPoint start = FfmaStart(params.seed, thread * kFfmaPoints + i);
      x[i] = start.x;
      y[i] = start.y;
    }
    const float angle = params.angle;
#pragma unroll kFfmaUnroll
    for (uint32_t iteration = 0; iteration < params.iterations; ++iteration) {
#pragma unroll
      for (int i = 0; i < kFfmaPoints; ++i) x[i] = fmaf(-angle, y[i], x[i]);
#pragma unroll
      for (int i = 0; i < kFfmaPoints; ++i) y[i] = fmaf(angle, x[i], y[i]);
    }
    float2 sum = make_float2(0, 0);
#pragma unroll
    for (int i = 0; i < kFfmaPoints; ++i) sum = make_float2(sum.x + x[i], sum.y + y[i]);
    sum = make_float2(WarpSum(sum.x), WarpSum(sum.y));
    if (thread % kWarpThreads != 0) return;
    reinterpret_cast<float2*>(params.out)[thread / kWarpThreads] = sum;
  }
};
}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_FFMA_CUH_
