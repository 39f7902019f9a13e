// The smallest slice of a kernel whose overhead is small enough (Kernelet 4.1).
//
// A slice is a part of the original grid, launched behind the slice before it. Threads: one.

#ifndef GPUSHARE_SRC_CALIBRATION_SLICE_H_
#define GPUSHARE_SRC_CALIBRATION_SLICE_H_

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "src/calibration/calibration.h"
#include "src/calibration/timing.h"
#include "src/core/seams/device.h"

namespace gpushare::models {

struct SliceOptions {
  core::LaneIndex lane = core::kNoLane;
  double overhead_max = 0.02;
  int32_t repeats = 3;
  std::function<bool()> time_left;  // asked from the second sample of a size on
};

struct SliceChoice {
  int64_t block_tasks = 0;  // 0: no slice keeps the limit
  double overhead = 0;      // of the last size that was looked at, if none does; always finite
  int dropped = 0;          // samples that no slice can have
};

// Whether a slice can cost so much more than its share of the whole task, as a part of it. Below,
// slices would be more than twice as fast as the same block tasks in one launch; above, the host
// stood still. Both are hiccups of the host in one of the three times that a sample is made of.
bool IsSliceOverhead(double overhead);

// Sizes are multiples of the SM count, up to half of the sample task. The overhead of a size is the
// median of samples that are possible; a size without one counts as too slow.
absl::StatusOr<SliceChoice> FindSmallestSlice(LaunchTimer& timer, const CalibrationItem& item,
                                              const SliceOptions& options);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_CALIBRATION_SLICE_H_
