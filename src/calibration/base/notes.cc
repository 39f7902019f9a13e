// Sentences about what was dropped; see notes.h.

#include "src/calibration/base/notes.h"

#include "absl/strings/str_cat.h"

namespace gpushare::models {

void NoteImpossible(Notes& notes, absl::string_view subject, size_t count, absl::string_view what) {
  if (count == 0) return;
  notes.push_back(absl::StrCat(subject, ": ", count, " impossible ", what, " were dropped."));
}

void NoteRetaken(Notes& notes, absl::string_view subject, size_t count) {
  if (count == 0) return;
  notes.push_back(absl::StrCat("While ", subject, " was measured, ", count,
                               " samples of a launch's time came out below 1 ns; they were "
                               "dropped and taken again."));
}

bool NoteIfUnusable(Notes& notes, absl::string_view name, const absl::Status& status) {
  if (status.ok()) return true;
  notes.push_back(absl::StrCat("The measurement of '", name, "' was dropped: ", status.message()));
  return false;
}

}  // namespace gpushare::models
