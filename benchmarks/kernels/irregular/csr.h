// The shape of seeded sparse rows (CSR): lengths differ from row to row, and every group of rows
// has the same sum, so that where a row begins needs no pass over all rows.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_IRREGULAR_CSR_H_
#define GPUSHARE_BENCHMARKS_KERNELS_IRREGULAR_CSR_H_

#include <cstdint>

#include "benchmarks/kernels/hash.h"

namespace gpushare::kernels {

// Lengths of a group of kGroup rows (a power of two) are a permutation of kShortest,
// kShortest + 1, .. kShortest + kGroup - 1.
template <uint32_t kGroupRows, uint32_t kShortestRow>
struct CsrShape {
  static constexpr uint32_t kGroup = kGroupRows;
  static constexpr uint32_t kShortest = kShortestRow;
  static constexpr uint32_t kLongest = kShortest + kGroup - 1;
  static constexpr uint32_t kGroupElements = kGroup * kShortest + kGroup * (kGroup - 1) / 2;
  static_assert((kGroup & (kGroup - 1)) == 0, "an odd factor permutes the residues of 2^n");

  GPUSHARE_HOST_DEVICE static uint32_t Length(uint32_t seed, uint32_t row) {
    const uint32_t hash = Hash(seed, row / kGroup);
    return kShortest + ((row * (hash | 1) + (hash >> 16)) & (kGroup - 1));
  }
  GPUSHARE_HOST_DEVICE static uint32_t Begin(uint32_t seed, uint32_t row) {
    const uint32_t group = row / kGroup;
    uint32_t begin = group * kGroupElements;
    for (uint32_t before = group * kGroup; before < row; ++before) begin += Length(seed, before);
    return begin;
  }
};

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_IRREGULAR_CSR_H_
