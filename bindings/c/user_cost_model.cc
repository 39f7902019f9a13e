// The caller's own cost model before the built-in one; see user_cost_model.h.

#include "bindings/c/user_cost_model.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "bindings/c/errors.h"
#include "bindings/c/handles.h"
#include "bindings/c/objects.h"
#include "bindings/c/options.h"

namespace gpushare::abi {

UserCostModel::UserCostModel(std::unique_ptr<core::CostModel> built_in, int32_t sm_count)
    : CostModel(*this, *this, *this), built_in_(std::move(built_in)), sm_count_(sm_count) {}

void UserCostModel::Exchange(std::unique_ptr<CostModelCalls>& calls) {
  calls_.swap(calls);
  exchanged_ = true;
  ++past_changes_;
  if (calls == nullptr) return;
  past_changes_ += calls->changes();
  past_refused_ += calls->refused();
  std::string report = calls->TakeReport();
  if (!report.empty()) past_report_ = std::move(report);
}

core::Prediction UserCostModel::PredictSolo(const core::TaskFeatures& features) const {
  core::Prediction own;
  if (calls_ != nullptr && calls_->PredictSolo(features, own)) return own;
  return built_in_->durations().PredictSolo(features);
}

core::Prediction UserCostModel::PredictFused(const core::FusedFeatures& features) const {
  core::Prediction own;
  if (calls_ != nullptr && calls_->PredictFused(features, own)) return own;
  return built_in_->overlaps().PredictFused(features);
}

core::CoResidentPrediction UserCostModel::PredictCoResident(
    const core::CoResidentSide& first, const core::CoResidentSide& second) const {
  core::CoResidentPrediction own;
  if (calls_ != nullptr && calls_->PredictCoResident(first, second, own)) return own;
  return built_in_->overlaps().PredictCoResident(first, second);
}

double UserCostModel::SpeedBeside(const core::KernelDesc& kernel, int32_t sms,
                                  const core::KernelDesc& neighbour, int32_t neighbour_sms) const {
  double own = 0;
  if (calls_ != nullptr && calls_->PredictBeside({kernel, sms}, {neighbour, neighbour_sms}, own)) {
    return own;
  }
  return built_in_->neighbours().SpeedBeside(kernel, sms, neighbour, neighbour_sms);
}

bool UserCostModel::KnowsBeside(const core::KernelDesc& kernel, int32_t sms,
                                const core::KernelDesc& neighbour) const {
  // The two sides of a split are the whole device.
  double own = 0;
  if (calls_ != nullptr &&
      calls_->PredictBeside({kernel, sms}, {neighbour, sm_count_ - sms}, own)) {
    return true;
  }
  return built_in_->neighbours().KnowsBeside(kernel, sms, neighbour);
}

// An answer of the table is as good as measured: it has no error bar.
double UserCostModel::ErrorBeside(const core::KernelDesc& kernel, int32_t sms,
                                  const core::KernelDesc& neighbour, int32_t neighbour_sms) const {
  double own = 0;
  if (calls_ != nullptr && calls_->PredictBeside({kernel, sms}, {neighbour, neighbour_sms}, own)) {
    return 0;
  }
  return built_in_->neighbours().ErrorBeside(kernel, sms, neighbour, neighbour_sms);
}

double UserCostModel::SpeedBesideCopies(const core::KernelDesc& kernel,
                                        core::LinkUse copies) const {
  return built_in_->neighbours().SpeedBesideCopies(kernel, copies);
}

// A table may answer differently each time.
void UserCostModel::TakePairChanges(core::PairChanges& out) {
  built_in_->neighbours().TakePairChanges(out);
  out.all = out.all || calls_ != nullptr || std::exchange(exchanged_, false);
}

void UserCostModel::Observe(const core::Observation& observation) {
  // The launch of a co-run is another observation too.
  if (calls_ != nullptr && observation.co_run == nullptr) calls_->Observe(observation);
  built_in_->Observe(observation);
}

// Each term only grows, so that the sum changes when one does.
uint64_t UserCostModel::version() const {
  return built_in_->version() + past_changes_ + (calls_ == nullptr ? 0 : calls_->changes());
}

// A new table, or what it observed, may predict other co-schedules.
uint64_t UserCostModel::co_schedule_version() const {
  return built_in_->overlaps().co_schedule_version() + past_changes_ +
         (calls_ == nullptr ? 0 : calls_->changes());
}

void UserCostModel::TakeCoScheduleChanges(core::PairChanges& out) {
  built_in_->overlaps().TakeCoScheduleChanges(out);
  const uint64_t changes = past_changes_ + (calls_ == nullptr ? 0 : calls_->changes());
  out.all = out.all || std::exchange(changes_taken_, changes) != changes;
}

std::string UserCostModel::TakeReport() {
  if (!past_report_.empty()) {
    ++past_changes_;  // the flow asks again, for what the present table has to report
    return std::exchange(past_report_, {});
  }
  return calls_ == nullptr ? std::string() : calls_->TakeReport();
}

int64_t UserCostModel::AnswersRefused() const {
  return past_refused_ + (calls_ == nullptr ? 0 : calls_->refused());
}

namespace {

absl::Status CheckTable(const gpushare_cost_model_table& table) {
  if (table.version != GPUSHARE_COST_MODEL_VERSION) {
    return absl::UnimplementedError(absl::StrCat("The cost model table has version ", table.version,
                                                 ", and this library knows version ",
                                                 GPUSHARE_COST_MODEL_VERSION, "."));
  }
  return CheckName("cost_model_table.name", table.name);
}

}  // namespace
}  // namespace gpushare::abi

gpushare_status gpushare_set_user_cost_model(gpushare_runtime* runtime,
                                             const gpushare_cost_model_table* table) noexcept {
  return gpushare::abi::Enter([&]() -> absl::Status {
    GPUSHARE_FIND(object, runtime);
    std::unique_ptr<gpushare::abi::CostModelCalls> calls;
    if (table != nullptr) {
      gpushare_cost_model_table known;
      GPUSHARE_RETURN_IF_ERROR(gpushare::abi::ReadOptions("cost_model_table", table, &known));
      GPUSHARE_RETURN_IF_ERROR(gpushare::abi::CheckTable(known));
      calls = std::make_unique<gpushare::abi::CostModelCalls>(known, object->log);
      calls->Arm();
    }
    object->scheduler->ChangeModel([&] { object->cost_model->Exchange(calls); });
    return absl::OkStatus();
  });
}
