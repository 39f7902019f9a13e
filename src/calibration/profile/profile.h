// The profile that a calibration writes: descriptions of the measured kernels, records, and what a
// cost model learns from them.
//
// The reader of profiles checks each record (CheckReadable) before it is kept, so that no single
// measurement can make the whole profile unreadable. Threads: one.

#ifndef GPUSHARE_SRC_CALIBRATION_PROFILE_PROFILE_H_
#define GPUSHARE_SRC_CALIBRATION_PROFILE_PROFILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "src/calibration/base/measurement.h"
#include "src/calibration/base/notes.h"
#include "src/core/seams/device_profile.h"
#include "src/core/seams/kernel.h"
#include "src/models/profile/calibration_record.h"
#include "src/models/profile/profile.h"

namespace gpushare::models {

// OK if a profile of this could be read back, else the error of its reader.
absl::Status CheckReadable(const core::DeviceProfile& device);
absl::Status CheckReadable(const core::DeviceProfile& device, const core::KernelDesc& kernel);
absl::Status CheckReadable(const core::DeviceProfile& device, const CalibrationRecord& record);

// `measured`, with the given value and a note in place of each value that the reader refuses.
core::DeviceProfile ReadableDevice(const core::DeviceProfile& measured,
                                   const core::DeviceProfile& given, Notes& notes);

// The PTB overhead, cut to the bounds of a profile.
double RecordedOverhead(const KernelMeasurement& measured);

KernelRecord RecordOf(const KernelMeasurement& measured);

// The item's description with what was measured in place of what was given, or before anything is
// measured.
core::KernelDesc Describe(const core::KernelDesc& given, const KernelMeasurement& measured,
                          const core::DeviceProfile& device);
core::KernelDesc DescribeUnmeasured(const core::KernelDesc& given,
                                    const core::DeviceProfile& device);

// Adds the kernels of `base` that `profile` does not have, if both are of the same GPU: a profile
// is of one GPU. Returns whether they are.
bool TakeOverKernels(const Profile& base, Profile& profile);

// What a cost model learns from the measurements, so that the first predictions are trained.
std::string Learn(const Profile& profile, absl::Span<const KernelMeasurement> measured,
                  absl::Span<const PairMeasurement> pairs);

// The records of the kernels that are measured, and those of other kernels in `base` (may be null).
CalibrationRecord MergeRecords(const CalibrationRecord& measured,
                               absl::Span<const KernelMeasurement> kernels,
                               const CalibrationRecord* base);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_CALIBRATION_PROFILE_PROFILE_H_
