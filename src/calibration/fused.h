// Measures precompiled fused kernels over load ratios (Tacker VI) and keeps the best of each pair.
//
// The load ratio is the CD part's own time over the TC part's. Four ratios give the two lines of
// the model, a fifth is measured where they cross. Threads: one.

#ifndef GPUSHARE_SRC_CALIBRATION_FUSED_H_
#define GPUSHARE_SRC_CALIBRATION_FUSED_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "src/calibration/calibration.h"
#include "src/calibration/timing.h"
#include "src/core/seams/device.h"
#include "src/core/state/lanes.h"
#include "src/models/calibration_record.h"

namespace gpushare::models {

class FusedMeter {
 public:
  FusedMeter(LaunchTimer& timer, const core::Lanes& lanes, const CalibrationOptions& options)
      : timer_(timer), options_(options) {
    lane_ = lanes.Pick(core::kWholeDevice, core::LaneClass::kBe, 0);
    partner_lane_ = lanes.Pick(core::kWholeDevice, core::LaneClass::kBe, 1);
    plain_lane_ = lanes.Pick(core::kWholeDevice, core::LaneClass::kLc, 0);
  }

  // `fused` is prepared; the measurements are those of the parts alone.
  absl::StatusOr<FusedRecord> Measure(const core::FusedKernelDesc& fused,
                                      const CalibrationItem& tensor,
                                      const KernelMeasurement& tensor_alone,
                                      const CalibrationItem& cuda,
                                      const KernelMeasurement& cuda_alone);

 private:
  absl::StatusOr<FusedPoint> MeasurePoint(const core::LaunchRequest& request);
  // The part's own form with so many block tasks, one launch among several.
  absl::StatusOr<double> AloneNs(const core::LaunchRequest& workers);

  LaunchTimer& timer_;
  const CalibrationOptions& options_;
  core::LaneIndex lane_ = core::kNoLane;
  core::LaneIndex partner_lane_ = core::kNoLane;
  core::LaneIndex plain_lane_ = core::kNoLane;
};

// Where the line through the first two points crosses the line through the other two, within what
// lies between them; the middle where they do not.
double CrossingOf(absl::Span<const FusedPoint> points);

// Of one after the other: 0.1 where the fused kernel takes 10 % less than both parts.
double SavingAt(const FusedPoint& point);

// Verdicts of all variants: of each pair the one that saves most is kept, if any saves. Appends a
// sentence for each pair.
void JudgeFused(std::vector<FusedRecord>& fused, std::vector<std::string>& notes);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_CALIBRATION_FUSED_H_
