// Parameters of the ffma kernel: four rotating points a thread, by fused multiply-adds alone.
//
// x -= h y, y += h x keeps x^2 + y^2 - h x y: values neither grow nor settle, so an iteration that
// is missing shows at any length, and rounding errors add up but are not multiplied.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_FFMA_H_
#define GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_FFMA_H_

#include <cstdint>
#include <cstring>

#include "benchmarks/kernels/hash.h"

namespace gpushare::kernels {

constexpr int kFfmaPoints = 4;
// Unrolled iterations of the loop; a block task has a multiple of them. The loop's own three
// instructions are then 2 % of the issue slots.
constexpr int kFfmaUnroll = 16;

struct FfmaPoint {
  float x;
  float y;
};

struct FfmaParams {
  float* out;           // sums of x and of y over a warp's points, ring * 8 pairs
  uint32_t ring;        // block task b computes slot b % ring
  uint32_t iterations;  // 2 * kFfmaPoints fused multiply-adds each
  uint32_t seed;
  float angle;  // h
};

// -1 to 1 in steps of 2^-15. No conversion: an SM does 16 of them a clock, and the eight of a
// thread would be 1.5 % of a block task of 30 us. The product and the difference are exact.
GPUSHARE_HOST_DEVICE inline float FfmaCoordinate(uint32_t sixteen_bits) {
  const uint32_t bits = 0x3F800000U | (sixteen_bits << 7);  // [1, 2)
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return 2.0F * value - 3.0F;
}

// Where a point starts; thread t has the points from t * kFfmaPoints on.
GPUSHARE_HOST_DEVICE inline FfmaPoint FfmaStart(uint32_t seed, uint32_t point) {
  const uint32_t hash = Hash(seed, point);
  return {FfmaCoordinate(hash >> 16), FfmaCoordinate(hash & 0xFFFFU)};
}

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_FFMA_H_
