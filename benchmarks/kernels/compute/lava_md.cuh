// lava_md: bound by float32 instructions, 12 a pair of particles. Eight threads share two particles
// of the home box: each takes every eighth neighbour, and their sums meet in a fixed order.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_LAVA_MD_CUH_
#define GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_LAVA_MD_CUH_

#include "benchmarks/kernels/compute/approx.cuh"
#include "benchmarks/kernels/compute/lava_md.h"

namespace gpushare::kernels {
namespace lava_md {

constexpr uint32_t kShare = 8;  // threads that share particles
constexpr uint32_t kMine = 2;   // particles of a thread

struct gpushare_lava_md {
  using Params = LavaMdParams;
  static constexpr int kThreads = 256;
  static constexpr int kMinBlocksPerSm = 5;  // 48 registers: fewer would be spilled
  static_assert(kThreads / kShare * kMine == kLavaParticles, "the threads have all particles");
  struct Shared {
    float4 particles[kThreads];  // of four boxes
  };
  struct State {};

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared& shared, State&, Ctx& ctx) {
    const uint32_t first = (ctx.block_index() % params.ring) * params.boxes;
#pragma unroll 1
    for (uint32_t i = 0; i < params.boxes; ++i) RunBox(params, shared, first + i, i > 0, ctx);
  }

 private:
  template <class Ctx>
  __device__ __forceinline__ static void RunBox(const Params& params, Shared& shared, uint32_t box,
                                                bool shared_is_read, Ctx& ctx) {
    const uint32_t thread = ctx.thread();
    const float4* boxes = reinterpret_cast<const float4*>(params.particles) +
                          static_cast<uint64_t>(box) * kLavaBoxesInSlice * kLavaParticles;
    constexpr uint32_t kHome = kLavaBoxesInSlice + kLavaHomeInSlice;
    const float4* home = boxes + kHome * kLavaParticles + thread / kShare * kMine;
    float3 places[kMine];
    float4 sums[kMine];
#pragma unroll
    for (uint32_t p = 0; p < kMine; ++p) {
      const float4 particle = home[p];
      places[p] = make_float3(particle.x, particle.y, particle.z);
      sums[p] = make_float4(0, 0, 0, 0);
    }
    constexpr uint32_t kInAll = kLavaNeighbours * kLavaParticles;
    constexpr uint32_t kAtOnce = 8;
    static_assert(kInAll % (kAtOnce * kShare) == 0 && kThreads % (kAtOnce * kShare) == 0,
                  "all that is in shared memory is whole rounds");
#pragma unroll 1
    for (uint32_t first = 0; first < kInAll; first += kThreads) {
      const uint32_t count = min(static_cast<uint32_t>(kThreads), kInAll - first);
      if (shared_is_read || first > 0) ctx.sync();
      if (thread < count) {
        shared.particles[thread] = Local(boxes[first + thread], (first + thread) / kLavaParticles);
      }
      ctx.sync();
#pragma unroll 1
      for (uint32_t i = thread % kShare; i < count; i += kAtOnce * kShare) {
#pragma unroll
        for (uint32_t u = 0; u < kAtOnce; ++u) {
          AddParticle(shared.particles[i + u * kShare], places, sums);
        }
      }
    }
    Store(params, static_cast<uint64_t>(box) * kLavaParticles, thread, sums);
  }

  __device__ __forceinline__ static float4 Local(const float4& particle, uint32_t neighbour) {
    const LavaMdOrigin origin = LavaMdOriginOf(neighbour);
    return make_float4(particle.x + origin.x, particle.y + origin.y, particle.z + origin.z,
                       particle.w - 0.5F);
  }

  __device__ __forceinline__ static void AddParticle(const float4& particle,
                                                     const float3 places[kMine],
                                                     float4 sums[kMine]) {
#pragma unroll
    for (uint32_t p = 0; p < kMine; ++p) {
      const float dx = places[p].x - particle.x;
      const float dy = places[p].y - particle.y;
      const float dz = places[p].z - particle.z;
      const float square = fmaf(dz, dz, fmaf(dy, dy, dx * dx));
      const float part = particle.w * ApproxExp2(-kLavaDecay * square);
      sums[p].x += part;
      sums[p].y = fmaf(part, dx, sums[p].y);
      sums[p].z = fmaf(part, dy, sums[p].z);
      sums[p].w = fmaf(part, dz, sums[p].w);
    }
  }

  // Sums over the eight threads, always the same halves first, so that every form has the same
  // bits.
  __device__ __forceinline__ static float ShareSum(float value) {
#pragma unroll
    for (uint32_t lane = kShare / 2; lane > 0; lane /= 2) {
      value += __shfl_xor_sync(0xFFFFFFFFU, value, lane);
    }
    return value;
  }

  __device__ __forceinline__ static void Store(const Params& params, uint64_t first,
                                               uint32_t thread, const float4 sums[kMine]) {
#pragma unroll
    for (uint32_t p = 0; p < kMine; ++p) {
      const float4 all = make_float4(ShareSum(sums[p].x), ShareSum(sums[p].y), ShareSum(sums[p].z),
                                     ShareSum(sums[p].w));
      if (thread % kShare != 0) continue;
      reinterpret_cast<float4*>(params.out)[first + thread / kShare * kMine + p] = all;
    }
  }
};
}  // namespace lava_md

using lava_md::gpushare_lava_md;

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_LAVA_MD_CUH_
