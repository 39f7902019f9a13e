// bfs: a thread walks its vertex' list until it meets the frontier. Bound by the sectors that come
// from L2, and held back by divergence: a warp goes on until its longest search ends. A list is
// read four neighbours at once, from where 16 bytes begin: each lane reads another line, and L1
// looks up about one line a clock.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_IRREGULAR_BFS_CUH_
#define GPUSHARE_BENCHMARKS_KERNELS_IRREGULAR_BFS_CUH_

#include "benchmarks/kernels/irregular/bfs.h"

namespace gpushare::kernels {
namespace bfs {

struct gpushare_bfs {
  using Params = BfsParams;
  struct Shared {};
  struct State {};
  static constexpr int kThreads = 256;
  static constexpr int kMinBlocksPerSm = 8;
  static constexpr bool kKeepsL1 = true;  // a list's sector serves eight looks
  // In an earlier form eight were 4 % slower: L1 holds the lists of 1024 searches better than of
  // 2048.
  static constexpr int kWorkersPerSm = 4;

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared&, State&, Ctx& ctx) {
    const uint32_t first = ctx.block_index() % params.ring * params.passes * kThreads;
#pragma unroll 1
    for (uint32_t pass = 0; pass < params.passes; ++pass) {
      const uint32_t vertex = first + pass * kThreads + ctx.thread();
      const Vertex mine = VertexOf(params, vertex);
      uint2 result = make_uint2(mine.level, kBfsNoParent);
      if (mine.level == kBfsUnvisited) {
        result.y = Parent(params, mine.begin, mine.end);
        if (result.y != kBfsNoParent) result.x = kBfsLevel + 1;
      }
      __stcs(reinterpret_cast<uint2*>(params.out) + vertex, result);
    }
  }

 private:
  static constexpr uint32_t kLooks = kBfsLooks;  // in flight at once

  struct Vertex {
    uint32_t level;
    uint32_t begin;
    uint32_t end;
  };
  __device__ __forceinline__ static Vertex VertexOf(const Params& params, uint32_t vertex) {
    return {params.levels[vertex], params.begins[vertex], params.begins[vertex + 1]};
  }

  __device__ __forceinline__ static uint32_t Parent(const Params& params, uint32_t begin,
                                                    uint32_t end) {
#pragma unroll 1
    for (uint32_t edge = begin / kLooks * kLooks; edge < end; edge += kLooks) {
      const uint4 four = *reinterpret_cast<const uint4*>(params.neighbours + edge);
      const uint32_t neighbour[kLooks] = {four.x, four.y, four.z, four.w};
      uint32_t level[kLooks];
#pragma unroll
      for (uint32_t i = 0; i < kLooks; ++i) {
        // Neighbours before `begin` and from `end` on are of other lists.
        const bool mine = edge + i >= begin && edge + i < end;
        level[i] = mine ? params.levels[neighbour[i]] : kBfsUnvisited;
      }
      uint32_t found = kBfsNoParent;  // the first; no early return, which would index an array
#pragma unroll
      for (uint32_t i = kLooks; i-- > 0;) {
        if (level[i] == kBfsLevel) found = neighbour[i];
      }
      if (found != kBfsNoParent) return found;
    }
    return kBfsNoParent;
  }
};
}  // namespace bfs

using bfs::gpushare_bfs;

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_IRREGULAR_BFS_CUH_
