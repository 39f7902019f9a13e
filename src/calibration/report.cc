// Progress and notes. See calibration_report.h.

#include "src/calibration/report.h"

#include <cstddef>

#include "absl/strings/str_cat.h"

namespace gpushare::models {
namespace {

// Names in a note on what was not reached.
constexpr size_t kNamesMax = 12;

}  // namespace

void CalibrationReport::Progress(const std::string& what, const KernelMeasurement* kernel,
                                 bool kept) {
  if (!options_.progress) return;
  CalibrationProgress progress;
  progress.done = done_;
  progress.total = work_.StepsInAll();
  progress.what = what;
  progress.kernel = kernel;
  progress.kept = kept;
  options_.progress(progress);
}

bool CalibrationReport::Usable(const std::string& name, const absl::Status& status) {
  if (status.ok()) return true;
  result_.notes.push_back(
      absl::StrCat("The measurement of '", name, "' was dropped: ", status.message()));
  return false;
}

void CalibrationReport::NoteDropped(int dropped, const std::string& of) {
  if (dropped == 0) return;
  result_.notes.push_back(absl::StrCat("While ", of, " was measured, ", dropped,
                                       " samples of a launch's time came out below 1 ns; they "
                                       "were dropped and taken again."));
}

void CalibrationReport::NoteNotReached(Stage stage, bool total_is_spent) {
  std::vector<std::string> names;
  for (size_t i : work_.OrderOf(stage)) {
    if (!work_.IsKnown(stage, i)) names.push_back(work_.NameOf(stage, i));
  }
  if (names.empty()) return;
  const char* const what = kStageShares[static_cast<size_t>(stage)].what;
  std::string note = "Without a usable measurement: ";
  if (total_is_spent) {
    note =
        absl::StrCat("The time of ", options_.seconds_total, " s in all was over; not reached: ");
  }
  absl::StrAppend(&note, names.size(), " of ", work_.CountOf(stage), " ", what, " (");
  for (size_t i = 0; i < names.size() && i < kNamesMax; ++i) {
    absl::StrAppend(&note, i == 0 ? "" : ", ", names[i]);
  }
  if (names.size() > kNamesMax) {
    absl::StrAppend(&note, " and ", names.size() - kNamesMax, " more");
  }
  result_.notes.push_back(absl::StrCat(note, "). Resuming goes on there."));
  result_.not_reached.insert(result_.not_reached.end(), names.begin(), names.end());
  done_ = work_.StepsInAll();
  Progress(what, nullptr);
}

}  // namespace gpushare::models
