// streaming: bound by DRAM, one byte written for each byte read.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_MEMORY_STREAMING_CUH_
#define GPUSHARE_BENCHMARKS_KERNELS_MEMORY_STREAMING_CUH_

#include "benchmarks/kernels/memory/streaming.h"

namespace gpushare::kernels {

struct gpushare_streaming {
  using Params = StreamingParams;
  struct Shared {};
  struct State {};
  static constexpr int kThreads = 256;
  static constexpr int kMinBlocksPerSm = 4;
  // Four keep DRAM busy (0.4 % faster than eight), and a block task takes half of the time, so an
  // eviction waits for less.
  static constexpr int kWorkersPerSm = 4;

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared&, State&, Ctx& ctx) {
    const uint64_t chunk = ctx.block_index() % params.ring;
    const uint64_t begin = chunk * params.passes * kThreads + ctx.thread();
    const float4* in = reinterpret_cast<const float4*>(params.in) + begin;
    float4* out = reinterpret_cast<float4*>(params.out) + begin;
    // Plain loads, although nothing is read twice: evict-first lines cannot displace a GEMM's
    // evict-last lines, which costs 4 % (docs/results/mechanisms.md).
    for (uint32_t pass = 0; pass < params.passes; pass += kStreamingUnroll) {
      float4 values[kStreamingUnroll];
#pragma unroll
      for (uint32_t i = 0; i < kStreamingUnroll; ++i) values[i] = in[i * kThreads];
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
}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_MEMORY_STREAMING_CUH_
