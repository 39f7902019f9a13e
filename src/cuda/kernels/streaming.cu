// streaming: bound by DRAM, one byte written for each byte read.

#include <gpushare/device/variants.cuh>

#include "src/cuda/kernels/streaming.h"

namespace gpushare::kernels {

struct gpushare_streaming {
  using Params = StreamingParams;
  struct Shared {};
  struct State {};
  static constexpr int kThreads = 256;
  static constexpr int kMinBlocksPerSm = 8;

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared&, State&, Ctx& ctx) {
    const uint64_t chunk = ctx.block_index() % params.ring;
    const uint64_t begin = chunk * params.passes * kThreads + ctx.thread();
    const float4* in = reinterpret_cast<const float4*>(params.in) + begin;
    float4* out = reinterpret_cast<float4*>(params.out) + begin;
    // Nothing is read twice: past the caches as far as they allow it.
    for (uint32_t pass = 0; pass < params.passes; pass += kStreamingUnroll) {
      float4 values[kStreamingUnroll];
#pragma unroll
      for (uint32_t i = 0; i < kStreamingUnroll; ++i) values[i] = __ldcs(in + i * kThreads);
#pragma unroll
      for (uint32_t i = 0; i < kStreamingUnroll; ++i) {
        const float4 value = values[i];
        __stcs(out + i * kThreads, make_float4(params.scale * value.x, params.scale * value.y,
                                               params.scale * value.z, params.scale * value.w));
      }
      in += kStreamingUnroll * kThreads;
      out += kStreamingUnroll * kThreads;
    }
  }
};
GPUSHARE_KERNEL(gpushare_streaming);

}  // namespace gpushare::kernels
