// ffma: bound by the issue of fused multiply-adds (128 a clock and SM), registers only.

#include <gpushare/device/variants.cuh>

#include "src/cuda/kernels/ffma.h"
#include "src/cuda/kernels/hash.h"

namespace gpushare::kernels {

struct gpushare_ffma {
  using Params = FfmaParams;
  struct Shared {};
  struct State {};
  static constexpr int kThreads = 256;
  static constexpr int kMinBlocksPerSm = 8;

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared&, State&, Ctx& ctx) {
    const uint32_t thread = (ctx.block_index() % params.ring) * kThreads + ctx.thread();
    float x[kFfmaPoints];
    float y[kFfmaPoints];
#pragma unroll
    for (int i = 0; i < kFfmaPoints; ++i) {
      x[i] = Uniform(params.seed, thread * 2 * kFfmaPoints + 2 * i, -1.0F, 1.0F);
      y[i] = Uniform(params.seed, thread * 2 * kFfmaPoints + 2 * i + 1, -1.0F, 1.0F);
    }
    const float angle = params.angle;
    // Unrolled so that the loop's own three instructions are 2 % of the issue slots.
#pragma unroll 16
    for (uint32_t iteration = 0; iteration < params.iterations; ++iteration) {
#pragma unroll
      for (int i = 0; i < kFfmaPoints; ++i) x[i] = fmaf(-angle, y[i], x[i]);
#pragma unroll
      for (int i = 0; i < kFfmaPoints; ++i) y[i] = fmaf(angle, x[i], y[i]);
    }
    float2 sum = make_float2(0, 0);
#pragma unroll
    for (int i = 0; i < kFfmaPoints; ++i) sum = make_float2(sum.x + x[i], sum.y + y[i]);
    reinterpret_cast<float2*>(params.out)[thread] = sum;
  }
};
GPUSHARE_KERNEL(gpushare_ffma);

}  // namespace gpushare::kernels
