// Parameters of cutcp (Parboil's cutoff Coulomb potential): potentials on a lattice of the atoms
// within the cutoff, gathered from bins.
//
// Lengths are in cutoffs, and a bin is one cutoff wide. The lattice is a rod of regions along x,
// one a slot, of 1 x 1 x 2 bins and 8 x 8 x 16 points; a region's atoms are those of the 3 x 3 x 4
// bins around it. With s = distance^2 + kCutcpSoftening, an atom adds charge * (1 - s)^2 / sqrt(s)
// where s < 1. The softening keeps an atom at a lattice point from deciding about all errors.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_CUTCP_H_
#define GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_CUTCP_H_

#include <cstdint>

#include "benchmarks/kernels/hash.h"

namespace gpushare::kernels {

struct CutcpParams {
  const float* atoms;  // x, y, z in the bin and charge + 1/2, all from 0 to 1; bin by bin
  float* out;          // ring regions of 1024 points, x fastest
  uint32_t ring;       // block task b computes slot b % ring
  uint32_t atoms_per_bin;
};

constexpr uint32_t kCutcpPointsAcross = 8;  // in x and in y
constexpr uint32_t kCutcpPointsDeep = 16;   // in z
constexpr uint32_t kCutcpPointsInPlane = kCutcpPointsAcross * kCutcpPointsAcross;
constexpr uint32_t kCutcpPoints = kCutcpPointsInPlane * kCutcpPointsDeep;
constexpr uint32_t kCutcpPointsPerThread = 4;
constexpr float kCutcpSpacing = 0.125F;
constexpr float kCutcpSoftening = 1.0F / 1024.0F;
constexpr uint32_t kCutcpBinsY = 3;
constexpr uint32_t kCutcpBinsZ = 4;
constexpr uint32_t kCutcpBinsInSlice = kCutcpBinsY * kCutcpBinsZ;  // of one x
constexpr uint32_t kCutcpBins = 3 * kCutcpBinsInSlice;             // that a region sees

// Bins are stored z, y, x, z fastest, so that those of a region lie side by side: region r begins
// with bin r * kCutcpBinsInSlice, and there are (ring + 2) * kCutcpBinsInSlice.
struct CutcpBinOrigin {
  float x;
  float y;
  float z;
};

// Lower corner of the region's bin 0..kCutcpBins - 1, from the region's own.
GPUSHARE_HOST_DEVICE inline CutcpBinOrigin CutcpOriginOf(uint32_t bin) {
  const uint32_t x = bin / kCutcpBinsInSlice;
  const uint32_t y = bin % kCutcpBinsInSlice / kCutcpBinsZ;
  const uint32_t z = bin % kCutcpBinsZ;
  return {static_cast<float>(x) - 1.0F, static_cast<float>(y) - 1.0F, static_cast<float>(z) - 1.0F};
}

// Coordinate of lattice point 0, 1, 2 .. in its region; exact.
GPUSHARE_HOST_DEVICE inline float CutcpPoint(uint32_t point) {
  return (static_cast<float>(point) + 0.5F) * kCutcpSpacing;
}

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_CUTCP_H_
