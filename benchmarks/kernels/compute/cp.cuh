// cp: bound by the special-function pipe (one reciprocal square root a pair). A thread has four
// points of one column, so that an atom's distance in x and z is computed once for them.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_CP_CUH_
#define GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_CP_CUH_

#include "benchmarks/kernels/compute/approx.cuh"
#include "benchmarks/kernels/compute/cp.h"

namespace gpushare::kernels {
namespace cp {

constexpr uint32_t kRowsApart = kCpPointsY / kCpPointsPerThread;
constexpr float kStepY = static_cast<float>(kRowsApart) * kCpSpacing;

struct gpushare_cp {
  using Params = CpParams;
  struct Shared {
    float4 atoms[kCpTile];
  };
  struct State {};
  static constexpr int kThreads = 256;
  static constexpr int kMinBlocksPerSm = 8;
  static constexpr int kWorkersPerSm = 4;  // as fast as 8 within 1 %, and sooner evicted
  static_assert(kThreads * kCpPointsPerThread == kCpPoints, "a thread has whole columns' parts");

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared& shared, State&, Ctx& ctx) {
    const uint32_t slot = ctx.block_index() % params.ring;
    const uint32_t thread = ctx.thread();
    const float4* atoms = reinterpret_cast<const float4*>(params.atoms);
    const CpPoint point = CpPointOf(slot, thread);
    float sums[kCpPointsPerThread] = {};
    for (uint32_t first = 0; first < params.atom_count; first += kCpTile) {
      const uint32_t count = min(kCpTile, params.atom_count - first);
      if (first > 0) ctx.sync();  // all threads have read the previous atoms
      if (thread < count) shared.atoms[thread] = atoms[first + thread];
      ctx.sync();
#pragma unroll 4
      for (uint32_t i = 0; i < count; ++i) AddAtom(shared.atoms[i], point, sums);
    }
    float* out = params.out + slot * kCpPoints + thread;
#pragma unroll
    for (uint32_t p = 0; p < kCpPointsPerThread; ++p) out[p * kThreads] = sums[p];
  }

 private:
  __device__ __forceinline__ static void AddAtom(const float4& atom, const CpPoint& point,
                                                 float sums[kCpPointsPerThread]) {
    const float dx = point.x - atom.x;
    const float beside = fmaf(atom.z, atom.z, fmaf(dx, dx, kCpSoftening));
#pragma unroll
    for (uint32_t p = 0; p < kCpPointsPerThread; ++p) {
      const float dy = (point.y + static_cast<float>(p) * kStepY) - atom.y;
      sums[p] = fmaf(atom.w, ApproxRsqrt(fmaf(dy, dy, beside)), sums[p]);
    }
  }
};
}  // namespace cp

using cp::gpushare_cp;

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_CP_CUH_
