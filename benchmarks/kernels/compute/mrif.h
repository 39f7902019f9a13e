// Parameters of mrif (Parboil's MRI gridding): samples of k-space at any place, spread over the
// cells of a grid by a window. Each cell gathers from the bins around it, so that sums have a fixed
// order.
//
// Lengths are in window radii, and a bin is one radius wide. The grid is a rod of regions along x,
// one a slot, of 2 x 2 bins and 32 x 32 cells; a region's samples are those of the 4 x 4 bins
// around it. With s = 1 - distance^2, where that is positive, the weight is a polynomial of s: the
// first terms of a Kaiser-Bessel window, I0(beta sqrt(s)) - 1 for beta = 2.5, which ends at the
// radius.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_MRIF_H_
#define GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_MRIF_H_

#include <cstdint>

#include "benchmarks/kernels/hash.h"

namespace gpushare::kernels {

struct MrifParams {
  const float* samples;  // x, y in the bin, real and imaginary part + 1/2, all from 0 to 1
  float* out;            // complex numbers: ring regions of 1024 cells, x fastest
  uint32_t ring;         // block task b computes slot b % ring
  uint32_t samples_per_bin;
};

constexpr uint32_t kMrifCellsAcross = 32;  // in x and in y
constexpr uint32_t kMrifCells = kMrifCellsAcross * kMrifCellsAcross;
constexpr uint32_t kMrifCellsPerThread = 4;  // eight rows apart
constexpr float kMrifSpacing = 0.0625F;
constexpr uint32_t kMrifBinsY = 4;
constexpr uint32_t kMrifBinsOfRegion = 2 * kMrifBinsY;  // the next region begins so many later
constexpr uint32_t kMrifBins = 4 * kMrifBinsY;          // that a region sees

// (beta^2 / 4)^k / (k!)^2 for k = 1, 2, 3.
constexpr float kMrifWindow1 = 1.5625F;
constexpr float kMrifWindow2 = 0.61035F;
constexpr float kMrifWindow3 = 0.10596F;

// Bins are stored y, x, y fastest: region r begins with bin r * kMrifBinsOfRegion, and there are
// ring * kMrifBinsOfRegion + 2 * kMrifBinsY.
struct MrifBinOrigin {
  float x;
  float y;
};

// Lower corner of the region's bin 0 to 15, from the region's own.
GPUSHARE_HOST_DEVICE inline MrifBinOrigin MrifOriginOf(uint32_t bin) {
  return {static_cast<float>(bin / kMrifBinsY) - 1.0F, static_cast<float>(bin % kMrifBinsY) - 1.0F};
}

// Coordinate of cell 0, 1, 2 .. in its region; exact.
GPUSHARE_HOST_DEVICE inline float MrifCell(uint32_t cell) {
  return (static_cast<float>(cell) + 0.5F) * kMrifSpacing;
}

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_MRIF_H_
