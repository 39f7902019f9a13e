// Evaluation of models over the ABI. Threads: the caller's.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bindings/c/errors.h"
#include "bindings/c/handles.h"
#include "bindings/c/options.h"
#include "src/core/base/application_call.h"
#include "src/models/evaluation/judged.h"
#include "src/models/samples/samples_file.h"

namespace gpushare::abi {
namespace {

// What the callback threw, "" for nothing. It is not called again.
std::string Report(const models::Judged& judged, gpushare_judge_callback judge, void* user) {
  gpushare_judged_prediction prediction = GPUSHARE_JUDGED_PREDICTION_INIT;
  prediction.family = judged.family.c_str();
  prediction.model = judged.model.c_str();
  prediction.subject = judged.subject.c_str();
  prediction.predicted = judged.predicted;
  prediction.measured = judged.measured;
  const CallbackScope scope;
  return core::ThrownBy([&] { judge(user, &prediction); });
}

absl::Status Evaluate(const char* samples_path, gpushare_judge_callback judge, void* user) {
  GPUSHARE_RETURN_IF_ERROR(CheckText("samples_path", samples_path));
  if (judge == nullptr) return absl::InvalidArgumentError("judge is null, and it must be given.");
  absl::StatusOr<models::Samples> samples = models::LoadSamples(samples_path);
  if (!samples.ok()) return samples.status();
  for (const models::Judged& judged : models::JudgeModels(*samples)) {
    const std::string thrown = Report(judged, judge, user);
    if (thrown.empty()) continue;
    return absl::InternalError(
        absl::StrCat("The judge callback threw ", thrown, ", and the evaluation stopped."));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace gpushare::abi

gpushare_status gpushare_evaluate_models(const char* samples_path, gpushare_judge_callback judge,
                                         void* user) noexcept {
  return gpushare::abi::Enter([&]() -> absl::Status {
    GPUSHARE_RETURN_IF_ERROR(gpushare::abi::CallbackScope::Refuse("gpushare_evaluate_models"));
    return gpushare::abi::Evaluate(samples_path, judge, user);
  });
}
