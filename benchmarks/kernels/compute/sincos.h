// Parameters of the sincos kernels, and the seeds of a thread (the CPU's reference uses them too).
//
// Each thread adds cos and sin of an arithmetic progression of phases, as mri-q does for a part of
// a voxel's sum. A phase is a 23-bit fraction of a turn, so that it is exact however long the
// progression is.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_SINCOS_H_
#define GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_SINCOS_H_

#include <cstdint>

#include "benchmarks/kernels/hash.h"

namespace gpushare::kernels {

struct SincosParams {
  float* out;     // cos and sin sums, pairs: sincos ring * 8, sums over a warp; steps ring * 256
  uint32_t ring;  // block task b computes slot b % ring: one buffer for any duration
  uint32_t iterations;  // of a block task, or of one step
  uint32_t steps;       // sincos_steps only: steps of a block task
  uint32_t seed;
};

constexpr uint32_t kPhaseBits = 23;
constexpr uint32_t kPhaseMask = (1U << kPhaseBits) - 1;

GPUSHARE_HOST_DEVICE inline uint32_t SincosFirstPhase(uint32_t seed, uint32_t thread) {
  return Hash(seed, thread) & kPhaseMask;
}

// Between 0.1 and 0.9 of a turn: the sums then stay below 1 / sin(0.1 pi) = 3.3, however long they
// are.
GPUSHARE_HOST_DEVICE inline uint32_t SincosPhaseStep(uint32_t seed, uint32_t thread) {
  return 838861U + Hash(seed ^ 0x5BD1E995U, thread) % 6710886U;
}

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_SINCOS_H_
