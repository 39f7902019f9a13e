// Parameters of tpacf (Parboil's two-point angular correlation): how many pairs of directions lie
// closer than each of eight angles.
//
// Counts are exact, on the CPU too: directions and their products are computed by the same float32
// operations on either side, each of which IEEE 754 defines, so no pair can change its bin. (No
// operator that a compiler may contract: fused multiply-adds and one reciprocal.)

#ifndef GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_TPACF_H_
#define GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_TPACF_H_

#include <cmath>
#include <cstdint>

#include "benchmarks/kernels/hash.h"

namespace gpushare::kernels {

struct TpacfParams {
  uint32_t* out;      // eight counts a slot: pairs with a cosine above kTpacfCosines[i]
  uint32_t ring;      // block task b computes slot b % ring
  uint32_t partners;  // directions that each of a slot's 256 is paired with; a multiple of 4
  uint32_t seed;
};

constexpr uint32_t kTpacfBins = 8;
constexpr uint32_t kTpacfTile = 256;  // partners that a block holds in shared memory

// The cosine that bounds a bin: of angles of about 0.8, 1.8, 4, 8, 16, 32, 64 and 107 degrees. None
// is near 0: a product that differs from one of these does so by 2^-27 or more.
GPUSHARE_HOST_DEVICE constexpr float TpacfCosine(uint32_t bin) {
  constexpr float kCosines[kTpacfBins] = {0.9999F, 0.9995F, 0.9976F, 0.9903F,
                                          0.9613F, 0.848F,  0.4384F, -0.2924F};
  return kCosines[bin];
}

struct TpacfDirection {
  float x;
  float y;
  float z;
};

// A point of a square, projected to the unit sphere from its pole: most of a hemisphere.
GPUSHARE_HOST_DEVICE inline TpacfDirection TpacfDirectionOf(uint32_t seed, uint32_t index) {
  const float u = Uniform(seed, 2 * index, -0.75F, 0.75F);
  const float v = Uniform(seed, 2 * index + 1, -0.75F, 0.75F);
  const float square = fmaf(u, u, fmaf(v, v, 0.0F));
  const float whole = fmaf(square, 1.0F, 1.0F);
#ifdef __CUDA_ARCH__
  const float inverse = __frcp_rn(whole);
#else
  const float inverse = 1.0F / whole;
#endif
  return {fmaf(fmaf(2.0F, u, 0.0F), inverse, 0.0F), fmaf(fmaf(2.0F, v, 0.0F), inverse, 0.0F),
          fmaf(fmaf(square, -1.0F, 1.0F), inverse, 0.0F)};
}

GPUSHARE_HOST_DEVICE inline float TpacfProduct(const TpacfDirection& a, const TpacfDirection& b) {
  return fmaf(a.x, b.x, fmaf(a.y, b.y, fmaf(a.z, b.z, 0.0F)));
}

// The seed of the partners, which are the same for all slots.
GPUSHARE_HOST_DEVICE inline uint32_t TpacfPartnerSeed(uint32_t seed) { return seed ^ 0x1F83D9ABU; }

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_TPACF_H_
