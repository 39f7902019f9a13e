// relu: bound by DRAM, one byte written for each byte read.

#ifndef GPUSHARE_KERNELS_DNN_RELU_CUH_
#define GPUSHARE_KERNELS_DNN_RELU_CUH_

#include "kernels/dnn/relu.h"

namespace gpushare::kernels {
namespace relu {

struct gpushare_relu {
  using Params = ReluParams;
  struct Shared {};
  struct State {};
  static constexpr int kThreads = 256;
  static constexpr int kMinBlocksPerSm = 8;
  // Enough to keep DRAM busy, as in streaming. An eviction waits for half of the time that eight
  // need.
  static constexpr int kWorkersPerSm = 4;

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared&, State&, Ctx& ctx) {
    const uint64_t chunk = ctx.block_index() % params.ring;
    const uint64_t begin = chunk * params.passes * kThreads + ctx.thread();
    const float4* in = reinterpret_cast<const float4*>(params.in) + begin;
    float4* out = reinterpret_cast<float4*>(params.out) + begin;
#pragma unroll 1
    for (uint32_t pass = 0; pass < params.passes; pass += kReluUnroll) {
      float4 values[kReluUnroll];
#pragma unroll
      for (uint32_t i = 0; i < kReluUnroll; ++i) values[i] = in[i * kThreads];
#pragma unroll
      for (uint32_t i = 0; i < kReluUnroll; ++i) {
        const float4 value = values[i];
        __stcs(out + i * kThreads, make_float4(fmaxf(value.x, 0), fmaxf(value.y, 0),
                                               fmaxf(value.z, 0), fmaxf(value.w, 0)));
      }
      in += kReluUnroll * kThreads;
      out += kReluUnroll * kThreads;
    }
  }
};
}  // namespace relu

using relu::gpushare_relu;

}  // namespace gpushare::kernels

#endif  // GPUSHARE_KERNELS_DNN_RELU_CUH_
