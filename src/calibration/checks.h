// What a calibration refuses before its first measurement: options, items, fused kernels, and a
// number of records that no profile or checkpoint would hold.
//
// Everything that can be known at the start is found here, so that nothing is refused after minutes
// of measuring. Pure, but for a look at the output path. Threads: any.

#ifndef GPUSHARE_SRC_CALIBRATION_CHECKS_H_
#define GPUSHARE_SRC_CALIBRATION_CHECKS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "src/calibration/calibration.h"
#include "src/core/seams/device_profile.h"
#include "src/models/profile.h"

namespace gpushare::models {

// A fused kernel is measured at load ratios from 0.1 to 1.9 of a CD part that holds 2: of fewer
// block tasks the first two ratios are one and the same.
inline constexpr int64_t kFusedBlockTasksLeast = 20;

// Bytes that one record takes at most: a line of the checkpoint, an object of the profile.
// Durations have up to 13 digits (an hour), names 64 characters.
inline constexpr int64_t kKernelLineBytes = 3584;
inline constexpr int64_t kPairLineBytes = 704;
inline constexpr int64_t kKernelRecordBytes = 4096;  // its speeds and its record
inline constexpr int64_t kCoResidentRecordBytes = 896;
inline constexpr int64_t kFusedRecordBytes = 1280;

struct CalibrationSize {
  int64_t kernels = 0;
  int64_t pairs = 0;  // on partitions
  int64_t co_resident = 0;
  int64_t fused = 0;
  int64_t kept_bytes = 0;  // of what the profile has beside them
};

// INVALID_ARGUMENT with the value and what is allowed.
absl::Status CheckCalibration(absl::Span<const CalibrationItem> items,
                              const CalibrationOptions& options);

// That a profile of `device` can hold the described items, each as it is given, and all of them
// together with what it has of `base`: the bytes of that profile. INVALID_ARGUMENT where none can.
absl::StatusOr<int64_t> CheckRecords(const core::DeviceProfile& device, const Profile& base,
                                     absl::Span<const CalibrationItem> items);

// INVALID_ARGUMENT where the checkpoint or the profile of so many records might be larger than what
// is read back.
absl::Status CheckSize(const CalibrationSize& size);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_CALIBRATION_CHECKS_H_
