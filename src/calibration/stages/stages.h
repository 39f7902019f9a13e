// The stages of a calibration: lists of measurements of one kind, each with a share of the time.
//
// They come after the device is measured and before the profile is completed (calibration.cc). A
// stage runs until its share is spent (plan.h). Passes over all stages follow each other until
// nothing is left to measure, or no time. Invariants: a measurement is made completely or not at
// all, and only after what it is compared with; at least one is made; each is reported once.
// Threads: one.

#ifndef GPUSHARE_SRC_CALIBRATION_STAGES_STAGES_H_
#define GPUSHARE_SRC_CALIBRATION_STAGES_STAGES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/calibration/base/options.h"
#include "src/calibration/launch/timing.h"
#include "src/calibration/profile/checkpoint.h"
#include "src/calibration/stages/plan.h"
#include "src/calibration/stages/report.h"
#include "src/calibration/stages/work.h"
#include "src/core/state/lanes.h"

namespace gpushare::models {

class StageMeter {
 public:
  // The time of a bounded calibration counts from here. Everything outlives this.
  StageMeter(LaunchTimer& timer, const core::Lanes& lanes, const CalibrationOptions& options,
             CalibrationWork& work, CheckpointWriter& checkpoint, CalibrationReport& report)
      : timer_(timer),
        lanes_(lanes),
        options_(options),
        work_(work),
        checkpoint_(checkpoint),
        report_(report),
        begun_ns_(NowNs()) {}

  absl::Status Measure();
  bool TotalIsSpent() const;

 private:
  core::TimeNs NowNs() const { return timer_.device().NowNs(); }
  bool bounded() const;
  double SecondsLeft() const;
  bool MayBegin(Stage stage, size_t i) const;
  void ReportOnce(Stage stage, size_t i);

  absl::Status MeasureStage(Stage stage);
  absl::Status MeasureOne(Stage stage, size_t i);
  absl::Status MeasureAs(Stage stage, size_t i);

  CalibrationOptions OptionsOfKernel(double share) const;
  absl::Status MeasureBasicsOf(size_t i);
  absl::Status MeasureRestOf(size_t i);
  void KeepKernel(size_t i, const KernelMeasurement& measured);
  absl::Status MeasurePair(size_t i);
  absl::Status MeasureCoResident(size_t i);
  absl::StatusOr<FusedRecord> MeasureOneFused(const CalibrationFused& fused);
  absl::Status MeasureFused(size_t i);
  // Whether a profile with the records can be read back; a note says so if not.
  bool IsReadable(const std::string& name, const CalibrationRecord& records);

  LaunchTimer& timer_;
  const core::Lanes& lanes_;
  const CalibrationOptions& options_;
  CalibrationWork& work_;
  CheckpointWriter& checkpoint_;
  CalibrationReport& report_;
  std::array<std::vector<bool>, kStages> reported_;
  std::array<size_t, kStages> left_of_{};  // measurements that were left when the stage began
  size_t left_ = 0;                        // of this stage
  core::TimeNs begun_ns_ = 0;
  core::TimeNs stage_end_ns_ = 0;
  int32_t recorded_ = 0;  // measurements that gave a record
};

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_CALIBRATION_STAGES_STAGES_H_
