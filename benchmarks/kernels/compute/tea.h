// Parameters of tea: each thread enciphers its 8-byte block again and again with the Tiny
// Encryption Algorithm (Wheeler and Needham, 1994), 32 cycles each. The CPU's reference is the same
// function.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_TEA_H_
#define GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_TEA_H_

#include <cstdint>

#include "benchmarks/kernels/hash.h"

namespace gpushare::kernels {

struct TeaKey {
  uint32_t k0;
  uint32_t k1;
  uint32_t k2;
  uint32_t k3;
};

struct TeaParams {
  uint32_t* out;        // two words a warp, the xor of its blocks, ring * 8
  uint32_t ring;        // block task b computes slot b % ring
  uint32_t iterations;  // encipherments in a row
  uint32_t seed;        // word w of the first block of thread t is Hash(seed, 2 t + w)
  TeaKey key;
};

constexpr uint32_t kTeaCycles = 32;
constexpr uint32_t kTeaDelta = 0x9E3779B9U;

struct TeaBlock {
  uint32_t v0;
  uint32_t v1;
};

GPUSHARE_HOST_DEVICE inline TeaBlock TeaEncipher(TeaBlock block, const TeaKey& key) {
  uint32_t sum = 0;
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
  for (uint32_t cycle = 0; cycle < kTeaCycles; ++cycle) {
    sum += kTeaDelta;
    block.v0 += ((block.v1 << 4) + key.k0) ^ (block.v1 + sum) ^ ((block.v1 >> 5) + key.k1);
    block.v1 += ((block.v0 << 4) + key.k2) ^ (block.v0 + sum) ^ ((block.v0 >> 5) + key.k3);
  }
  return block;
}

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_TEA_H_
