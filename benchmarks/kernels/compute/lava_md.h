// Parameters of lava_md (Rodinia's lavaMD): potential and force on each particle of a box, of all
// particles of the box and its 26 neighbours.
//
// Boxes are one unit wide and have 64 particles. They form a rod of 3 x 3 along x, of which the
// middle ones are computed. With u = kLavaDecay * distance^2 a particle adds charge * 2^-u to the
// potential and charge * 2^-u * (place - its place) to the force; the particle itself counts too,
// as in Rodinia's.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_LAVA_MD_H_
#define GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_LAVA_MD_H_

#include <cstdint>

#include "benchmarks/kernels/hash.h"

namespace gpushare::kernels {

struct LavaMdParams {
  const float* particles;  // x, y, z in the box and charge + 1/2, all from 0 to 1; box by box
  float* out;              // potential and force of each particle, box by box
  uint32_t ring;           // block task b computes slot b % ring
  uint32_t boxes;          // of a block task, one after another
};

constexpr uint32_t kLavaParticles = 64;
constexpr uint32_t kLavaBoxesInSlice = 9;  // of one x
constexpr uint32_t kLavaHomeInSlice = 4;
constexpr uint32_t kLavaNeighbours = 27;
constexpr float kLavaDecay = 0.75F;

// Boxes are stored z, y, x, z fastest, so that the neighbours of a box lie side by side: those of
// the middle box i begin with box i * kLavaBoxesInSlice, and there are (i's + 2) slices.
struct LavaMdOrigin {
  float x;
  float y;
  float z;
};

// Lower corner of neighbour 0 to 26, from the home box's own; number 13 is the home box.
GPUSHARE_HOST_DEVICE inline LavaMdOrigin LavaMdOriginOf(uint32_t neighbour) {
  return {static_cast<float>(neighbour / 9) - 1.0F, static_cast<float>(neighbour / 3 % 3) - 1.0F,
          static_cast<float>(neighbour % 3) - 1.0F};
}

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_LAVA_MD_H_
