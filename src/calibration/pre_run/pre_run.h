// A pre-run: runs some block tasks of one kernel and counts what they do (Kernelet 4.4).
//
//   CalibrationOptions options;  // of which the hang limit and the cancellation count
//   absl::StatusOr<PreRunResult> result = PreRun(device, item, options);
//
// It has the device for itself, runs on the caller's thread and blocks for about a second. It works
// on every core::Device that counts. Threads: one.

#ifndef GPUSHARE_SRC_CALIBRATION_PRE_RUN_PRE_RUN_H_
#define GPUSHARE_SRC_CALIBRATION_PRE_RUN_PRE_RUN_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "src/calibration/base/item.h"
#include "src/calibration/base/options.h"
#include "src/core/seams/device.h"
#include "src/core/seams/kernel.h"
#include "src/core/seams/launch_counts.h"

namespace gpushare::models {

// A launch that is counted takes about so long. The profile's counters are of launches of 2 ms:
// long against the ramps of a launch (benchmarks/gpu/counters_benchmark.cc).
inline constexpr double kPreRunNs = 2e6;
// A sample that is at most so much longer runs whole, as an ordinary grid.
inline constexpr double kPreRunWholeNs = 2 * kPreRunNs;

struct PreRunResult {
  core::KernelCounters counters;
  double saturating_occupancy = 1;  // 1 without a worker form
  int64_t block_tasks = 0;          // of one launch that was counted
};

// Errors: INVALID_ARGUMENT the item; those of Device::CountLaunches; DEADLINE_EXCEEDED a launch
// hangs; UNAVAILABLE the device is lost; FAILED_PRECONDITION the sample takes no time.
absl::StatusOr<PreRunResult> PreRun(core::Device& device, const CalibrationItem& item,
                                    const CalibrationOptions& options);

// What the counts of `block_tasks` block tasks say of the kernel. A ratio over no access is 0.
core::KernelCounters CountersOf(const core::LaunchCounts& counts, int64_t block_tasks);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_CALIBRATION_PRE_RUN_PRE_RUN_H_
