// Parameters of the lattice Boltzmann step: D3Q19, one relaxation time (BGK), periodic, out of
// place.
//
//   f_d(x) arrives from x - e_d;  out_d(x) = f_d + omega * (f_eq_d - f_d)
//   f_eq_d = w_d * rho * (1 + 3 e_d u + 4.5 (e_d u)^2 - 1.5 u u)

#ifndef GPUSHARE_BENCHMARKS_KERNELS_MEMORY_LBM_H_
#define GPUSHARE_BENCHMARKS_KERNELS_MEMORY_LBM_H_

#include <cstdint>

#include "benchmarks/kernels/hash.h"

namespace gpushare::kernels {

constexpr uint32_t kLbmDirections = 19;
constexpr uint32_t kLbmWidth = 256;  // cells along x: one a thread
constexpr float kLbmOmega = 1.2F;

// The directions: rest, six along an axis, twelve along the diagonals of a plane.
GPUSHARE_HOST_DEVICE constexpr int LbmX(uint32_t direction) {
  constexpr int kX[kLbmDirections] = {0, 1, -1, 0, 0, 0, 0, 1, -1, 1, -1, 1, -1, 1, -1, 0, 0, 0, 0};
  return kX[direction];
}
GPUSHARE_HOST_DEVICE constexpr int LbmY(uint32_t direction) {
  constexpr int kY[kLbmDirections] = {0, 0, 0, 1, -1, 0, 0, 1, -1, -1, 1, 0, 0, 0, 0, 1, -1, 1, -1};
  return kY[direction];
}
GPUSHARE_HOST_DEVICE constexpr int LbmZ(uint32_t direction) {
  constexpr int kZ[kLbmDirections] = {0, 0, 0, 0, 0, 1, -1, 0, 0, 0, 0, 1, -1, -1, 1, 1, -1, -1, 1};
  return kZ[direction];
}
GPUSHARE_HOST_DEVICE constexpr float LbmWeight(uint32_t direction) {
  if (direction == 0) return 1.0F / 3.0F;
  return direction < 7 ? 1.0F / 18.0F : 1.0F / 36.0F;
}

struct LbmParams {
  const float* in;  // 19 arrays of width * height * depth cells, x fastest
  float* out;       // the same
  uint32_t height;
  uint32_t depth;
  uint32_t rows;  // of a block task, each kLbmWidth cells; height * depth is ring * rows
  uint32_t ring;  // block task b steps chunk b % ring
};

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_MEMORY_LBM_H_
