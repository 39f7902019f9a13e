// bfs: a lane walks a vertex' list until it meets the frontier. Bound by the sectors that come from
// L2. Searches differ in length, so a warp has a run of vertices, and a lane that has ended one
// takes the next of the run: only at the end of the run do lanes wait for the longest search. Which
// lane searches for a vertex changes nothing in its result.

#ifndef GPUSHARE_SRC_CUDA_KERNELS_IRREGULAR_BFS_CUH_
#define GPUSHARE_SRC_CUDA_KERNELS_IRREGULAR_BFS_CUH_

#include "src/cuda/kernels/irregular/bfs.h"
#include "src/cuda/kernels/warp.h"

namespace gpushare::kernels {
namespace bfs {

struct gpushare_bfs {
  using Params = BfsParams;
  struct Shared {};
  struct State {};
  static constexpr int kThreads = 256;
  static constexpr int kMinBlocksPerSm = 8;
  static constexpr bool kKeepsL1 = true;  // a list's sector serves eight looks

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared&, State&, Ctx& ctx) {
    const uint32_t run = params.passes * kWarpThreads;
    const uint32_t lanes_before = (1U << (ctx.thread() % kWarpThreads)) - 1;
    uint32_t next = ctx.block_index() % params.ring * params.passes * kThreads +
                    ctx.thread() / kWarpThreads * run;
    const uint32_t run_end = next + run;
    Search mine = {0, 0, 0};
    for (;;) {
      const uint32_t idle = __ballot_sync(kWholeWarp, mine.edge >= mine.end);
      if (idle == kWholeWarp && next >= run_end) return;
      if (mine.edge >= mine.end) {
        mine.vertex = next + __popc(idle & lanes_before);
        if (mine.vertex < run_end) Begin(params, mine);
      }
      next += __popc(idle);
      __syncwarp();  // all searches look at once, those that have just begun too
      if (mine.edge < mine.end) Look(params, mine);
    }
  }

 private:
  static constexpr uint32_t kWholeWarp = 0xFFFFFFFF;
  static constexpr uint32_t kLooks = 4;  // in flight at once

  // A lane's; it has ended when edge is not below end.
  struct Search {
    uint32_t vertex;
    uint32_t edge;
    uint32_t end;
  };

  // A vertex that has a level is done at once. Every list has at least one neighbour.
  __device__ __forceinline__ static void Begin(const Params& params, Search& mine) {
    const uint32_t level = params.levels[mine.vertex];
    const uint32_t begin = params.begins[mine.vertex];
    const uint32_t end = params.begins[mine.vertex + 1];
    if (level == kBfsUnvisited) {
      mine.edge = begin;
      mine.end = end;
    } else {
      Store(params, mine.vertex, level, kBfsNoParent);
    }
  }

  __device__ __forceinline__ static void Look(const Params& params, Search& mine) {
    uint32_t neighbour[kLooks];
    uint32_t level[kLooks];
#pragma unroll
    for (uint32_t i = 0; i < kLooks; ++i) {
      // Past the end the last one again: it is no smaller than what it repeats.
      neighbour[i] = params.neighbours[min(mine.edge + i, mine.end - 1)];
    }
#pragma unroll
    for (uint32_t i = 0; i < kLooks; ++i) level[i] = params.levels[neighbour[i]];
    uint32_t found = kBfsNoParent;  // the first: one branch for all looks
#pragma unroll
    for (uint32_t i = kLooks; i-- > 0;) {
      if (level[i] == kBfsLevel) found = neighbour[i];
    }
    mine.edge += kLooks;
    if (found != kBfsNoParent) {
      mine.edge = mine.end;
      Store(params, mine.vertex, kBfsLevel + 1, found);
    } else if (mine.edge >= mine.end) {
      Store(params, mine.vertex, kBfsUnvisited, kBfsNoParent);
    }
  }

  __device__ __forceinline__ static void Store(const Params& params, uint32_t vertex,
                                               uint32_t level, uint32_t parent) {
    __stcs(reinterpret_cast<uint2*>(params.out) + vertex, make_uint2(level, parent));
  }
};
}  // namespace bfs

using bfs::gpushare_bfs;

}  // namespace gpushare::kernels

#endif  // GPUSHARE_SRC_CUDA_KERNELS_IRREGULAR_BFS_CUH_
