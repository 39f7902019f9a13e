// A layout: where LC is routed (place 0, or the LC side of a split) and on which sides each BE
// kernel may run. Pure data.

#ifndef GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_LAYOUT_LAYOUT_H_
#define GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_LAYOUT_LAYOUT_H_

#include <array>
#include <cstdint>

#include "src/core/base/limits.h"
#include "src/core/base/tuning.h"
#include "src/core/base/types.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

// kBest compares all mechanisms; the others force one, also where LC apps then miss their bounds.
enum class Mechanism : uint8_t { kBest, kEvict, kPartition, kElastic };

inline constexpr int32_t kWholeLayout = -1;    // else an index into snapshot.splits
inline constexpr int32_t kUnknownLayout = -2;  // no running task shows it

// Where a BE kernel may run under a split.
enum class Sides : uint8_t {
  kNone = 0,    // LC beside it would miss its bound
  kBeSide = 1,  // on the BE side always
  kBoth = 2,    // and on the LC side while no query is active
};

struct Layout {
  int32_t split = kWholeLayout;
  std::array<Sides, kMaxKernels> sides;  // by kernel index; meaningful under a split
  // Of the best layout of those that were compared, and of the next one; kUnknownLayout: none. With
  // the bonus of the layout in force.
  double value = 0;
  int32_t runner_up = kUnknownLayout;
  double runner_up_value = 0;
  double whole_value = 0;     // of the whole device, without a bonus
  int32_t trial_kernel = -1;  // nobody measured it on this split, which is on trial; -1: none
  double trial_value = 0;     // what the trial hopes for
};

// The value of the whole device where BE work beside LC work gains this share of LC's time. Without
// splits nobody asked for the value of the whole device alone.
inline double SharedWholeValue(const Snapshot& snapshot, const Layout& layout, double load,
                               double gain) {
  return (snapshot.splits.empty() ? 1 - load : layout.whole_value) + load * gain;
}
// Whether it is the best choice: near a tie with a split of `split_value`, the layout in force is.
inline bool IsBestShared(const Layout& layout, double split_value, bool in_force, double value) {
  const double bonus = in_force ? kLayoutHysteresis : 0;
  return layout.split == kWholeLayout || value + bonus > split_value;
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_LAYOUT_LAYOUT_H_
