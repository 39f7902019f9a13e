// The checkpoint of a calibration: what is measured so far, as a profile file beside the output.
//
// The profile's `learned` text holds what a profile has no field for: the digest of each item and
// the samples of evictions. No cost model accepts such a text, so that a checkpoint is never used
// as a finished profile. Invariant: it is written by rename, and read completely or not at all.
// Threads: one.

#ifndef GPUSHARE_SRC_CALIBRATION_PROFILE_CHECKPOINT_H_
#define GPUSHARE_SRC_CALIBRATION_PROFILE_CHECKPOINT_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/calibration/base/item.h"
#include "src/calibration/base/measurement.h"
#include "src/calibration/base/options.h"
#include "src/core/base/clock.h"
#include "src/core/seams/device_profile.h"
#include "src/models/profile/calibration_record.h"

namespace gpushare::models {

struct Checkpoint {
  bool device_measured = false;
  core::DeviceProfile device;
  std::map<uint64_t, KernelMeasurement> kernels;  // by digest of the item
  // By digests of the LC and the BE item.
  std::map<std::pair<uint64_t, uint64_t>, PairMeasurement> pairs;
  // Copies, co-resident pairs and fused kernels, by their names. When a kernel is measured anew, so
  // are its records here.
  CalibrationRecord record;
};

// A digest of the name, kind, grid and argument sizes of an item, and of the GPU model. The
// argument bytes do not count: they hold addresses, which differ from process to process.
uint64_t DigestOf(const CalibrationItem& item, const core::DeviceProfile& device);

// Where the checkpoint of a calibration lies.
std::string CheckpointPath(const std::string& output_path);

absl::Status SaveCheckpoint(const std::string& path, const Checkpoint& checkpoint);
// NOT_FOUND without a file, DATA_LOSS if it is corrupt, FAILED_PRECONDITION if it is of another
// version.
absl::StatusOr<Checkpoint> LoadCheckpoint(const std::string& path);

// Writes the checkpoint of a running calibration; nothing without an output path.
class CheckpointWriter {
 public:
  // Everything outlives this.
  CheckpointWriter(const core::Clock& clock, const CalibrationOptions& options,
                   const Checkpoint& checkpoint)
      : clock_(clock), options_(options), checkpoint_(checkpoint) {}

  // Fails if the folder cannot be written to, which is better known before the first measurement.
  absl::Status CheckWritable();
  absl::Status Write();
  // After a measurement: writes if the file is at least this old, else leaves it to a later call.
  absl::Status WriteIfOlder(core::TimeNs age_ns_least);
  absl::Status WriteUnsaved();

 private:
  const core::Clock& clock_;
  const CalibrationOptions& options_;
  const Checkpoint& checkpoint_;
  core::TimeNs written_ns_ = 0;
  bool unsaved_ = false;
};

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_CALIBRATION_PROFILE_CHECKPOINT_H_
