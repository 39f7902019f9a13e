// pointer_chase: bound by latency. A warp has one load at a time, and the next needs its answer.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_IRREGULAR_POINTER_CHASE_CUH_
#define GPUSHARE_BENCHMARKS_KERNELS_IRREGULAR_POINTER_CHASE_CUH_

#include "benchmarks/kernels/irregular/pointer_chase.h"

namespace gpushare::kernels {
namespace pointer_chase {

struct gpushare_pointer_chase {
  using Params = PointerChaseParams;
  struct Shared {};
  struct State {};
  static constexpr int kThreads = 256;
  static constexpr int kMinBlocksPerSm = 8;

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared&, State&, Ctx& ctx) {
    static_assert(kThreads / 32 == kChaseWarps, "each warp has a walk");
    const uint32_t walk = ctx.block_index() % params.ring * kChaseWarps + ctx.thread() / 32;
    uint32_t node = ChaseStart(params.seed, walk);
    // All lanes read the same word: one sector.
#pragma unroll 4
    for (uint32_t hop = 0; hop < params.hops; ++hop) node = params.links[node * kChaseNodeWords];
    if (ctx.thread() % 32 == 0) params.out[walk] = node;
  }
};
}  // namespace pointer_chase

using pointer_chase::gpushare_pointer_chase;

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_IRREGULAR_POINTER_CHASE_CUH_
