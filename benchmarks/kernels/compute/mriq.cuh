// mriq: bound by the special-function pipe. A thread has one voxel; the block's samples come
// through shared memory, a tile at a time, and every thread reads the same one.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_MRIQ_CUH_
#define GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_MRIQ_CUH_

#include "benchmarks/kernels/compute/mriq.h"

namespace gpushare::kernels {
namespace mriq {

struct Voxel {
  float x;
  float y;
  float z;
};

// Takes off whole turns, exactly, by adding and subtracting 1.5 * 2^23: a rounding instruction
// would use the special-function pipe.
__device__ __forceinline__ float WithinHalfATurn(float turns) {
  constexpr float kRounder = 12582912.0F;
  return turns - ((turns + kRounder) - kRounder);
}

__device__ __forceinline__ void AddSample(const Voxel& voxel, const float4& sample, float2* sum) {
  constexpr float kTurn = 6.28318530717958648F;
  const float turns = fmaf(sample.z, voxel.z, fmaf(sample.y, voxel.y, sample.x * voxel.x));
  const float angle = WithinHalfATurn(turns) * kTurn;
  sum->x = fmaf(sample.w, __cosf(angle), sum->x);
  sum->y = fmaf(sample.w, __sinf(angle), sum->y);
}

struct gpushare_mriq {
  using Params = MriqParams;
  struct Shared {
    float4 samples[kMriqTile];
  };
  struct State {};
  static constexpr int kThreads = 256;
  static constexpr int kMinBlocksPerSm = 8;
  static constexpr int kWorkersPerSm = 4;  // as fast as 8 within 1 %, and sooner evicted

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared& shared, State&, Ctx& ctx) {
    const uint32_t index = (ctx.block_index() % params.ring) * kThreads + ctx.thread();
    const Voxel voxel = {MriqCoordinate(params.seed, index, 0),
                         MriqCoordinate(params.seed, index, 1),
                         MriqCoordinate(params.seed, index, 2)};
    const float4* samples = reinterpret_cast<const float4*>(params.samples);
    float2 sum = make_float2(0, 0);
    for (uint32_t first = 0; first < params.sample_count; first += kMriqTile) {
      const uint32_t count = min(kMriqTile, params.sample_count - first);
      if (first > 0) ctx.sync();  // all threads have read the previous tile
      if (ctx.thread() < count) shared.samples[ctx.thread()] = samples[first + ctx.thread()];
      ctx.sync();
#pragma unroll 1
      for (uint32_t i = 0; i < count; i += kMriqUnroll) {
#pragma unroll
        for (uint32_t j = 0; j < kMriqUnroll; ++j) AddSample(voxel, shared.samples[i + j], &sum);
      }
    }
    reinterpret_cast<float2*>(params.out)[index] = sum;
  }
};
}  // namespace mriq

using mriq::gpushare_mriq;

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_MRIQ_CUH_
