// lbm: bound by DRAM. Every population is read once and written once, and each of the 19 arrays by
// whole rows; the neighbours' cells are only other places in them.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_MEMORY_LBM_CUH_
#define GPUSHARE_BENCHMARKS_KERNELS_MEMORY_LBM_CUH_

#include "benchmarks/kernels/memory/lbm.h"

namespace gpushare::kernels {
namespace lbm {

// a + sign * b, where the sign is known at compile time.
__device__ __forceinline__ float AddSigned(float a, int sign, float b) {
  if (sign == 0) return a;
  return sign > 0 ? a + b : a - b;
}

struct Moments {
  float density;
  float x;  // velocity
  float y;
  float z;
};

__device__ __forceinline__ Moments MomentsOf(const float* f) {
  Moments sum = {0, 0, 0, 0};
#pragma unroll
  for (uint32_t d = 0; d < kLbmDirections; ++d) {
    sum.density += f[d];
    sum.x = AddSigned(sum.x, LbmX(d), f[d]);
    sum.y = AddSigned(sum.y, LbmY(d), f[d]);
    sum.z = AddSigned(sum.z, LbmZ(d), f[d]);
  }
  const float inverse = __fdividef(1.0F, sum.density);
  return {sum.density, sum.x * inverse, sum.y * inverse, sum.z * inverse};
}

struct gpushare_lbm {
  using Params = LbmParams;
  struct Shared {};
  struct State {};
  static constexpr int kThreads = 256;
  static constexpr int kMinBlocksPerSm = 4;  // 19 populations in registers
  static constexpr bool kKeepsL1 = true;     // rows that are shifted by a cell share lines

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared&, State&, Ctx& ctx) {
    const uint32_t first = ctx.block_index() % params.ring * params.rows;
    const uint32_t cells = kLbmWidth * params.height * params.depth;
    const uint32_t x = ctx.thread();
#pragma unroll 1
    for (uint32_t row = first; row < first + params.rows; ++row) {
      float f[kLbmDirections];
      Pull(params, cells, x, row % params.height, row / params.height, f);
      const Moments m = MomentsOf(f);
      const float base = 1.0F - 1.5F * (m.x * m.x + m.y * m.y + m.z * m.z);
      float* out = params.out + row * kLbmWidth + x;
#pragma unroll
      for (uint32_t d = 0; d < kLbmDirections; ++d) {
        float along = AddSigned(0.0F, LbmX(d), m.x);
        along = AddSigned(along, LbmY(d), m.y);
        along = AddSigned(along, LbmZ(d), m.z);
        const float wanted = LbmWeight(d) * m.density * fmaf(along, fmaf(4.5F, along, 3.0F), base);
        __stcs(out + static_cast<uint64_t>(d) * cells, fmaf(kLbmOmega, wanted - f[d], f[d]));
      }
    }
  }

 private:
  // The index moved by `offset`, in a ring of `size`.
  __device__ static uint32_t Wrapped(uint32_t at, int offset, uint32_t size) {
    if (offset == 0) return at;
    if (offset < 0) return at == 0 ? size - 1 : at - 1;
    return at + 1 == size ? 0 : at + 1;
  }

  __device__ static void Pull(const Params& params, uint32_t cells, uint32_t x, uint32_t y,
                              uint32_t z, float* f) {
#pragma unroll
    for (uint32_t d = 0; d < kLbmDirections; ++d) {
      const uint32_t from_x = Wrapped(x, -LbmX(d), kLbmWidth);
      const uint32_t from_y = Wrapped(y, -LbmY(d), params.height);
      const uint32_t from_z = Wrapped(z, -LbmZ(d), params.depth);
      const uint32_t cell = (from_z * params.height + from_y) * kLbmWidth + from_x;
      f[d] = params.in[d * cells + cell];
    }
  }
};
}  // namespace lbm

using lbm::gpushare_lbm;

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_MEMORY_LBM_CUH_
