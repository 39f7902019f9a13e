// cutcp: bound by the special-function pipe (one reciprocal square root a pair), with nearly as
// many other instructions. A thread has four points above each other, so that an atom's distance in
// the plane is computed once for them; the atoms come through shared memory.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_CUTCP_CUH_
#define GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_CUTCP_CUH_

#include "benchmarks/kernels/compute/approx.cuh"
#include "benchmarks/kernels/compute/cutcp.h"

namespace gpushare::kernels {
namespace cutcp {

// The atom's place relative to the region's corner, and its charge.
__device__ __forceinline__ float4 LocalAtom(float4 atom, uint32_t bin) {
  const CutcpBinOrigin origin = CutcpOriginOf(bin);
  return make_float4(atom.x + origin.x, atom.y + origin.y, atom.z + origin.z, atom.w - 0.5F);
}

struct gpushare_cutcp {
  using Params = CutcpParams;
  static constexpr int kThreads = 256;
  static constexpr int kMinBlocksPerSm = 8;
  static constexpr int kWorkersPerSm = 4;  // as fast as 8 within 1 %, and sooner evicted
  struct Shared {
    float4 atoms[kThreads];
  };
  struct State {};

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared& shared, State&, Ctx& ctx) {
    const uint32_t slot = ctx.block_index() % params.ring;
    const uint32_t thread = ctx.thread();
    const uint32_t per_bin = params.atoms_per_bin;
    const float4* atoms = reinterpret_cast<const float4*>(params.atoms) +
                          static_cast<uint64_t>(slot) * kCutcpBinsInSlice * per_bin;
    const uint32_t plane = thread / kCutcpPointsInPlane * kCutcpPointsPerThread;
    const float3 point = make_float3(CutcpPoint(thread % kCutcpPointsAcross),
                                     CutcpPoint(thread % kCutcpPointsInPlane / kCutcpPointsAcross),
                                     CutcpPoint(plane));
    float sums[kCutcpPointsPerThread] = {};
    const uint32_t atoms_in_all = kCutcpBins * per_bin;
    for (uint32_t first = 0; first < atoms_in_all; first += kThreads) {
      const uint32_t count = min(static_cast<uint32_t>(kThreads), atoms_in_all - first);
      if (first > 0) ctx.sync();  // all threads have read the previous atoms
      if (thread < count) {
        shared.atoms[thread] = LocalAtom(atoms[first + thread], (first + thread) / per_bin);
      }
      ctx.sync();
#pragma unroll 4
      for (uint32_t i = 0; i < count; ++i) AddAtom(shared.atoms[i], point, sums);
    }
    float* out = params.out + slot * kCutcpPoints + plane * kCutcpPointsInPlane +
                 thread % kCutcpPointsInPlane;
#pragma unroll
    for (uint32_t p = 0; p < kCutcpPointsPerThread; ++p) out[p * kCutcpPointsInPlane] = sums[p];
  }

 private:
  __device__ __forceinline__ static void AddAtom(const float4& atom, const float3& point,
                                                 float sums[kCutcpPointsPerThread]) {
    const float dx = point.x - atom.x;
    const float dy = point.y - atom.y;
    const float in_plane = fmaf(dy, dy, fmaf(dx, dx, kCutcpSoftening));
#pragma unroll
    for (uint32_t p = 0; p < kCutcpPointsPerThread; ++p) {
      const float dz = (point.z + static_cast<float>(p) * kCutcpSpacing) - atom.z;
      const float s = fmaf(dz, dz, in_plane);
      const float inside = __saturatef(1.0F - s);  // 0 beyond the cutoff: no branch
      sums[p] = fmaf(atom.w * ApproxRsqrt(s), inside * inside, sums[p]);
    }
  }
};
}  // namespace cutcp

using cutcp::gpushare_cutcp;

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_CUTCP_CUH_
