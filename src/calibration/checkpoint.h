// The checkpoint of a calibration: what is measured so far, as a profile beside the output.
//
// The profile's `learned` text holds what a profile has no field for: the digest of each item, and
// the evictions. No cost model reads such a text, so that a checkpoint is never mistaken for a
// profile that is ready. Invariant: written by rename, read whole or not at all. Threads: one.

#ifndef GPUSHARE_SRC_CALIBRATION_CHECKPOINT_H_
#define GPUSHARE_SRC_CALIBRATION_CHECKPOINT_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/calibration/calibration.h"
#include "src/core/base/clock.h"

namespace gpushare::models {

struct Checkpoint {
  bool device_measured = false;
  core::DeviceProfile device;
  std::map<uint64_t, KernelMeasurement> kernels;  // by digest of the item
  // By digests of the LC and the BE item.
  std::map<std::pair<uint64_t, uint64_t>, PairMeasurement> pairs;
  // Copies, co-resident pairs and fused kernels, by their names. Those of a kernel that is measured
  // anew are too.
  CalibrationRecord record;
};

// Of the name, kind, grid and argument sizes of an item, and of the GPU model. Not of the argument
// bytes: they hold addresses, which another process has otherwise.
uint64_t DigestOf(const CalibrationItem& item, const core::DeviceProfile& device);

absl::Status SaveCheckpoint(const std::string& path, const Checkpoint& checkpoint);
// NOT_FOUND without a file, DATA_LOSS corrupt, FAILED_PRECONDITION of another version.
absl::StatusOr<Checkpoint> LoadCheckpoint(const std::string& path);

// Writes the checkpoint of a calibration that goes on. Without an output path it writes nothing.
class CheckpointKeeper {
 public:
  // Everything outlives this.
  CheckpointKeeper(const core::Clock& clock, const CalibrationOptions& options,
                   const Checkpoint& checkpoint)
      : clock_(clock), options_(options), checkpoint_(checkpoint) {}

  // A folder that cannot be written to is found now, not after the first measurements.
  absl::Status Try();
  absl::Status Keep();
  // After a measurement: now, if the file is at least so old, else with a later one.
  absl::Status KeepIfOlder(core::TimeNs age_ns_least);
  absl::Status KeepUnsaved();

 private:
  const core::Clock& clock_;
  const CalibrationOptions& options_;
  const Checkpoint& checkpoint_;
  core::TimeNs saved_ns_ = 0;
  bool unsaved_ = false;
};

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_CALIBRATION_CHECKPOINT_H_
