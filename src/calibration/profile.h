// The profile that a calibration writes: descriptions of the measured kernels, records, and what a
// cost model learns from them.
//
// The reader of profiles itself judges each record (CheckReadable) before it is kept, so that no
// single measurement can make the whole profile unsavable. Threads: one.

#ifndef GPUSHARE_SRC_CALIBRATION_PROFILE_H_
#define GPUSHARE_SRC_CALIBRATION_PROFILE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "src/calibration/calibration.h"
#include "src/core/seams/device_profile.h"
#include "src/core/seams/kernel.h"
#include "src/models/calibration_record.h"
#include "src/models/profile.h"

namespace gpushare::models {

// Whether a profile of this would be read back; else what its reader says.
absl::Status CheckReadable(const core::DeviceProfile& device);
absl::Status CheckReadable(const core::DeviceProfile& device, const core::KernelDesc& kernel);
absl::Status CheckReadable(const core::DeviceProfile& device, const CalibrationRecord& record);

// `measured`; where its reader refuses a value, the given one, with a note.
core::DeviceProfile ReadableDevice(const core::DeviceProfile& measured,
                                   const core::DeviceProfile& given,
                                   std::vector<std::string>& notes);

KernelRecord RecordOf(const KernelMeasurement& measured);

// The item's description with what was measured in place of what was given, and as it is before
// anything is measured.
core::KernelDesc Describe(const core::KernelDesc& given, const KernelMeasurement& measured,
                          const core::DeviceProfile& device);
core::KernelDesc DescribeUnmeasured(const core::KernelDesc& given,
                                    const core::DeviceProfile& device);

// What a cost model learns from the measurements, so that the first predictions are trained.
std::string Learn(const Profile& profile, absl::Span<const KernelMeasurement> measured,
                  absl::Span<const PairMeasurement> pairs);

// Of the kernels that are measured now, and of what `base` (may be null) has beside them.
CalibrationRecord MergeRecords(const CalibrationRecord& measured,
                               absl::Span<const KernelMeasurement> kernels,
                               const CalibrationRecord* base);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_CALIBRATION_PROFILE_H_
