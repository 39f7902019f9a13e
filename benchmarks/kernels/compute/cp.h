// Parameters of cp (Parboil's direct Coulomb potential): potentials on a plane lattice of all
// atoms.
//
// Slot s is tile (s % 64, s / 64) of 64 x 16 points. With s = distance^2 + kCpSoftening an atom
// adds charge / sqrt(s); the softening keeps an atom at a lattice point from deciding about all
// errors.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_CP_H_
#define GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_CP_H_

#include <cstdint>

#include "benchmarks/kernels/hash.h"

namespace gpushare::kernels {

struct CpParams {
  const float* atoms;  // x, y, z, charge, all from -1 to 1
  float* out;          // ring tiles of 1024 points, x fastest
  uint32_t ring;       // block task b computes slot b % ring
  uint32_t atom_count;
};

constexpr uint32_t kCpTile = 256;  // atoms that a block holds in shared memory
constexpr uint32_t kCpPointsX = 64;
constexpr uint32_t kCpPointsY = 16;
constexpr uint32_t kCpPoints = kCpPointsX * kCpPointsY;
constexpr uint32_t kCpPointsPerThread = 4;  // four rows of the tile apart
constexpr uint32_t kCpTilesAcross = 64;
constexpr float kCpSpacing = 1.0F / 2048.0F;
constexpr float kCpSoftening = 1.0F / 1024.0F;

struct CpPoint {
  float x;
  float y;
};

// Exact: a small whole number times a power of two.
GPUSHARE_HOST_DEVICE inline CpPoint CpPointOf(uint32_t slot, uint32_t point) {
  const uint32_t x = slot % kCpTilesAcross * kCpPointsX + point % kCpPointsX;
  const uint32_t y = slot / kCpTilesAcross * kCpPointsY + point / kCpPointsX;
  return {static_cast<float>(x) * kCpSpacing - 1.0F, static_cast<float>(y) * kCpSpacing - 1.0F};
}

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_CP_H_
