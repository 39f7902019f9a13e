// The calls of a user cost model's table; see cost_model_calls.h.

#include "bindings/c/cost_model_calls.h"

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bindings/c/convert.h"
#include "bindings/c/errors.h"
#include "src/core/base/application_call.h"
#include "src/core/base/exhaustion.h"
#include "src/core/base/limits.h"

namespace gpushare::abi {
namespace {

static_assert(core::kMaxDurationNs == int64_t{3600} * 1000 * 1000 * 1000,
              "the header says an hour");

// Durations are divided by a speed: a smaller one would overflow an hour.
constexpr double kSpeedMin = 0.001;
constexpr char kRanges[] =
    "a duration lies between 1 ns and one hour, an error between 0 ns and one hour, `trained` is 0 "
    "or 1, and `reserved` is 0";

bool InRange(double value, double least, double most) { return value >= least && value <= most; }

bool IsPrediction(const gpushare_prediction& answer) {
  return answer.duration_ns >= 1 && answer.duration_ns <= core::kMaxDurationNs &&
         answer.error_ns >= 0 && answer.error_ns <= core::kMaxDurationNs &&
         (answer.trained == 0 || answer.trained == 1) && answer.reserved == 0;
}

core::Prediction FromC(const gpushare_prediction& answer) {
  return {answer.duration_ns, answer.error_ns, answer.trained == 1};
}

std::string Describe(const gpushare_prediction& answer) {
  return absl::StrCat(answer.duration_ns, " ns with an error of ", answer.error_ns,
                      " ns, `trained` ", answer.trained, " and `reserved` ", answer.reserved);
}

gpushare_task_features View(const core::TaskFeatures& task) {
  gpushare_task_features out = {};
  out.struct_size = sizeof(out);
  out.kernel_id = task.kernel == nullptr ? 0 : task.kernel->id.value;
  out.kernel_name = task.kernel == nullptr ? nullptr : task.kernel->name.c_str();
  out.kind = ToC(task.kind);
  out.app_id = task.app_id.value;
  out.block_tasks = task.block_tasks;
  out.size_bytes = task.bytes;
  out.declared_ns = task.declared_ns;
  out.direction = static_cast<int32_t>(task.direction);
  out.pinned = task.pinned ? 1 : 0;
  return out;
}

gpushare_confined_kernel View(const ConfinedKernel& side) {
  return {sizeof(gpushare_confined_kernel), side.kernel.id.value, side.kernel.name.c_str(),
          side.sms, 0};
}

gpushare_fused_features View(const core::FusedFeatures& fused) {
  const core::FusedKernelDesc& kernel = *fused.kernel;
  gpushare_fused_features out = {};
  out.struct_size = sizeof(out);
  out.blocks_per_sm = kernel.blocks_per_sm;
  out.name = kernel.name.c_str();
  out.tensor_kernel_id = kernel.tensor_part.value;
  out.cuda_kernel_id = kernel.cuda_part.value;
  out.tensor_blocks = kernel.tensor_blocks;
  out.cuda_blocks = kernel.cuda_blocks;
  out.tensor_block_tasks = fused.tensor_block_tasks;
  out.cuda_block_tasks = fused.cuda_block_tasks;
  out.opportune_load_ratio = kernel.opportune_load_ratio;
  out.opportune_duration_ratio = kernel.opportune_duration_ratio;
  return out;
}

gpushare_co_resident_side View(const core::CoResidentSide& side) {
  return {sizeof(gpushare_co_resident_side),
          side.kernel->id.value,
          side.kernel->name.c_str(),
          side.workers_per_sm,
          0,
          side.block_tasks};
}

gpushare_co_resident_view View(const core::CoResident& beside) {
  return {beside.kernel == nullptr ? nullptr : beside.kernel->name.c_str(),
          beside.kernel == nullptr ? 0 : beside.kernel->id.value, beside.sms,
          beside.same_sms ? 1 : 0, 0};
}

const char* NameOf(const core::TaskFeatures& task) {
  if (task.kernel != nullptr) return task.kernel->name.c_str();
  return task.kind == core::TaskKind::kMemcpy ? "a copy" : "opaque work";
}

}  // namespace

CostModelCalls::CostModelCalls(const gpushare_cost_model_table& table, const Log& log)
    : table_(table), user_("cost model", table.name, table.destroy, table.user, log) {
  table_.name = nullptr;  // the caller's string lives only for the call
}

bool CostModelCalls::PredictSolo(const core::TaskFeatures& task, core::Prediction& out) {
  if (table_.predict_solo == nullptr) return false;
  const gpushare_task_features features = View(task);
  gpushare_prediction answer = {};
  if (!Ask("predict_solo", [&] { return table_.predict_solo(table_.user, &features, &answer); })) {
    return false;
  }
  if (!IsPrediction(answer)) {
    return Refuse([&] {
      return absl::StrCat("answers predict_solo of '", NameOf(task), "' with ", Describe(answer),
                          "; ", kRanges);
    });
  }
  out = FromC(answer);
  return true;
}

bool CostModelCalls::PredictBeside(ConfinedKernel kernel, ConfinedKernel neighbour, double& out) {
  if (table_.predict_beside == nullptr) return false;
  const gpushare_confined_kernel first = View(kernel);
  const gpushare_confined_kernel second = View(neighbour);
  double factor = 0;
  if (!Ask("predict_beside",
           [&] { return table_.predict_beside(table_.user, &first, &second, &factor); })) {
    return false;
  }
  if (!InRange(factor, kSpeedMin, 1)) {
    return Refuse([&] {
      return absl::StrCat("answers predict_beside of '", first.kernel_name, "' on ", first.sms,
                          " SMs beside '", second.kernel_name, "' with ", factor,
                          ", and the factor lies between ", kSpeedMin, " and 1");
    });
  }
  out = factor;
  return true;
}

bool CostModelCalls::PredictFused(const core::FusedFeatures& fused, core::Prediction& out) {
  if (table_.predict_fused == nullptr || fused.kernel == nullptr) return false;
  const gpushare_fused_features features = View(fused);
  gpushare_prediction answer = {};
  if (!Ask("predict_fused",
           [&] { return table_.predict_fused(table_.user, &features, &answer); })) {
    return false;
  }
  if (!IsPrediction(answer)) {
    return Refuse([&] {
      return absl::StrCat("answers predict_fused of '", features.name, "' with ", Describe(answer),
                          "; ", kRanges);
    });
  }
  out = FromC(answer);
  return true;
}

bool CostModelCalls::PredictCoResident(const core::CoResidentSide& first,
                                       const core::CoResidentSide& second,
                                       core::CoResidentPrediction& out) {
  const bool asks = table_.predict_co_resident != nullptr;
  if (!asks || first.kernel == nullptr || second.kernel == nullptr) return false;
  const std::array<gpushare_co_resident_side, 2> sides = {View(first), View(second)};
  gpushare_co_resident_prediction answer = {};
  if (!Ask("predict_co_resident", [&] {
        return table_.predict_co_resident(table_.user, &sides[0], &sides[1], &answer);
      })) {
    return false;
  }
  for (int i = 0; i < 2; ++i) {
    if (InRange(answer.speed[i], kSpeedMin, 1) && InRange(answer.speed_error, 0, 1) &&
        IsPrediction(answer.finish[i])) {
      continue;
    }
    return Refuse([&] {
      return absl::StrCat("answers predict_co_resident of '", sides[0].kernel_name, "' and '",
                          sides[1].kernel_name, "' with speed[", i, "] = ", answer.speed[i],
                          ", speed_error = ", answer.speed_error, " and finish[", i,
                          "] = ", Describe(answer.finish[i]), "; a speed lies between ", kSpeedMin,
                          " and 1, its error between 0 and 1, ", kRanges);
    });
  }
  out.speed = {answer.speed[0], answer.speed[1]};
  out.speed_error = answer.speed_error;
  out.finish = {FromC(answer.finish[0]), FromC(answer.finish[1])};
  out.known = true;
  return true;
}

void CostModelCalls::Observe(const core::Observation& observation) {
  if (table_.observe == nullptr) return;
  const gpushare_task_features task = View(observation.features);
  gpushare_fused_features fused = {};
  const bool is_fused = observation.fused != nullptr && observation.fused->kernel != nullptr;
  if (is_fused) fused = View(*observation.fused);
  // The flow names one neighbour at most.
  gpushare_co_resident_view beside = {};
  if (!observation.beside.empty()) beside = View(observation.beside.front());
  gpushare_observation out = {};
  out.struct_size = sizeof(out);
  out.form = static_cast<int32_t>(observation.form);
  out.task = &task;
  out.fused = is_fused ? &fused : nullptr;
  out.beside = &beside;
  out.beside_count = observation.beside.empty() ? 0 : 1;
  out.beside_stride = sizeof(beside);
  out.sms = observation.sms;
  out.workers = observation.workers;
  out.predicted_ns = observation.predicted_ns;
  out.measured_ns = observation.measured_ns;
  out.evicted = observation.evicted ? 1 : 0;
  if (Ask("observe", [&] { return table_.observe(table_.user, &out); })) ++changes_;
}

bool CostModelCalls::Ask(const char* function, absl::FunctionRef<gpushare_bool()> call) {
  gpushare_bool answer = 0;
  std::string thrown;
  {
    const TableScope scope("A function of a cost model calls gpushare, and it may only predict.");
    thrown = core::ThrownBy([&] { answer = call(); });
  }
  if (!thrown.empty()) {
    RefuseException(function, thrown);
    return false;
  }
  if (answer == 0 || answer == 1) return answer == 1;
  return Refuse([&] {
    return absl::StrCat("returns ", answer, " from ", function, ", and the result is 0 or 1");
  });
}

bool CostModelCalls::Refuse(absl::FunctionRef<std::string()> describe) {
  ++refused_;
  if (!std::exchange(reported_answer_, true)) {
    Report([&] {
      return absl::StrCat("The cost model '", user_.name(), "' ", describe(),
                          ". The built-in model answers instead; further such answers are counted "
                          "in gpushare_predictions_refused.");
    });
  }
  return false;
}

void CostModelCalls::RefuseException(const char* function, const std::string& thrown) {
  ++refused_;
  if (std::exchange(reported_exception_, true)) return;
  Report([&] {
    return absl::StrCat("The ", function, " of cost model '", user_.name(), "' threw ", thrown,
                        ". The built-in model answers where it throws; further exceptions are "
                        "counted in gpushare_predictions_refused.");
  });
}

void CostModelCalls::Report(absl::FunctionRef<std::string()> sentence) {
  std::string text = core::TextOf(sentence);
  if (text.empty()) return;  // no memory
  // Two reports of one pass of the flow are one message.
  report_ = report_.empty() ? std::move(text)
                            : core::TextOf([&] { return absl::StrCat(report_, " ", text); });
  ++changes_;
}

std::string CostModelCalls::TakeReport() { return std::exchange(report_, {}); }

}  // namespace gpushare::abi
