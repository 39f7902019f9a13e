// mrif: bound by float32 instructions, 7.5 for a sample and a cell. A thread has four cells above
// each other, so that a sample's distance in x is computed once for them.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_MRIF_CUH_
#define GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_MRIF_CUH_

#include "benchmarks/kernels/compute/mrif.h"

namespace gpushare::kernels {
namespace mrif {

constexpr uint32_t kRowsApart = kMrifCellsAcross / kMrifCellsPerThread;
constexpr float kStepY = static_cast<float>(kRowsApart) * kMrifSpacing;

struct gpushare_mrif {
  using Params = MrifParams;
  static constexpr int kThreads = 256;
  static constexpr int kMinBlocksPerSm = 6;  // 40 registers, for an unrolled loop
  static constexpr int kWorkersPerSm = 4;    // as fast as 6 within 1 %, and sooner evicted
  static_assert(kThreads * kMrifCellsPerThread == kMrifCells, "the threads have all cells");
  struct Shared {
    float4 samples[kThreads];
  };
  struct State {};

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared& shared, State&, Ctx& ctx) {
    const uint32_t slot = ctx.block_index() % params.ring;
    const uint32_t thread = ctx.thread();
    const uint32_t per_bin = params.samples_per_bin;
    const float4* samples = reinterpret_cast<const float4*>(params.samples) +
                            static_cast<uint64_t>(slot) * kMrifBinsOfRegion * per_bin;
    const float2 cell =
        make_float2(MrifCell(thread % kMrifCellsAcross), MrifCell(thread / kMrifCellsAcross));
    float2 sums[kMrifCellsPerThread] = {};
    const uint32_t samples_in_all = kMrifBins * per_bin;
    for (uint32_t first = 0; first < samples_in_all; first += kThreads) {
      const uint32_t count = min(static_cast<uint32_t>(kThreads), samples_in_all - first);
      if (first > 0) ctx.sync();  // all threads have read the previous samples
      if (thread < count) {
        shared.samples[thread] = LocalSample(samples[first + thread], (first + thread) / per_bin);
      }
      ctx.sync();
#pragma unroll 4
      for (uint32_t i = 0; i < count; ++i) AddSample(shared.samples[i], cell, sums);
    }
    float2* out = reinterpret_cast<float2*>(params.out) + slot * kMrifCells + thread;
#pragma unroll
    for (uint32_t c = 0; c < kMrifCellsPerThread; ++c) out[c * kThreads] = sums[c];
  }

 private:
  // The sample's place relative to the region's corner.
  __device__ __forceinline__ static float4 LocalSample(const float4& sample, uint32_t bin) {
    const MrifBinOrigin origin = MrifOriginOf(bin);
    return make_float4(sample.x + origin.x, sample.y + origin.y, sample.z - 0.5F, sample.w - 0.5F);
  }

  __device__ __forceinline__ static void AddSample(const float4& sample, const float2& cell,
                                                   float2 sums[kMrifCellsPerThread]) {
    const float dx = cell.x - sample.x;
    const float beside = fmaf(-dx, dx, 1.0F);
#pragma unroll
    for (uint32_t c = 0; c < kMrifCellsPerThread; ++c) {
      const float dy = (cell.y + static_cast<float>(c) * kStepY) - sample.y;
      const float s = __saturatef(fmaf(-dy, dy, beside));  // 0 outside the window: no branch
      const float weight = s * fmaf(s, fmaf(s, kMrifWindow3, kMrifWindow2), kMrifWindow1);
      sums[c].x = fmaf(weight, sample.z, sums[c].x);
      sums[c].y = fmaf(weight, sample.w, sums[c].y);
    }
  }
};
}  // namespace mrif

using mrif::gpushare_mrif;

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_MRIF_CUH_
