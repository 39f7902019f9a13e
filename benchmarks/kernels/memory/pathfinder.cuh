// pathfinder: bound by DRAM, the walls are read once. A tile's row of costs is in registers; what
// passes between warps goes through shared memory, one barrier a row.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_MEMORY_PATHFINDER_CUH_
#define GPUSHARE_BENCHMARKS_KERNELS_MEMORY_PATHFINDER_CUH_

#include "benchmarks/kernels/memory/pathfinder.h"

namespace gpushare::kernels {
namespace pathfinder {

constexpr uint32_t kFullWarp = 0xFFFFFFFFU;
constexpr uint32_t kLastLane = 31;
constexpr uint32_t kWarps = 8;

__device__ __forceinline__ uint32_t Min3(uint32_t a, uint32_t b, uint32_t c) {
  return min(min(a, b), c);
}

struct gpushare_pathfinder {
  using Params = PathfinderParams;
  // The outer costs of each warp, of this row and of the previous one, which slow warps may still
  // read.
  struct Shared {
    uint32_t first[2][kWarps];
    uint32_t last[2][kWarps];
  };
  struct State {};
  static constexpr int kThreads = 256;
  static constexpr int kMinBlocksPerSm = 6;
  static constexpr bool kKeepsL1 = true;  // loads in flight live there

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared& shared, State&, Ctx& ctx) {
    const uint32_t first_tile = ctx.block_index() % params.ring * params.tiles;
#pragma unroll 1
    for (uint32_t tile = first_tile; tile < first_tile + params.tiles; ++tile) {
      // A column below 0 wraps to one beyond the last, which is outside too.
      const uint32_t column = tile * kPathfinderColumns + ctx.thread() * 4 - kPathfinderHalo;
      const bool inside = column < params.columns;
      const uint32_t* walls = params.walls + column;
      uint4 cost = Load(params.source + column, inside);
      uint4 even = Load(walls, inside);
      uint4 odd = Load(walls + params.columns, inside);
#pragma unroll 1
      for (uint32_t row = 0; row < params.rows; row += 2) {
        walls += 2 * static_cast<uint64_t>(params.columns);
        const bool more = inside && row + 2 < params.rows;
        const uint4 next_even = Load(walls, more);
        const uint4 next_odd = Load(walls + params.columns, more);
        cost = Step<0>(cost, even, shared, ctx);
        cost = Step<1>(cost, odd, shared, ctx);
        // Beyond the field every wall is the same, in every row.
        even = next_even;
        odd = next_odd;
      }
      if (IsOwn(ctx.thread())) *reinterpret_cast<uint4*>(params.out + column) = cost;
    }
  }

 private:
  // Columns of the halo belong to the neighbouring tiles. A tile's own are all inside the field.
  __device__ static bool IsOwn(uint32_t thread) {
    return thread >= kPathfinderHalo / 4 && thread < kThreads - kPathfinderHalo / 4;
  }

  __device__ static uint4 Load(const uint32_t* at, bool inside) {
    if (inside) return *reinterpret_cast<const uint4*>(at);
    return make_uint4(kPathfinderOutside, kPathfinderOutside, kPathfinderOutside,
                      kPathfinderOutside);
  }

  // What is unknown beyond the tile's ends spoils one column a row, which the halo covers.
  template <int kParity, class Ctx>
  __device__ static uint4 Step(const uint4& cost, const uint4& wall, Shared& shared, Ctx& ctx) {
    const uint32_t lane = ctx.thread() % 32;
    const uint32_t warp = ctx.thread() / 32;
    if (lane == 0) shared.first[kParity][warp] = cost.x;
    if (lane == kLastLane) shared.last[kParity][warp] = cost.w;
    uint32_t left = __shfl_up_sync(kFullWarp, cost.w, 1);
    uint32_t right = __shfl_down_sync(kFullWarp, cost.x, 1);
    ctx.sync();
    if (lane == 0) left = warp == 0 ? cost.x : shared.last[kParity][warp - 1];
    if (lane == kLastLane) right = warp + 1 == kWarps ? cost.w : shared.first[kParity][warp + 1];
    return make_uint4(wall.x + Min3(left, cost.x, cost.y), wall.y + Min3(cost.x, cost.y, cost.z),
                      wall.z + Min3(cost.y, cost.z, cost.w), wall.w + Min3(cost.z, cost.w, right));
  }
};
}  // namespace pathfinder

using pathfinder::gpushare_pathfinder;

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_MEMORY_PATHFINDER_CUH_
