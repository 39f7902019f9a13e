// Calibration: measures kernels and primitives of one device and writes a profile of them.
//
//   CalibrationOptions options;
//   options.output_path = "h200.json";
//   absl::StatusOr<CalibrationResult> result = Calibrate(device, base, items, options);
//
// It runs instead of the scheduler, never beside it: it has the device for itself, runs on the
// caller's thread and blocks for seconds. It works on every core::Device; the tests run it on the
// simulated device, whose truth is known. Invariants:
// - Every wait is bounded.
// - A stage of a kernel is measured completely or not at all.
// - What can be refused is refused before the first measurement, and no measurement is kept that
//   the reader of profiles would refuse.
// - Until everything is measured a checkpoint is on disk; a later call with `resume` continues it.
// docs/calibration.md explains what is measured and how.

#ifndef GPUSHARE_SRC_CALIBRATION_CALIBRATION_H_
#define GPUSHARE_SRC_CALIBRATION_CALIBRATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "src/calibration/base/item.h"
#include "src/calibration/base/measurement.h"
#include "src/calibration/base/options.h"
#include "src/core/seams/device.h"
#include "src/models/profile/profile.h"

namespace gpushare::models {

struct CalibrationResult {
  Profile profile;
  std::vector<KernelMeasurement> kernels;  // those that were reached, in the order of the items
  std::vector<PairMeasurement> pairs;      // of every graph or library call and evictable kernel
  int32_t kept = 0;                        // kernels that come from the checkpoint
  std::vector<std::string> notes;  // what could not be measured or was dropped, one sentence each
  // What the time did not reach, or what gave no usable sample: kernels, "a | b" on partitions,
  // "a + b" on the same SMs, fused kernels. If not empty, the checkpoint stays for `resume`.
  std::vector<std::string> not_reached;
};

// `base` supplies what is not measured: the demands of the kernels, the sizes of the GPU, and, if
// it describes the same GPU, the records of other kernels. On success the profile is at
// output_path, and the checkpoint is gone unless something was not reached.
// Threads: the caller's; nobody else uses the device. Blocks: yes. Errors: INVALID_ARGUMENT
// options or items; CANCELLED; DEADLINE_EXCEEDED a launch hangs, and its lane is given up;
// UNAVAILABLE the device is lost; FAILED_PRECONDITION or DATA_LOSS the checkpoint is of another GPU
// or corrupt.
absl::StatusOr<CalibrationResult> Calibrate(core::Device& device, const Profile& base,
                                            absl::Span<const CalibrationItem> items,
                                            const CalibrationOptions& options);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_CALIBRATION_CALIBRATION_H_
