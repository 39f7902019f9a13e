// Measures copies: rates in both directions, alone and together, durations over sizes, and latency.
// Where samples are wanted, more sizes, and copies beside a copy the other way.
//
// Part of the measurement of the device (device.h), after its launch and completion latencies,
// which the copy latency excludes. Threads: one.

#ifndef GPUSHARE_SRC_CALIBRATION_DEVICE_COPIES_H_
#define GPUSHARE_SRC_CALIBRATION_DEVICE_COPIES_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "src/calibration/base/notes.h"
#include "src/calibration/base/options.h"
#include "src/calibration/launch/request.h"
#include "src/calibration/launch/timing.h"
#include "src/core/seams/device.h"
#include "src/core/seams/device_profile.h"
#include "src/core/state/lanes.h"
#include "src/models/profile/calibration_record.h"

namespace gpushare::models {

class CopyMeter {
 public:
  // Everything outlives this.
  CopyMeter(LaunchTimer& timer, const core::Lanes& lanes, const CalibrationOptions& options,
            Notes& notes)
      : timer_(timer), lanes_(lanes), options_(options), notes_(notes) {}

  // Replaces the rates and the copy latency of `device`, whose completion latency is measured.
  absl::Status Measure(core::DeviceProfile& device);
  // Durations over sizes, for each direction and kind of host memory.
  std::vector<CopyPoint>& points() { return points_; }

 private:
  using Copy = BufferCopy;

  bool Has(bool pinned) const { return HasBuffers(timer_.device(), options_.buffers, pinned); }
  core::LaneIndex LaneOf(size_t copy) const {
    return lanes_.Pick(core::kWholeDevice, core::LaneClass::kCopy, static_cast<uint32_t>(copy));
  }
  // Host's time from the first call to the last completion of copies that run together.
  absl::StatusOr<double> TimeCopies(absl::Span<const Copy> copies, int64_t bytes);
  // Bytes of all copies a ns.
  absl::StatusOr<double> RateOf(absl::Span<const Copy> copies, int64_t bytes);
  // The time of copies of one size that run together; a row for models.
  absl::StatusOr<double> MeasureSize(absl::Span<const Copy> copies, int64_t bytes);
  absl::Status MeasureSamples(bool pinned);
  // A copy while a longer pinned one runs the other way; a row for models.
  absl::Status MeasureOpposed(const Copy& copy, int64_t bytes);
  absl::Status MeasureSizes(const Copy& copy, int64_t bytes_most);
  absl::Status MeasurePageable(int64_t bytes, core::DeviceProfile& device);
  absl::Status MeasurePinned(int64_t bytes, core::DeviceProfile& device);
  absl::Status MeasureLatency(core::DeviceProfile& device);

  LaunchTimer& timer_;
  const core::Lanes& lanes_;
  const CalibrationOptions& options_;
  Notes& notes_;
  std::vector<CopyPoint> points_;
};

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_CALIBRATION_DEVICE_COPIES_H_
