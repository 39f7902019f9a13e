// Measures the primitives of a device: launch and completion latency, the eviction write, copies,
// and that every lane which a scheduler would make launches and is evicted. Threads: one.

#ifndef GPUSHARE_SRC_CALIBRATION_DEVICE_H_
#define GPUSHARE_SRC_CALIBRATION_DEVICE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "src/calibration/calibration.h"
#include "src/calibration/timing.h"
#include "src/core/seams/device_profile.h"
#include "src/core/state/lanes.h"

namespace gpushare::models {

class DeviceMeter {
 public:
  DeviceMeter(LaunchTimer& timer, const core::Lanes& lanes, absl::Span<const CalibrationItem> items,
              const CalibrationOptions& options, std::vector<std::string>& notes);

  // The device's profile with what was measured in place of what was given.
  absl::StatusOr<core::DeviceProfile> Measure();
  // Of both directions and kinds of host memory, once measured.
  const std::vector<CopyPoint>& copies() const { return copies_; }

 private:
  struct Copy {
    core::CopyDirection direction = core::CopyDirection::kNone;
    bool pinned = true;
    bool second_half = false;
  };

  absl::Status TestLanes();
  absl::Status TestLane(core::LaneIndex lane, int64_t one_round_ns);
  absl::Status MeasureLatencies();
  absl::Status MeasureGraphLatency();
  absl::Status MeasureEvictionWrite();
  // Whether a write that is issued `lead_ns` before the first worker starts is seen by it.
  absl::StatusOr<bool> WriteArrivesWithin(int64_t lead_ns);
  absl::Status MeasureCopies();
  core::LaunchRequest CopyRequestOf(const Copy& copy, core::LaneIndex lane, int64_t bytes) const;
  // Host's time from the first call to the last completion.
  absl::StatusOr<double> TimeCopies(absl::Span<const Copy> copies, int64_t bytes);
  absl::StatusOr<double> RateOf(absl::Span<const Copy> copies, int64_t bytes);
  absl::Status MeasureCopySizes(const Copy& copy, int64_t bytes_most);

  LaunchTimer& timer_;
  const core::Lanes& lanes_;
  const CalibrationOptions& options_;
  std::vector<std::string>& notes_;
  const CalibrationItem* worker_item_ = nullptr;  // the first that is evictable
  const CalibrationItem* graph_item_ = nullptr;
  const CalibrationItem* any_item_ = nullptr;
  core::LaneIndex worker_lane_ = core::kNoLane;
  core::DeviceProfile out_;
  std::vector<CopyPoint> copies_;
};

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_CALIBRATION_DEVICE_H_
