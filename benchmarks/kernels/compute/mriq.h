// Parameters of mriq (Parboil's MRI-Q): for each voxel the sum over all k-space samples of
// magnitude * exp(2 pi i k . x), cosine and sine parts.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_MRIQ_H_
#define GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_MRIQ_H_

#include <cstdint>

#include "benchmarks/kernels/hash.h"

namespace gpushare::kernels {

struct MriqParams {
  const float* samples;  // kx, ky, kz in turns a unit of length, magnitude; 16-byte aligned
  float* out;            // cosine and sine sum of each voxel, ring * 256
  uint32_t ring;         // block task b computes slot b % ring
  uint32_t sample_count;
  uint32_t seed;
};

constexpr uint32_t kMriqTile = 256;  // samples that a block holds in shared memory
constexpr uint32_t kMriqUnroll = 4;  // sample_count is a multiple of it
constexpr float kMriqSampleMax = 4.0F;

// Coordinate 0, 1 or 2 of a voxel, within half a unit of the origin: k . x stays below six turns.
GPUSHARE_HOST_DEVICE inline float MriqCoordinate(uint32_t seed, uint32_t voxel, uint32_t axis) {
  return Uniform(seed ^ 0x3C6EF372U, 4 * voxel + axis, -0.5F, 0.5F);
}

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_MRIQ_H_
