// Parameters of particle_filter (Rodinia's): 1024 particles follow a bright disc through the frames
// of a film. In each frame a particle moves, weighs the pixels around it, and systematic resampling
// draws the particles of the next frame from the cumulated weights.
//
// All of it is in whole numbers, so that the CPU finds the same particles: with rounded weights a
// draw on the border of two particles would go either way. Rodinia's log-likelihood is linear in
// the pixels; its exponential is the straight pieces between the powers of two.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_PARTICLE_FILTER_H_
#define GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_PARTICLE_FILTER_H_

#include <cstdint>

#include "benchmarks/kernels/hash.h"

namespace gpushare::kernels {

struct ParticleFilterParams {
  const float* film;  // 0 to 1, frame after frame of 64 x 64 pixels, the same for all slots
  uint32_t* out;      // a slot's sums of x and y, its last sum of weights, a sum of hashes
  uint32_t ring;      // block task b computes slot b % ring
  uint32_t frames;
  uint32_t film_frames;  // frame f is number f % film_frames of the film
  uint32_t seed;
};

constexpr uint32_t kFilterParticles = 1024;
constexpr uint32_t kFilterWidth = 64;  // and height
constexpr uint32_t kFilterPixels = kFilterWidth * kFilterWidth;
constexpr uint32_t kFilterProbes = 16;  // pixels that a particle weighs
constexpr uint32_t kFilterSearchSteps = 10;

struct FilterPlace {
  uint32_t x;
  uint32_t y;
};

// Where the particle starts: both coordinates are in [0, 64).
GPUSHARE_HOST_DEVICE inline FilterPlace FilterStart(uint32_t seed, uint32_t particle) {
  const uint32_t hash = Hash(seed, particle);
  return {hash % kFilterWidth, (hash >> 16) % kFilterWidth};
}

// Moves a particle with the disc and by up to three pixels to either side. The film's edges wrap
// around.
GPUSHARE_HOST_DEVICE inline FilterPlace FilterMove(const FilterPlace& place, uint32_t seed,
                                                   uint32_t particle, uint32_t frame) {
  const uint32_t hash = Hash(seed + 0x9E37U * (frame + 1), particle);
  return {(place.x + 1 + (hash & 3) - (hash >> 2 & 3)) % kFilterWidth,
          (place.y + 1 + (hash >> 4 & 3) - (hash >> 6 & 3)) % kFilterWidth};
}

// Noise below 128, and 100 more in the disc, which moves a pixel to the right and down each frame.
GPUSHARE_HOST_DEVICE inline uint32_t FilterPixel(float noise, uint32_t pixel, uint32_t frame) {
  const int32_t dx = static_cast<int32_t>(pixel % kFilterWidth) -
                     static_cast<int32_t>((frame + 12) % kFilterWidth);
  const int32_t dy = static_cast<int32_t>(pixel / kFilterWidth) -
                     static_cast<int32_t>((frame + 20) % kFilterWidth);
  constexpr int32_t kSquaredRadius = 36;
  return static_cast<uint32_t>(noise * 128.0F) + (dx * dx + dy * dy <= kSquaredRadius ? 100U : 0U);
}

// The pixel of probe 0 to 15: a square of every other pixel around the particle.
GPUSHARE_HOST_DEVICE inline uint32_t FilterProbe(const FilterPlace& place, uint32_t probe) {
  const uint32_t x = (place.x + probe % 4 * 2 - 3) % kFilterWidth;
  const uint32_t y = (place.y + probe / 4 * 2 - 3) % kFilterWidth;
  return y * kFilterWidth + x;
}

// About 2^(sum / 224 + 4), in straight pieces; the sum of all pixels is 16 * 227 at most, so that
// 1024 weights add up to less than 2^32.
GPUSHARE_HOST_DEVICE inline uint32_t FilterWeight(uint32_t pixel_sum) {
  const uint32_t sixteenths = pixel_sum / 14;
  return (16 + sixteenths % 16) << (sixteenths / 16);
}

// Where in the cumulated weights draw 0 to 1023 falls: below the sum of all of them.
GPUSHARE_HOST_DEVICE inline uint32_t FilterDraw(uint32_t seed, uint32_t slot, uint32_t frame,
                                                uint32_t draw, uint32_t all_weights) {
  constexpr uint32_t kParts = 64;  // of the distance between two draws; 64 * 1024 is 2^16
  const uint32_t offset = Hash(seed ^ 0x5BE0CD19U, slot * 65536 + frame) % kParts;
  return static_cast<uint32_t>((static_cast<uint64_t>(all_weights) * (draw * kParts + offset)) >>
                               16);
}

GPUSHARE_HOST_DEVICE inline uint32_t FilterHash(const FilterPlace& place, uint32_t particle) {
  return Hash(place.y * kFilterWidth + place.x, particle);
}

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_PARTICLE_FILTER_H_
