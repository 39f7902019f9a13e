// histogram: bound by shared memory. Each warp has its own bins, so that only its lanes meet in
// one; sums of integers do not depend on the order.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_IRREGULAR_HISTOGRAM_CUH_
#define GPUSHARE_BENCHMARKS_KERNELS_IRREGULAR_HISTOGRAM_CUH_

#include "benchmarks/kernels/irregular/histogram.h"

namespace gpushare::kernels {
namespace histogram {

constexpr uint32_t kWarps = 8;

struct gpushare_histogram {
  using Params = HistogramParams;
  struct Shared {
    uint32_t bins[kWarps][kHistogramBins];
  };
  struct State {};
  static constexpr int kThreads = 256;
  static constexpr int kMinBlocksPerSm = 8;
  static constexpr bool kKeepsL1 = true;  // for 32 KB of loads in flight an SM

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared& shared, State&, Ctx& ctx) {
    static_assert(kThreads == kHistogramBins, "each thread sums one bin up");
    const uint32_t thread = ctx.thread();
    const uint32_t chunk = ctx.block_index() % params.ring;
    const uint4* in = reinterpret_cast<const uint4*>(params.in) +
                      static_cast<uint64_t>(chunk) * params.passes * kThreads + thread;
    uint4 next = *in;
#pragma unroll
    for (uint32_t warp = 0; warp < kWarps; ++warp) shared.bins[warp][thread] = 0;
    ctx.sync();
    uint32_t* bins = shared.bins[thread / 32];
#pragma unroll 1
    for (uint32_t pass = 0; pass < params.passes; ++pass) {
      const uint4 bytes = next;
      in += kThreads;
      if (pass + 1 < params.passes) next = *in;
      Count(bytes.x, bins);
      Count(bytes.y, bins);
      Count(bytes.z, bins);
      Count(bytes.w, bins);
    }
    ctx.sync();
    uint32_t count = 0;
#pragma unroll
    for (uint32_t warp = 0; warp < kWarps; ++warp) count += shared.bins[warp][thread];
    params.out[chunk * kHistogramBins + thread] = count;
  }

 private:
  __device__ static void Count(uint32_t bytes, uint32_t* bins) {
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) atomicAdd(bins + ((bytes >> (8 * i)) & 0xFF), 1U);
  }
};
}  // namespace histogram

using histogram::gpushare_histogram;

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_IRREGULAR_HISTOGRAM_CUH_
