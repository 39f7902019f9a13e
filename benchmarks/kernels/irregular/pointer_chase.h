// Parameters of the pointer chase (PC): warps follow links through a list far larger than L2. The
// list is one cycle through all nodes, in an order that scatters them over memory.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_IRREGULAR_POINTER_CHASE_H_
#define GPUSHARE_BENCHMARKS_KERNELS_IRREGULAR_POINTER_CHASE_H_

#include <cstdint>

#include "benchmarks/kernels/hash.h"

namespace gpushare::kernels {

constexpr uint32_t kChaseNodeBits = 22;
constexpr uint32_t kChaseNodes = 1U << kChaseNodeBits;
constexpr uint32_t kChaseNodeWords = 32;  // a node is 128 bytes, its link is the first word: 512 MB
constexpr uint32_t kChaseWarps = 8;       // of a block task, each with a walk of its own

// The cycle in the order of a linear congruential generator of full period (an odd increment, a
// factor that is 1 modulo 4), and a bijection that scatters its numbers.
struct ChaseCycle {
  uint32_t factor;
  uint32_t increment;
};

GPUSHARE_HOST_DEVICE inline ChaseCycle ChaseCycleOf(uint32_t seed) {
  return {(Hash(seed, 0) & (kChaseNodes - 1) & ~3U) | 1U, Hash(seed, 1) | 1U};
}

// Odd factors and shifts to the right are bijections of 22-bit numbers. A shift by half of the bits
// or more undoes itself.
constexpr uint32_t kChaseOdd = 0x2545F5U;
constexpr uint32_t kChaseShift = kChaseNodeBits / 2;

GPUSHARE_HOST_DEVICE inline uint32_t ChaseScatter(uint32_t number) {
  uint32_t node = number ^ (number >> kChaseShift);
  node = (node * kChaseOdd) & (kChaseNodes - 1);
  return node ^ (node >> kChaseShift);
}

GPUSHARE_HOST_DEVICE inline uint32_t ChaseInverseOdd() {
  uint32_t inverse = kChaseOdd;  // right in 3 bits, and each round doubles them
  for (int round = 0; round < 4; ++round) inverse *= 2U - kChaseOdd * inverse;
  return inverse;
}

GPUSHARE_HOST_DEVICE inline uint32_t ChaseGather(uint32_t node) {
  uint32_t number = node ^ (node >> kChaseShift);
  number = (number * ChaseInverseOdd()) & (kChaseNodes - 1);
  return number ^ (number >> kChaseShift);
}

// The node `links` links after `node`.
GPUSHARE_HOST_DEVICE inline uint32_t ChaseAfter(const ChaseCycle& cycle, uint32_t node,
                                                uint32_t links) {
  // number -> factor * number + increment, composed with itself by squaring.
  uint32_t number = ChaseGather(node);
  uint32_t factor = cycle.factor;
  uint32_t increment = cycle.increment;
  for (; links > 0; links /= 2) {
    if ((links & 1) != 0) number = factor * number + increment;
    increment = factor * increment + increment;
    factor = factor * factor;
  }
  return ChaseScatter(number & (kChaseNodes - 1));
}

GPUSHARE_HOST_DEVICE inline uint32_t ChaseStart(uint32_t seed, uint32_t walk) {
  return Hash(seed + 1, walk) & (kChaseNodes - 1);
}

struct PointerChaseParams {
  const uint32_t* links;  // of node n at n * kChaseNodeWords
  uint32_t* out;          // where each walk ends
  uint32_t hops;          // of a walk
  uint32_t ring;          // block task b walks walks 8 * (b % ring) and the 7 after
  uint32_t seed;
};

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_IRREGULAR_POINTER_CHASE_H_
