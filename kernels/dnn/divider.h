// Division by a number that is known at launch only, as one multiplication and one shift: bodies
// that find a channel or a row for every vector they load would else spend more issue slots on the
// division than on the vector.
//
// Exact for every dividend below 2^31. With l = ceil(log2 d) and m = floor(2^(31 + l) / d) + 1, the
// error m * d - 2^(31 + l) is at most d <= 2^l, so the quotient is never one too large.

#ifndef GPUSHARE_KERNELS_DNN_DIVIDER_H_
#define GPUSHARE_KERNELS_DNN_DIVIDER_H_

#include <cstdint>

#include "kernels/host_device.h"

namespace gpushare::kernels {

struct Divider {
  uint32_t divisor;
  uint32_t multiplier;
  uint32_t shift;

  GPUSHARE_HOST_DEVICE uint32_t Quotient(uint32_t dividend) const {
    return static_cast<uint32_t>((static_cast<uint64_t>(dividend) * multiplier) >> shift);
  }
  GPUSHARE_HOST_DEVICE uint32_t Remainder(uint32_t dividend) const {
    return dividend - Quotient(dividend) * divisor;
  }
};

// `divisor`: 1 to 2^31.
inline Divider MakeDivider(uint32_t divisor) {
  uint32_t log = 0;
  while ((uint64_t{1} << log) < divisor) ++log;
  const uint32_t shift = 31 + log;
  const uint64_t multiplier = (uint64_t{1} << shift) / divisor + 1;
  return {divisor, static_cast<uint32_t>(multiplier), shift};
}

}  // namespace gpushare::kernels

#endif  // GPUSHARE_KERNELS_DNN_DIVIDER_H_
