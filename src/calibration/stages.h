// The stages of a calibration: lists of measurements of one kind, each with a share of the time.
//
// After the device is measured, before the profile is completed (calibration.cc). A stage runs
// until its share is spent (calibration_plan.h); passes over all stages follow each other until
// nothing is left, or no time. Invariants: a measurement is made whole or not at all, and only once
// what it is measured against is known; one is made in any case; each is told once. Threads: one.

#ifndef GPUSHARE_SRC_CALIBRATION_STAGES_H_
#define GPUSHARE_SRC_CALIBRATION_STAGES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/calibration/calibration.h"
#include "src/calibration/checkpoint.h"
#include "src/calibration/plan.h"
#include "src/calibration/report.h"
#include "src/calibration/timing.h"
#include "src/calibration/work.h"
#include "src/core/state/lanes.h"

namespace gpushare::models {

class StageMeter {
 public:
  // The time of a bounded calibration counts from here. Everything outlives this.
  StageMeter(LaunchTimer& timer, const core::Lanes& lanes, const CalibrationOptions& options,
             CalibrationWork& work, CheckpointKeeper& keeper, CalibrationReport& report)
      : timer_(timer),
        lanes_(lanes),
        options_(options),
        work_(work),
        keeper_(keeper),
        report_(report),
        begun_ns_(NowNs()) {}

  absl::Status Measure();
  bool TotalIsSpent() const;

 private:
  core::TimeNs NowNs() const { return timer_.device().NowNs(); }
  bool bounded() const;
  double SecondsLeft() const;
  bool MayBegin(Stage stage, size_t i) const;
  void Tell(Stage stage, size_t i);

  absl::Status MeasureStage(Stage stage);
  absl::Status MeasureOne(Stage stage, size_t i);
  absl::Status MeasureAs(Stage stage, size_t i);

  CalibrationOptions OptionsOfKernel(double share) const;
  absl::Status MeasureKernel(size_t i);
  absl::Status MeasureRest(size_t i);
  void KeepKernel(size_t i, const KernelMeasurement& measured);
  absl::Status MeasurePair(size_t i);
  absl::Status MeasureCoResident(size_t i);
  absl::StatusOr<FusedRecord> MeasureOneFused(const CalibrationFused& fused);
  absl::Status MeasureFused(size_t i);

  LaunchTimer& timer_;
  const core::Lanes& lanes_;
  const CalibrationOptions& options_;
  CalibrationWork& work_;
  CheckpointKeeper& keeper_;
  CalibrationReport& report_;
  std::array<std::vector<bool>, kStages> told_;
  std::array<size_t, kStages> left_of_{};  // measurements that are left, when the stage began
  size_t left_ = 0;                        // of this stage
  core::TimeNs begun_ns_ = 0;
  core::TimeNs stage_end_ns_ = 0;
  int32_t recorded_ = 0;  // of which a record came out
};

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_CALIBRATION_STAGES_H_
