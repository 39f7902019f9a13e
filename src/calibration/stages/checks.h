// What a calibration refuses before its first measurement: bad options, items and fused kernels,
// and more records than a profile or checkpoint can hold.
//
// Everything that is known at the start is checked here, so that nothing is refused after minutes
// of measuring. Reads the file system only to check the output path. Threads: any.

#ifndef GPUSHARE_SRC_CALIBRATION_STAGES_CHECKS_H_
#define GPUSHARE_SRC_CALIBRATION_STAGES_CHECKS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "src/calibration/base/item.h"
#include "src/calibration/base/options.h"
#include "src/core/seams/device_profile.h"
#include "src/models/profile/profile.h"

namespace gpushare::models {

// A fused kernel is measured at load ratios from 0.1 to 1.9, and the CD part's sample task is worth
// 2. With fewer block tasks the two lowest ratios would be the same number of them.
inline constexpr int64_t kFusedBlockTasksLeast = 20;

// The most bytes of one record: a line of the checkpoint, or an object of the profile.
// Durations have up to 13 digits (an hour), names 64 characters.
inline constexpr int64_t kKernelLineBytes = 4608;
inline constexpr int64_t kPairLineBytes = 704;
inline constexpr int64_t kKernelRecordBytes = 4096;  // its speeds and its record
inline constexpr int64_t kCoResidentRecordBytes = 896;
inline constexpr int64_t kFusedRecordBytes = 1280;

struct CalibrationSize {
  int64_t kernels = 0;
  int64_t pairs = 0;  // on partitions
  int64_t co_resident = 0;
  int64_t fused = 0;
  int64_t kept_bytes = 0;  // of the rest of the profile
};

// INVALID_ARGUMENT names the value and what is allowed.
absl::Status CheckCalibration(absl::Span<const CalibrationItem> items,
                              const CalibrationOptions& options);

// Bytes of a profile of `device` with the described items, as they are given, and what it takes
// over from `base`. INVALID_ARGUMENT if no profile can hold one of the items, or all of them.
absl::StatusOr<int64_t> CheckRecords(const core::DeviceProfile& device, const Profile& base,
                                     absl::Span<const CalibrationItem> items);

// INVALID_ARGUMENT if the checkpoint or the profile of so many records might be larger than its
// reader accepts.
absl::Status CheckSize(const CalibrationSize& size);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_CALIBRATION_STAGES_CHECKS_H_
