// An arrangement: where LC is routed (place 0, or the LC side of a split) and on which sides each
// BE kernel may run. Pure data.

#ifndef GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_ARRANGEMENT_ARRANGEMENT_H_
#define GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_ARRANGEMENT_ARRANGEMENT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "src/core/base/limits.h"
#include "src/core/base/types.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

// kBest compares all mechanisms; the others force one, also where LC apps then miss their bounds.
enum class Mechanism : uint8_t { kBest, kEvict, kPartition, kElastic };

inline constexpr size_t kWordBits = std::numeric_limits<uint64_t>::digits;  // of a mask

inline constexpr int32_t kNotCompared = -2;  // for a split: no other arrangement was compared

// Where a BE kernel may run under a split.
enum class Sides : uint8_t {
  kNone = 0,    // LC beside it would miss its bound
  kBeSide = 1,  // on the BE side always
  kBoth = 2,    // and on the LC side while no query is active
};

struct Arrangement {
  int32_t split = kNoSplit;
  std::array<Sides, kMaxKernels> sides;  // by kernel index; meaningful under a split
  // Of the best arrangement of those that were compared, and of the next one; kNotCompared: none.
  // With the bonus of the arrangement in force. Under a trial `value` is that of the best known
  // one, which is the next one.
  double value = 0;
  int32_t runner_up = kNotCompared;
  double runner_up_value = 0;
  LatencyShift shift;  // of the same two
  LatencyShift runner_up_shift;
  double whole_value = 0;     // of the whole device, without a bonus
  int32_t trial_kernel = -1;  // nobody measured it on this split, which is on trial; -1: none
  double trial_value = 0;     // what the trial hopes for
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_ARRANGEMENT_ARRANGEMENT_H_
