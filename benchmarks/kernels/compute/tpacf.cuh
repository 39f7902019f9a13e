// tpacf: bound by float32 instructions, 3 for a pair's cosine and 2 for each bin. Counting without
// comparing: clamp((cosine - limit) * 2^40) is exactly 1 above the limit and 0 elsewhere, and both
// that and its sum are multiply-adds of full rate, where a comparison and a counted addition are
// integer instructions of half.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_TPACF_CUH_
#define GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_TPACF_CUH_

#include "benchmarks/kernels/compute/tpacf.h"
#include "kernels/warp_reduce.cuh"

namespace gpushare::kernels {
namespace tpacf {

struct gpushare_tpacf {
  using Params = TpacfParams;
  static constexpr int kThreads = 256;
  static constexpr int kMinBlocksPerSm = 8;
  static constexpr uint32_t kWarps = kThreads / kWarpThreads;
  struct Shared {
    float4 partners[kTpacfTile];
    float counts[kWarps][kTpacfBins];
  };
  struct State {};

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared& shared, State&, Ctx& ctx) {
    const uint32_t slot = ctx.block_index() % params.ring;
    const uint32_t thread = ctx.thread();
    const TpacfDirection mine = TpacfDirectionOf(params.seed, slot * kThreads + thread);
    float counts[kTpacfBins] = {};  // whole numbers, exact below 2^24
    for (uint32_t first = 0; first < params.partners; first += kTpacfTile) {
      const uint32_t count = min(kTpacfTile, params.partners - first);
      if (first > 0) ctx.sync();  // all threads have read the previous partners
      if (thread < count) {
        const TpacfDirection partner =
            TpacfDirectionOf(TpacfPartnerSeed(params.seed), first + thread);
        shared.partners[thread] = make_float4(partner.x, partner.y, partner.z, 0);
      }
      ctx.sync();
#pragma unroll 4
      for (uint32_t i = 0; i < count; ++i) {
        const float4 partner = shared.partners[i];
        Count(TpacfProduct(mine, {partner.x, partner.y, partner.z}), counts);
      }
    }
    Store(params.out + slot * kTpacfBins, shared, counts, ctx);
  }

 private:
  __device__ __forceinline__ static void Count(float cosine, float counts[kTpacfBins]) {
    constexpr float kScale = 1099511627776.0F;  // 2^40
#pragma unroll
    for (uint32_t bin = 0; bin < kTpacfBins; ++bin) {
      counts[bin] += __saturatef(fmaf(cosine, kScale, -kScale * TpacfCosine(bin)));
    }
  }

  // Sums of whole numbers below 2^24, so any order gives the same.
  template <class Ctx>
  __device__ __forceinline__ static void Store(uint32_t* out, Shared& shared,
                                               const float counts[kTpacfBins], Ctx& ctx) {
    const uint32_t thread = ctx.thread();
#pragma unroll
    for (uint32_t bin = 0; bin < kTpacfBins; ++bin) {
      const float sum = WarpSum(counts[bin]);
      if (thread % kWarpThreads == 0) shared.counts[thread / kWarpThreads][bin] = sum;
    }
    ctx.sync();
    if (thread >= kTpacfBins) return;
    float sum = 0;
#pragma unroll
    for (uint32_t warp = 0; warp < kWarps; ++warp) sum += shared.counts[warp][thread];
    out[thread] = static_cast<uint32_t>(sum);
  }
};
}  // namespace tpacf

using tpacf::gpushare_tpacf;

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_TPACF_CUH_
