// Arithmetic on times in which kNever means "no bound" and stays.
//
// Sums and differences saturate instead of overflowing. Pure; threads: any.

#ifndef GPUSHARE_SRC_CORE_BASE_SATURATING_H_
#define GPUSHARE_SRC_CORE_BASE_SATURATING_H_

#include <algorithm>
#include <cstdint>
#include <limits>

#include "src/core/base/types.h"

namespace gpushare::core {

inline constexpr int64_t kLeastNs = std::numeric_limits<int64_t>::min();

// kNever stays kNever: "no bound" less anything is no bound. Otherwise the difference is clamped to
// the range of int64 and does not reach kNever.
constexpr int64_t SaturatingSubtract(int64_t from, int64_t amount) {
  if (from == kNever) return kNever;
  int64_t difference = 0;
  if (__builtin_sub_overflow(from, amount, &difference)) {
    return amount > 0 ? kLeastNs : kNever - 1;
  }
  return std::min(difference, kNever - 1);
}

// kNever when either is kNever; for amounts >= 0 the sum is clamped to kNever.
constexpr int64_t SaturatingAdd(int64_t a, int64_t b) {
  if (a == kNever || b == kNever) return kNever;
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return a > 0 ? kNever : kLeastNs;
  return sum;
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_BASE_SATURATING_H_
