// A profile: the constants of one GPU and the records of its kernels, as one JSON file.
//
// JSON keys are the field names of DeviceProfile, KernelDesc, SimulationRecord, ResourceDemand,
// SpeedPoint, GraphNode and the records of calibration_record.h; a key that is left out keeps its
// default, an unknown key is an error. A profile that is truncated, corrupt or out of range is
// rejected whole. Threads: any.

#ifndef GPUSHARE_SRC_MODELS_PROFILE_PROFILE_H_
#define GPUSHARE_SRC_MODELS_PROFILE_PROFILE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "src/core/seams/device_profile.h"
#include "src/core/seams/kernel.h"
#include "src/models/json/json_document.h"
#include "src/models/profile/calibration_record.h"
#include "src/models/profile/profile_limits.h"

namespace gpushare::models {

struct Profile {
  core::DeviceProfile device;
  std::vector<core::KernelDesc> kernels;  // by name, unique
  CalibrationRecord calibration;          // may be empty
  std::string learned;  // CostModel::Save() of the run that wrote it, may be empty

  const core::KernelDesc* FindKernel(absl::string_view name) const;
};

absl::StatusOr<Profile> ParseProfile(absl::string_view text);
// Of a text that was parsed before; the same checks.
absl::StatusOr<Profile> ReadProfile(const JsonDocument& json);
absl::StatusOr<Profile> LoadProfile(const std::string& path);
std::string FormatProfile(const Profile& profile);
// Writes to a temporary name beside `path` and renames: a crash leaves the old file or the new one.
absl::Status SaveProfile(const std::string& path, const Profile& profile);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_PROFILE_PROFILE_H_
