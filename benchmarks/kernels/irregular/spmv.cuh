// spmv: bound by L2. A warp takes a row; each element gathers a 32-byte sector of a vector that
// stays in L2, while the matrix streams past it.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_IRREGULAR_SPMV_CUH_
#define GPUSHARE_BENCHMARKS_KERNELS_IRREGULAR_SPMV_CUH_

#include "benchmarks/kernels/irregular/spmv.h"
#include "kernels/warp_reduce.cuh"

namespace gpushare::kernels {
namespace spmv {

static_assert(SpmvShape::kLongest <= 3 * kWarpThreads && SpmvShape::kShortest >= kWarpThreads,
              "a row is one whole and up to two partial loads of a warp");

struct gpushare_spmv {
  using Params = SpmvParams;
  struct Shared {};
  struct State {};
  static constexpr int kThreads = 256;
  static constexpr int kMinBlocksPerSm = 8;
  static constexpr int kWorkersPerSm = 4;  // as fast as 8 within 1 %, and sooner evicted
  static constexpr bool kKeepsL1 = true;   // gathers in flight live there

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared&, State&, Ctx& ctx) {
    const uint32_t lane = ctx.thread() % kWarpThreads;
    const uint32_t first = ctx.block_index() % params.ring * params.rows;
    const uint32_t end = first + params.rows;
    uint32_t row = first + ctx.thread() / kWarpThreads;
    uint32_t begin = params.begins[row];
    uint32_t row_end = params.begins[row + 1];
#pragma unroll 1
    for (; row < end; row += kWarps) {
      // The index of the next row; for the last row its own.
      const uint32_t next = row + kWarps < end ? row + kWarps : row;
      const uint32_t next_begin = params.begins[next];
      const uint32_t next_end = params.begins[next + 1];
      const float sum = WarpSum(LaneSum(params, begin + lane, row_end));
      if (lane == 0) params.out[row] = sum;
      begin = next_begin;
      row_end = next_end;
    }
  }

 private:
  static constexpr uint32_t kWarps = kThreads / kWarpThreads;
  static constexpr uint32_t kLoads = 3;

  // All loads of a row are in flight at once. The matrix is marked to leave L2 first: x stays.
  __device__ static float LaneSum(const Params& params, uint32_t element, uint32_t end) {
    uint32_t column[kLoads] = {};
    float value[kLoads] = {};
#pragma unroll
    for (uint32_t i = 0; i < kLoads; ++i) {
      const uint32_t at = element + i * kWarpThreads;
      if (at >= end) continue;
      column[i] = __ldcs(params.columns + at);
      value[i] = __ldcs(params.values + at);
    }
    float sum = 0;
#pragma unroll
    for (uint32_t i = 0; i < kLoads; ++i) sum = fmaf(value[i], __ldg(params.x + column[i]), sum);
    return sum;
  }
};
}  // namespace spmv

using spmv::gpushare_spmv;

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_IRREGULAR_SPMV_CUH_
