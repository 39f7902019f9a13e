// nn: bound by DRAM, eight bytes a record. The minimum goes from lanes to warps to the block.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_IRREGULAR_NN_CUH_
#define GPUSHARE_BENCHMARKS_KERNELS_IRREGULAR_NN_CUH_

#include "benchmarks/kernels/irregular/nn.h"

namespace gpushare::kernels {
namespace nn {

constexpr uint32_t kFullWarp = 0xFFFFFFFFU;
constexpr uint32_t kWarps = 8;

// Floats that are not negative have the order of their bits.
struct Nearest {
  uint32_t bits;
  uint32_t index;
};

__device__ __forceinline__ Nearest NearestOf(uint32_t lanes, Nearest mine) {
  const uint32_t bits = __reduce_min_sync(lanes, mine.bits);
  const uint32_t index = mine.bits == bits ? mine.index : 0xFFFFFFFFU;
  return {bits, __reduce_min_sync(lanes, index)};
}

struct gpushare_nn {
  using Params = NnParams;
  struct Shared {
    Nearest warps[kWarps];
  };
  struct State {};
  static constexpr int kThreads = 256;
  static constexpr int kMinBlocksPerSm = 8;
  static constexpr int kWorkersPerSm = 4;  // as fast as 8 within 1 %, and sooner evicted
  static constexpr bool kKeepsL1 = true;   // loads in flight live there

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared& shared, State&, Ctx& ctx) {
    const uint32_t chunk = ctx.block_index() % params.ring;
    uint32_t pair = chunk * params.passes * (2 * kThreads) + ctx.thread();
    const NnQuery query = params.query;
    Nearest nearest = {0xFFFFFFFFU, 0xFFFFFFFFU};
#pragma unroll 2
    for (uint32_t pass = 0; pass < params.passes; ++pass, pair += 2 * kThreads) {
      const float4* at = reinterpret_cast<const float4*>(params.records) + pair;
      const float4 first = at[0];
      const float4 second = at[kThreads];
      Consider(query, first.x, first.y, 2 * pair, &nearest);
      Consider(query, first.z, first.w, 2 * pair + 1, &nearest);
      Consider(query, second.x, second.y, 2 * (pair + kThreads), &nearest);
      Consider(query, second.z, second.w, 2 * (pair + kThreads) + 1, &nearest);
    }
    nearest = NearestOf(kFullWarp, nearest);
    if (ctx.thread() % 32 == 0) shared.warps[ctx.thread() / 32] = nearest;
    ctx.sync();
    if (ctx.thread() >= kWarps) return;
    nearest = NearestOf((1U << kWarps) - 1, shared.warps[ctx.thread()]);
    if (ctx.thread() != 0) return;
    reinterpret_cast<uint2*>(params.out)[chunk] = make_uint2(nearest.index, nearest.bits);
  }

 private:
  // A thread sees its records in ascending order, so of equally close ones the first stays.
  __device__ static void Consider(const NnQuery& query, float latitude, float longitude,
                                  uint32_t index, Nearest* nearest) {
    const uint32_t bits = __float_as_uint(NnDistance(query, latitude, longitude));
    if (bits >= nearest->bits) return;
    *nearest = {bits, index};
  }
};
}  // namespace nn

using nn::gpushare_nn;

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_IRREGULAR_NN_CUH_
