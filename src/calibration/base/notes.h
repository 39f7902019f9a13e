// Sentences about what a calibration skipped or dropped, for CalibrationResult::notes.
//
// Invariant: every sample, value or record that is dropped has a note. Threads: one, the caller's.

#ifndef GPUSHARE_SRC_CALIBRATION_BASE_NOTES_H_
#define GPUSHARE_SRC_CALIBRATION_BASE_NOTES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace gpushare::models {

using Notes = std::vector<std::string>;

// "Kernel 'a': 3 impossible samples of the PTB overhead were dropped." Nothing for a count of 0.
void NoteImpossible(Notes& notes, absl::string_view subject, size_t count, absl::string_view what);

// Samples of launch times that LaunchTimer dropped and took again while `subject` was measured.
void NoteRetaken(Notes& notes, absl::string_view subject, size_t count);

// Whether `status` is OK; if not, notes that the measurement of `name` was dropped, and why.
bool NoteIfUnusable(Notes& notes, absl::string_view name, const absl::Status& status);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_CALIBRATION_BASE_NOTES_H_
