// sgd: bound by DRAM, 12 bytes read and 8 written for each weight.

#ifndef GPUSHARE_KERNELS_DNN_SGD_CUH_
#define GPUSHARE_KERNELS_DNN_SGD_CUH_

#include "kernels/dnn/sgd.h"

namespace gpushare::kernels {
namespace sgd {

__device__ __forceinline__ float Velocity(const SgdParams& params, float weight, float gradient,
                                          float velocity) {
  return fmaf(params.momentum, velocity, fmaf(params.decay, weight, gradient));
}

struct gpushare_sgd {
  using Params = SgdParams;
  struct Shared {};
  struct State {};
  static constexpr int kThreads = 256;
  static constexpr int kMinBlocksPerSm = 8;
  static constexpr int kWorkersPerSm = 4;  // as fast as 8 within 1 %, and sooner evicted
  static constexpr bool kKeepsL1 = true;   // for 96 KB of loads in flight an SM

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared&, State&, Ctx& ctx) {
    const uint64_t chunk = ctx.block_index() % params.ring;
    uint64_t at = chunk * params.passes * kThreads + ctx.thread();
#pragma unroll 1
    for (uint32_t pass = 0; pass < params.passes; ++pass, at += kThreads) {
      const float4 w = reinterpret_cast<const float4*>(params.weights)[at];
      const float4 g = reinterpret_cast<const float4*>(params.gradients)[at];
      const float4 v = reinterpret_cast<const float4*>(params.velocities)[at];
      const float4 velocity =
          make_float4(Velocity(params, w.x, g.x, v.x), Velocity(params, w.y, g.y, v.y),
                      Velocity(params, w.z, g.z, v.z), Velocity(params, w.w, g.w, v.w));
      __stcs(reinterpret_cast<float4*>(params.new_velocities) + at, velocity);
      __stcs(reinterpret_cast<float4*>(params.new_weights) + at,
             make_float4(fmaf(-params.rate, velocity.x, w.x), fmaf(-params.rate, velocity.y, w.y),
                         fmaf(-params.rate, velocity.z, w.z), fmaf(-params.rate, velocity.w, w.w)));
    }
  }
};
}  // namespace sgd

using sgd::gpushare_sgd;

}  // namespace gpushare::kernels

#endif  // GPUSHARE_KERNELS_DNN_SGD_CUH_
