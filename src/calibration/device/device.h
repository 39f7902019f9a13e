// Measures the primitives of a device: launch and completion latencies, the eviction write, copies.
// Tests that every lane of a scheduler launches and can be evicted.
//
// The first measurement of a calibration. Threads: one.

#ifndef GPUSHARE_SRC_CALIBRATION_DEVICE_DEVICE_H_
#define GPUSHARE_SRC_CALIBRATION_DEVICE_DEVICE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "src/calibration/base/item.h"
#include "src/calibration/base/notes.h"
#include "src/calibration/base/options.h"
#include "src/calibration/device/copies.h"
#include "src/calibration/launch/timing.h"
#include "src/core/seams/device_profile.h"
#include "src/core/state/lanes.h"

namespace gpushare::models {

class DeviceMeter {
 public:
  // Everything outlives this.
  DeviceMeter(LaunchTimer& timer, const core::Lanes& lanes, absl::Span<const CalibrationItem> items,
              const CalibrationOptions& options, Notes& notes);

  // The device's profile with what was measured in place of what was given.
  absl::StatusOr<core::DeviceProfile> Measure();
  // Copies of both directions and kinds of host memory, once measured.
  std::vector<CopyPoint>& copies() { return copies_.points(); }

 private:
  // A first round of block tasks on every SM, and its time after a warm-up.
  core::LaunchRequest OneRound() const;
  absl::StatusOr<int64_t> TimeOneRound();
  absl::Status TestLanes();
  absl::Status TestLane(core::LaneIndex lane, int64_t round_ns);
  absl::Status TestEviction(core::LaneIndex lane, int64_t round_ns);
  absl::Status MeasureLatencies();
  absl::Status MeasureGraphLatency();
  absl::Status MeasureEvictionWrite();
  absl::Status MeasureEvictionIssue();
  // Whether the first worker sees a write that is issued `lead_ns` before it starts.
  absl::StatusOr<bool> WriteArrivesWithin(int64_t lead_ns);
  // One launch with such a write: whether it left without a block task. Empty: the start was not
  // where it was planned, and the trial says nothing.
  absl::StatusOr<std::optional<bool>> TryWrite(int64_t lead_ns);

  LaunchTimer& timer_;
  const core::Lanes& lanes_;
  const CalibrationOptions& options_;
  Notes& notes_;
  CopyMeter copies_;
  const CalibrationItem* worker_item_ = nullptr;  // the first that is evictable
  const CalibrationItem* graph_item_ = nullptr;
  const CalibrationItem* any_item_ = nullptr;
  core::LaneIndex worker_lane_ = core::kNoLane;
  core::DeviceProfile out_;
};

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_CALIBRATION_DEVICE_DEVICE_H_
