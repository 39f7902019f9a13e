// vector_add: bound by DRAM, two bytes read for each byte written.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_MEMORY_VECTOR_ADD_CUH_
#define GPUSHARE_BENCHMARKS_KERNELS_MEMORY_VECTOR_ADD_CUH_

#include "benchmarks/kernels/memory/vector_add.h"

namespace gpushare::kernels {
namespace vector_add {

struct gpushare_vector_add {
  using Params = VectorAddParams;
  struct Shared {};
  struct State {};
  static constexpr int kThreads = 256;
  static constexpr int kMinBlocksPerSm = 8;
  static constexpr int kWorkersPerSm = 4;  // as fast as 8 within 1 %, and sooner evicted
  static constexpr bool kKeepsL1 = true;   // loads in flight live there

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared&, State&, Ctx& ctx) {
    const uint64_t chunk = ctx.block_index() % params.ring;
    uint64_t at = chunk * params.passes * (2 * kThreads) + ctx.thread();
#pragma unroll 1
    for (uint32_t pass = 0; pass < params.passes; ++pass, at += 2 * kThreads) {
      const float4* a = reinterpret_cast<const float4*>(params.a) + at;
      const float4* b = reinterpret_cast<const float4*>(params.b) + at;
      float4* out = reinterpret_cast<float4*>(params.out) + at;
      const float4 a0 = a[0];
      const float4 b0 = b[0];
      const float4 a1 = a[kThreads];
      const float4 b1 = b[kThreads];
      __stcs(out, make_float4(a0.x + b0.x, a0.y + b0.y, a0.z + b0.z, a0.w + b0.w));
      __stcs(out + kThreads, make_float4(a1.x + b1.x, a1.y + b1.y, a1.z + b1.z, a1.w + b1.w));
    }
  }
};
}  // namespace vector_add

using vector_add::gpushare_vector_add;

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_MEMORY_VECTOR_ADD_CUH_
