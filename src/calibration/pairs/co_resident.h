// Measures two kernels on the same SMs, at several numbers of workers.
//
// The second is an evictable kernel with a few workers on every SM. The first is another one with
// the room that is left, or a graph or library call. One is timed while the other runs in the
// background, then the other way round. Threads: one.

#ifndef GPUSHARE_SRC_CALIBRATION_PAIRS_CO_RESIDENT_H_
#define GPUSHARE_SRC_CALIBRATION_PAIRS_CO_RESIDENT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "src/calibration/base/item.h"
#include "src/calibration/base/measurement.h"
#include "src/calibration/base/options.h"
#include "src/calibration/launch/timing.h"
#include "src/core/seams/device.h"
#include "src/core/state/lanes.h"
#include "src/models/profile/calibration_record.h"
#include "src/models/samples/sample_row.h"

namespace gpushare::models {

class CoResidentMeter {
 public:
  CoResidentMeter(LaunchTimer& timer, const core::Lanes& lanes, const CalibrationOptions& options)
      : timer_(timer),
        options_(options),
        lc_lane_(lanes.Pick(core::kWholeDevice, core::LaneClass::kLc, 0)),
        lane_(lanes.Pick(core::kWholeDevice, core::LaneClass::kBe, 0)),
        other_lane_(lanes.Pick(core::kWholeDevice, core::LaneClass::kBe, 1)) {}

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
  SampleRow RowOf(const Side& timed, const core::LaunchRequest& launch, const Side& background,
                  std::vector<double> alone_ns, std::vector<double> beside_ns) const;

  LaunchTimer& timer_;
  const CalibrationOptions& options_;
  const core::LaneIndex lc_lane_;
  const core::LaneIndex lane_;
  const core::LaneIndex other_lane_;
};

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_CALIBRATION_PAIRS_CO_RESIDENT_H_
