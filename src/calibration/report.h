// What a calibration tells the caller on its way: progress, and sentences on what was dropped or
// not reached.
//
// Invariants: every measurement that is dropped and every one that is missing from the profile has
// a note; progress only grows, to the number of all steps. Threads: one, the caller's, on which
// `progress` runs too.

#ifndef GPUSHARE_SRC_CALIBRATION_REPORT_H_
#define GPUSHARE_SRC_CALIBRATION_REPORT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "src/calibration/calibration.h"
#include "src/calibration/plan.h"
#include "src/calibration/work.h"

namespace gpushare::models {

class CalibrationReport {
 public:
  // Notes go to `result`. Everything outlives this.
  CalibrationReport(const CalibrationOptions& options, const CalibrationWork& work,
                    CalibrationResult& result)
      : options_(options), work_(work), result_(result) {}

  std::vector<std::string>& notes() { return result_.notes; }

  void Step() { ++done_; }
  void Progress(const std::string& what, const KernelMeasurement* kernel, bool kept = false);

  // False, with a note, where `status` says that the measurement of `name` is dropped.
  bool Usable(const std::string& name, const absl::Status& status);
  // Samples of a launch's time that were dropped while `of` was measured.
  void NoteDropped(int dropped, const std::string& of);
  // A note on what of the stage is missing, if anything is; all steps count as done then.
  void NoteNotReached(Stage stage, bool total_is_spent);

 private:
  const CalibrationOptions& options_;
  const CalibrationWork& work_;
  CalibrationResult& result_;
  int32_t done_ = 0;
};

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_CALIBRATION_REPORT_H_
