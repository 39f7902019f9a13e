// Judges durations of library calls by their parameters: held-out shapes train nothing. The model
// is what a profile keeps of the fit.

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/models/evaluation/judged.h"
#include "src/models/learned/learned.h"
#include "src/models/library/library_model.h"
#include "src/models/samples/hold_out.h"
#include "src/models/samples/row_times.h"
#include "src/models/training/train_library.h"

namespace gpushare::models {
namespace {

constexpr double kJudgedNs = 10'000;  // shorter calls are mostly the launch
constexpr double kLongNs = 100'000;

bool Counts(const Samples& samples, const SampleRow& row) {
  return row.what == SampleKind::kSolo && row.sms == samples.head.sm_count && !row.ns.empty() &&
         row.call.operation != core::LibraryOperation::kNone;
}

}  // namespace

void JudgeLibraryCalls(const Samples& samples, std::vector<Judged>& out) {
  Samples training;
  training.head = samples.head;
  for (const SampleRow& row : samples.rows) {
    if (Counts(samples, row) && !IsHeldOut(row)) training.rows.push_back(row);
  }
  Learned learned;
  TrainLibrary(training, learned);
  absl::StatusOr<Learned> kept = ParseLearned(FormatLearned(learned));
  if (!kept.ok()) return;
  LibraryDevice device;
  device.sm_count = samples.head.sm_count;
  LibraryModel model;
  model.Restore(device, std::move(kept->library));
  for (const SampleRow& row : samples.rows) {
    if (!Counts(samples, row) || !IsHeldOut(row)) continue;
    const double measured = Median(row.ns);
    model.Prepare(row.call);
    const core::Prediction prediction = model.Predict(row.call);
    if (measured < kJudgedNs || model.MethodOf(row.call) == LibraryMethod::kNone) continue;
    const char* const family = measured < kLongNs ? "library calls" : "library calls above 100 us";
    out.push_back({absl::StrCat(IsBlind(row) ? "blind " : "", family), "least time x ratio",
                   row.kernel, static_cast<double>(prediction.duration_ns), measured});
  }
}

}  // namespace gpushare::models
