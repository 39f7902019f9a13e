// particle_filter: bound by integer instructions, and by the latency of three barriers a frame and
// of a binary search in shared memory. A thread has four particles in a row.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_PARTICLE_FILTER_CUH_
#define GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_PARTICLE_FILTER_CUH_

#include "benchmarks/kernels/compute/particle_filter.h"
#include "kernels/warp.h"

namespace gpushare::kernels {
namespace particle_filter {

constexpr uint32_t kMine = 4;  // particles of a thread
constexpr uint32_t kFullWarp = 0xFFFFFFFFU;

struct gpushare_particle_filter {
  using Params = ParticleFilterParams;
  static constexpr int kThreads = 256;
  static constexpr int kMinBlocksPerSm = 6;  // 40 registers: 32 would be spilled
  static constexpr uint32_t kWarps = kThreads / kWarpThreads;
  static_assert(kThreads * kMine == kFilterParticles, "the threads have all particles");
  struct Shared {
    alignas(16) uint32_t cumulated[kFilterParticles];
    alignas(16) uint32_t places[kFilterParticles];
    alignas(4) unsigned char pixels[kFilterPixels];
    uint32_t warps[kWarps];  // sums of weights
    uint32_t results[kWarps][3];
  };
  struct State {};

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared& shared, State&, Ctx& ctx) {
    const uint32_t slot = ctx.block_index() % params.ring;
    const uint32_t first = ctx.thread() * kMine;
    FilterPlace mine[kMine];
#pragma unroll
    for (uint32_t i = 0; i < kMine; ++i) {
      mine[i] = FilterStart(params.seed, slot * kFilterParticles + first + i);
    }
    uint32_t all_weights = 0;
#pragma unroll 1
    for (uint32_t frame = 0; frame < params.frames; ++frame) {
      LoadFrame(params, frame, ctx.thread(), shared);
      ctx.sync();  // all draws of the previous frame have been made
      const uint32_t moved = slot * kFilterParticles + first;
      const uint4 weights = MoveAndWeigh(params.seed, moved, frame, first, mine, shared);
      all_weights = Cumulate(weights, shared, ctx);
      ctx.sync();
#pragma unroll
      for (uint32_t i = 0; i < kMine; ++i) {
        const uint32_t point = FilterDraw(params.seed, slot, frame, first + i, all_weights);
        mine[i] = Unpack(shared.places[Find(shared.cumulated, point)]);
      }
    }
    Store(params.out + slot * 4, first, mine, all_weights, shared, ctx);
  }

 private:
  __device__ __forceinline__ static uint32_t Pack(const FilterPlace& place) {
    return place.y << 16 | place.x;
  }
  __device__ __forceinline__ static FilterPlace Unpack(uint32_t packed) {
    return {packed & 0xFFFFU, packed >> 16};
  }

  // Four pixels a thread at a time.
  __device__ __forceinline__ static void LoadFrame(const Params& params, uint32_t frame,
                                                   uint32_t thread, Shared& shared) {
    const float4* film = reinterpret_cast<const float4*>(params.film) +
                         static_cast<uint64_t>(frame % params.film_frames) * (kFilterPixels / 4);
#pragma unroll 1
    for (uint32_t four = thread; four < kFilterPixels / 4; four += kThreads) {
      const float4 noise = film[four];
      const uint32_t bytes = FilterPixel(noise.x, 4 * four, frame) |
                             FilterPixel(noise.y, 4 * four + 1, frame) << 8 |
                             FilterPixel(noise.z, 4 * four + 2, frame) << 16 |
                             FilterPixel(noise.w, 4 * four + 3, frame) << 24;
      reinterpret_cast<uint32_t*>(shared.pixels)[four] = bytes;
    }
  }

  __device__ __forceinline__ static uint4 MoveAndWeigh(uint32_t seed, uint32_t particle,
                                                       uint32_t frame, uint32_t first,
                                                       FilterPlace mine[kMine], Shared& shared) {
    uint32_t weights[kMine];
#pragma unroll
    for (uint32_t i = 0; i < kMine; ++i) {
      mine[i] = FilterMove(mine[i], seed, particle + i, frame);
      shared.places[first + i] = Pack(mine[i]);
      uint32_t sum = 0;
#pragma unroll
      for (uint32_t probe = 0; probe < kFilterProbes; ++probe) {
        sum += shared.pixels[FilterProbe(mine[i], probe)];
      }
      weights[i] = FilterWeight(sum);
    }
    return make_uint4(weights[0], weights[1], weights[2], weights[3]);
  }

  // Puts the running sums of all weights into shared memory and returns the last one.
  template <class Ctx>
  __device__ __forceinline__ static uint32_t Cumulate(const uint4& weights, Shared& shared,
                                                      Ctx& ctx) {
    const uint32_t lane = ctx.thread() % kWarpThreads;
    const uint32_t warp = ctx.thread() / kWarpThreads;
    const uint32_t sum = weights.x + weights.y + weights.z + weights.w;
    uint32_t upto = sum;
#pragma unroll
    for (uint32_t distance = 1; distance < kWarpThreads; distance *= 2) {
      const uint32_t before = __shfl_up_sync(kFullWarp, upto, distance);
      if (lane >= distance) upto += before;
    }
    if (lane == kWarpThreads - 1) shared.warps[warp] = upto;
    ctx.sync();
    uint32_t all = 0;
    uint32_t before = upto - sum;
#pragma unroll
    for (uint32_t w = 0; w < kWarps; ++w) {
      const uint32_t of_warp = shared.warps[w];
      if (w < warp) before += of_warp;
      all += of_warp;
    }
    const uint32_t x = before + weights.x;
    const uint32_t y = x + weights.y;
    const uint32_t z = y + weights.z;
    reinterpret_cast<uint4*>(shared.cumulated)[ctx.thread()] = make_uint4(x, y, z, z + weights.w);
    return all;
  }

  // The first particle whose cumulated weight is above the point, which is below the last one.
  __device__ __forceinline__ static uint32_t Find(const uint32_t* cumulated, uint32_t point) {
    uint32_t found = 0;
#pragma unroll
    for (uint32_t step = kFilterParticles / 2; step > 0; step /= 2) {
      if (cumulated[found + step - 1] <= point) found += step;
    }
    return found;
  }

  // Adds whole numbers, so any order gives the same sum.
  template <class Ctx>
  __device__ __forceinline__ static void Store(uint32_t* out, uint32_t first,
                                               const FilterPlace mine[kMine], uint32_t all_weights,
                                               Shared& shared, Ctx& ctx) {
    uint32_t sums[3] = {};
#pragma unroll
    for (uint32_t i = 0; i < kMine; ++i) {
      sums[0] += mine[i].x;
      sums[1] += mine[i].y;
      sums[2] += FilterHash(mine[i], first + i);
    }
#pragma unroll
    for (uint32_t s = 0; s < 3; ++s) {
      const uint32_t sum = __reduce_add_sync(kFullWarp, sums[s]);
      if (ctx.thread() % kWarpThreads == 0) shared.results[ctx.thread() / kWarpThreads][s] = sum;
    }
    ctx.sync();
    if (ctx.thread() != 0) return;
    uint4 all = make_uint4(0, 0, all_weights, 0);
    for (uint32_t w = 0; w < kWarps; ++w) {
      all.x += shared.results[w][0];
      all.y += shared.results[w][1];
      all.w += shared.results[w][2];
    }
    *reinterpret_cast<uint4*>(out) = all;
  }
};
}  // namespace particle_filter

using particle_filter::gpushare_particle_filter;

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_PARTICLE_FILTER_CUH_
