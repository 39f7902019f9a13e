// adam: bound by DRAM, 16 bytes read and 12 written for each weight.

#ifndef GPUSHARE_KERNELS_DNN_ADAM_CUH_
#define GPUSHARE_KERNELS_DNN_ADAM_CUH_

#include "kernels/dnn/adam.h"

namespace gpushare::kernels {
namespace adam {

// sqrt.approx errs by one unit in the last place and is 0 at 0; the exact root's slow path would
// cost registers that eight blocks an SM do not have.
__device__ __forceinline__ float Root(float value) {
  float root;
  asm("sqrt.approx.f32 %0, %1;" : "=f"(root) : "f"(value));
  return root;
}

// Turns first and second moment of one weight into the new ones, returns the new weight.
__device__ __forceinline__ float Step(const AdamParams& params, float weight, float gradient,
                                      float* first, float* second) {
  *first = fmaf(params.decay_first, *first, (1.0F - params.decay_first) * gradient);
  *second =
      fmaf(params.decay_second, *second, (1.0F - params.decay_second) * (gradient * gradient));
  return fmaf(-params.rate, __fdividef(*first, Root(*second) + params.epsilon), weight);
}

struct gpushare_adam {
  using Params = AdamParams;
  struct Shared {};
  struct State {};
  static constexpr int kThreads = 256;
  static constexpr int kMinBlocksPerSm = 8;
  static constexpr int kWorkersPerSm = 4;  // as fast as 8 within 1 %, and sooner evicted
  static constexpr bool kKeepsL1 = true;   // for 128 KB of loads in flight an SM

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared&, State&, Ctx& ctx) {
    const uint64_t chunk = ctx.block_index() % params.ring;
    uint64_t at = chunk * params.passes * kThreads + ctx.thread();
#pragma unroll 1
    for (uint32_t pass = 0; pass < params.passes; ++pass, at += kThreads) {
      float4 w = reinterpret_cast<const float4*>(params.weights)[at];
      const float4 g = reinterpret_cast<const float4*>(params.gradients)[at];
      float4 first = reinterpret_cast<const float4*>(params.first)[at];
      float4 second = reinterpret_cast<const float4*>(params.second)[at];
      w.x = Step(params, w.x, g.x, &first.x, &second.x);
      w.y = Step(params, w.y, g.y, &first.y, &second.y);
      w.z = Step(params, w.z, g.z, &first.z, &second.z);
      w.w = Step(params, w.w, g.w, &first.w, &second.w);
      __stcs(reinterpret_cast<float4*>(params.new_first) + at, first);
      __stcs(reinterpret_cast<float4*>(params.new_second) + at, second);
      __stcs(reinterpret_cast<float4*>(params.new_weights) + at, w);
    }
  }
};
}  // namespace adam

using adam::gpushare_adam;

}  // namespace gpushare::kernels

#endif  // GPUSHARE_KERNELS_DNN_ADAM_CUH_
