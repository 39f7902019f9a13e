// Parameters of the ffma kernel: four rotating points a thread, by fused multiply-adds alone.
//
// x -= h y, y += h x keeps x^2 + y^2 - h x y: values neither grow nor settle, so an iteration that
// is missing shows at any length, and rounding errors add up but are not multiplied.

#ifndef GPUSHARE_SRC_CUDA_KERNELS_FFMA_H_
#define GPUSHARE_SRC_CUDA_KERNELS_FFMA_H_

#include <cstdint>

namespace gpushare::kernels {

constexpr int kFfmaPoints = 4;

struct FfmaParams {
  float* out;           // sums of x and of y over a thread's points, ring * 256 pairs
  uint32_t ring;        // block task b computes slot b % ring
  uint32_t iterations;  // 2 * kFfmaPoints fused multiply-adds each
  uint32_t seed;
  float angle;  // h
};

}  // namespace gpushare::kernels

#endif  // GPUSHARE_SRC_CUDA_KERNELS_FFMA_H_
