// Measures precompiled fused kernels over load ratios (Tacker VI) and keeps the best of each pair.
//
// The load ratio is the CD part's time alone over the TC part's. Five ratios give the two lines of
// the model (src/models/fused/fused_curve.h). Threads: one.

#ifndef GPUSHARE_SRC_CALIBRATION_PAIRS_FUSED_H_
#define GPUSHARE_SRC_CALIBRATION_PAIRS_FUSED_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "src/calibration/base/item.h"
#include "src/calibration/base/measurement.h"
#include "src/calibration/base/notes.h"
#include "src/calibration/base/options.h"
#include "src/calibration/launch/request.h"
#include "src/calibration/launch/timing.h"
#include "src/core/seams/device.h"
#include "src/core/state/lanes.h"
#include "src/models/profile/calibration_record.h"

namespace gpushare::models {

class FusedMeter {
 public:
  FusedMeter(LaunchTimer& timer, const core::Lanes& lanes, const CalibrationOptions& options)
      : timer_(timer),
        options_(options),
        lane_(lanes.Pick(core::kWholeDevice, core::LaneClass::kBe, 0)),
        partner_lane_(lanes.Pick(core::kWholeDevice, core::LaneClass::kBe, 1)),
        plain_lane_(lanes.Pick(core::kWholeDevice, core::LaneClass::kLc, 0)) {}

  // `fused` is prepared; the measurements are those of the parts alone.
  absl::StatusOr<FusedRecord> Measure(const core::FusedKernelDesc& fused,
                                      const CalibrationItem& tensor,
                                      const KernelMeasurement& tensor_alone,
                                      const CalibrationItem& cuda,
                                      const KernelMeasurement& cuda_alone);

 private:
  absl::StatusOr<FusedPoint> MeasurePoint(const core::FusedKernelDesc& fused,
                                          const FusedPart& tensor, const FusedPart& cuda,
                                          double load);

  LaunchTimer& timer_;
  const CalibrationOptions& options_;
  const core::LaneIndex lane_;
  const core::LaneIndex partner_lane_;
  const core::LaneIndex plain_lane_;
};

// The record of a fused kernel that spills: names and shape, nothing measured.
FusedRecord RecordOf(const core::FusedKernelDesc& fused, const CalibrationItem& tensor,
                     const CalibrationItem& cuda);

// Sets the verdicts of all variants: of each pair the one that saves most is kept, if any saves.
// Appends a sentence for each pair.
void SetVerdicts(std::vector<FusedRecord>& fused, Notes& notes);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_CALIBRATION_PAIRS_FUSED_H_
