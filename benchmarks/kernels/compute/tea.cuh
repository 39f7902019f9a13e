// tea: bound by integer instructions, registers only.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_TEA_CUH_
#define GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_TEA_CUH_

#include "benchmarks/kernels/compute/tea.h"
#include "kernels/warp_reduce.cuh"

namespace gpushare::kernels {

struct gpushare_tea {
  using Params = TeaParams;
  struct Shared {};
  struct State {};
  static constexpr int kThreads = 256;
  static constexpr int kMinBlocksPerSm = 8;
  static constexpr int kWorkersPerSm = 4;  // as fast as 8 within 1 %, and sooner evicted

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared&, State&, Ctx& ctx) {
    const uint32_t thread = (ctx.block_index() % params.ring) * kThreads + ctx.thread();
    TeaBlock block = {Hash(params.seed, 2 * thread), Hash(params.seed, 2 * thread + 1)};
#pragma unroll 1
    for (uint32_t i = 0; i < params.iterations; ++i) block = TeaEncipher(block, params.key);
    const uint2 record = make_uint2(WarpXor(block.v0), WarpXor(block.v1));
    if (thread % kWarpThreads != 0) return;
    reinterpret_cast<uint2*>(params.out)[thread / kWarpThreads] = record;
  }
};
}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_TEA_CUH_
