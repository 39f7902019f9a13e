// Seeded values that the GPU and the CPU compute alike: every input of the catalogue's workloads.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_HASH_H_
#define GPUSHARE_BENCHMARKS_KERNELS_HASH_H_

#include <cmath>
#include <cstdint>

#include "kernels/host_device.h"

namespace gpushare::kernels {

// MurmurHash3's finalizer over both numbers.
GPUSHARE_HOST_DEVICE inline uint32_t Hash(uint32_t seed, uint32_t index) {
  uint32_t h = index * 0x9E3779B1U + seed * 0x85EBCA77U + 0x27D4EB2FU;
  h ^= h >> 16;
  h *= 0x85EBCA6BU;
  h ^= h >> 13;
  h *= 0xC2B2AE35U;
  h ^= h >> 16;
  return h;
}

// Uniform in [low, high). One fused multiply-add on either side, so the bits are the same.
GPUSHARE_HOST_DEVICE inline float Uniform(uint32_t seed, uint32_t index, float low, float high) {
  constexpr float kUnit = 1.0F / 16777216.0F;  // 2^-24
  const float unit = static_cast<float>(Hash(seed, index) >> 8) * kUnit;
  return fmaf(high - low, unit, low);
}

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_HASH_H_
