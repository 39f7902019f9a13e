// What a calibration reports on its way: progress, notes, and what it did not reach.
//
// Invariants: every measurement that is missing from the profile has a note; progress only grows,
// and ends at the number of all steps. Threads: one, the caller's, on which `progress` runs too.

#ifndef GPUSHARE_SRC_CALIBRATION_STAGES_REPORT_H_
#define GPUSHARE_SRC_CALIBRATION_STAGES_REPORT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "src/calibration/base/measurement.h"
#include "src/calibration/base/notes.h"
#include "src/calibration/base/options.h"
#include "src/calibration/stages/plan.h"
#include "src/calibration/stages/work.h"

namespace gpushare::models {

class CalibrationReport {
 public:
  // Everything outlives this.
  CalibrationReport(const CalibrationOptions& options, const CalibrationWork& work)
      : options_(options), work_(work) {}

  Notes& notes() { return notes_; }
  std::vector<std::string>& not_reached() { return not_reached_; }

  void Step() { ++done_; }
  void Progress(const std::string& what, const KernelMeasurement* kernel = nullptr,
                bool kept = false);

  // Notes and lists what of the stage is missing, if anything is; all steps then count as done.
  void NoteNotReached(Stage stage, bool total_is_spent);

 private:
  const CalibrationOptions& options_;
  const CalibrationWork& work_;
  Notes notes_;
  std::vector<std::string> not_reached_;
  int32_t done_ = 0;
};

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_CALIBRATION_STAGES_REPORT_H_
