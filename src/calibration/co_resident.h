// Measures two kernels on the same SMs at several numbers of workers.
//
// The second is an evictable kernel with a few workers on every SM; the first is another one with
// the room that is left, or a graph or library call. One is timed while the other runs in the
// background, then the other way round. Threads: one.

#ifndef GPUSHARE_SRC_CALIBRATION_CO_RESIDENT_H_
#define GPUSHARE_SRC_CALIBRATION_CO_RESIDENT_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/calibration/calibration.h"
#include "src/calibration/timing.h"
#include "src/core/seams/device.h"
#include "src/core/state/lanes.h"
#include "src/models/calibration_record.h"

namespace gpushare::models {

// Workers an SM of the two that are worth measuring: a quarter, half and three quarters of what an
// SM holds of the second, the rest for the first. Those that do not fit are left out.
std::vector<CoResidentPoint> WorkerCounts(const CalibrationItem& first,
                                          const CalibrationItem& second,
                                          const core::DeviceProfile& device);

class CoResidentMeter {
 public:
  CoResidentMeter(LaunchTimer& timer, const core::Lanes& lanes, const CalibrationOptions& options)
      : timer_(timer), options_(options) {
    lc_lane_ = lanes.Pick(core::kWholeDevice, core::LaneClass::kLc, 0);
    lane_ = lanes.Pick(core::kWholeDevice, core::LaneClass::kBe, 0);
    other_lane_ = lanes.Pick(core::kWholeDevice, core::LaneClass::kBe, 1);
  }

  // The measurements are those of the items alone.
  absl::StatusOr<CoResidentRecord> Measure(const CalibrationItem& first,
                                           const KernelMeasurement& first_alone,
                                           const CalibrationItem& second,
                                           const KernelMeasurement& second_alone);

 private:
  struct Side {
    const CalibrationItem& item;
    const KernelMeasurement& alone;
    int32_t workers_per_sm = 0;
  };
  // Speed of `timed` beside `background`; 0 when it never ended before the background did.
  absl::StatusOr<double> SpeedBeside(const Side& timed, const Side& background);

  LaunchTimer& timer_;
  const CalibrationOptions& options_;
  core::LaneIndex lc_lane_ = core::kNoLane;
  core::LaneIndex lane_ = core::kNoLane;
  core::LaneIndex other_lane_ = core::kNoLane;
};

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_CALIBRATION_CO_RESIDENT_H_
