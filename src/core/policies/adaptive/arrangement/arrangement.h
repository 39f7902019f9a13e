// An arrangement: where LC is routed (place 0, or the LC side of a split) and on which sides each
// BE kernel may run. Pure data.

#ifndef GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_ARRANGEMENT_ARRANGEMENT_H_
#define GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_ARRANGEMENT_ARRANGEMENT_H_

#include <array>
#include <cstdint>

#include "src/core/base/limits.h"
#include "src/core/base/tuning.h"
#include "src/core/base/types.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

// kBest compares all mechanisms; the others force one, also where LC apps then miss their bounds.
enum class Mechanism : uint8_t { kBest, kEvict, kPartition, kElastic };

inline constexpr int32_t kNoSplit = -1;       // else an index into snapshot.splits
inline constexpr int32_t kUnknownSplit = -2;  // no running task shows it

// Where a BE kernel may run under a split.
enum class Sides : uint8_t {
  kNone = 0,    // LC beside it would miss its bound
  kBeSide = 1,  // on the BE side always
  kBoth = 2,    // and on the LC side while no query is active
};

struct Arrangement {
  int32_t split = kNoSplit;
  std::array<Sides, kMaxKernels> sides;  // by kernel index; meaningful under a split
  // Of the best arrangement of those that were compared, and of the next one; kUnknownSplit: none.
  // With the bonus of the arrangement in force.
  double value = 0;
  int32_t runner_up = kUnknownSplit;
  double runner_up_value = 0;
  double whole_value = 0;     // of the whole device, without a bonus
  int32_t trial_kernel = -1;  // nobody measured it on this split, which is on trial; -1: none
  double trial_value = 0;     // what the trial hopes for
};

// What BE work that stays beside queries keeps to.
struct BesideTerms {
  int64_t budget_ns = 0;   // for what is on the device when a query comes
  int64_t reserve_ns = 0;  // of each headroom, for errors of predictions
  // Graphs in segments are on the device or may be: a query that comes leaves them there, and the
  // next plan evicts the workers.
  bool any_segments = false;
  bool any_grids = false;  // or kernels and library calls, as ordinary grids
};

// The value of the whole device where BE work beside LC work gains this share of LC's time. Without
// splits nobody asked for the value of the whole device alone.
inline double SharedWholeValue(const Snapshot& snapshot, const Arrangement& arrangement,
                               double load, double gain) {
  return (snapshot.splits.empty() ? 1 - load : arrangement.whole_value) + load * gain;
}
// Whether it is the best choice: near a tie with a split of `split_value`, the arrangement in force
// is.
inline bool IsBestShared(const Arrangement& arrangement, double split_value, bool in_force,
                         double value) {
  const double bonus = in_force ? kLayoutHysteresis : 0;
  return arrangement.split == kNoSplit || value + bonus > split_value;
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_ARRANGEMENT_ARRANGEMENT_H_
