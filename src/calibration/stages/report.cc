// Progress and what was not reached; see report.h.

#include "src/calibration/stages/report.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"

namespace gpushare::models {
namespace {

// Names in one note.
constexpr size_t kNamesMax = 12;

}  // namespace

void CalibrationReport::Progress(const std::string& what, const KernelMeasurement* kernel,
                                 bool kept) {
  if (options_.progress) options_.progress({done_, work_.StepsInAll(), what, kernel, kept});
}

void CalibrationReport::NoteNotReached(Stage stage, bool total_is_spent) {
  std::vector<std::string> names;
  for (const size_t i : work_.OrderOf(stage)) {
    if (!work_.IsKnown(stage, i)) names.push_back(work_.NameOf(stage, i));
  }
  if (names.empty()) return;
  const char* const what = kStageShares[static_cast<size_t>(stage)].what;
  const size_t shown = std::min(names.size(), kNamesMax);
  notes_.push_back(
      absl::StrCat(total_is_spent ? absl::StrCat("The time of ", options_.seconds_total,
                                                 " s in all was over; not reached: ")
                                  : "Without a usable measurement: ",
                   names.size(), " of ", work_.CountOf(stage), " ", what, " (",
                   absl::StrJoin(absl::MakeConstSpan(names).first(shown), ", "),
                   names.size() > shown ? absl::StrCat(" and ", names.size() - shown, " more") : "",
                   "). Resuming goes on there."));
  not_reached_.insert(not_reached_.end(), names.begin(), names.end());
  done_ = work_.StepsInAll();
  Progress(what);
}

}  // namespace gpushare::models
