// Judges the Gaussian process over counters: on pairs that did not train it, and on kernels that
// did not, as a user's kernel is registered; and what runs add to it.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/models/co_resident/fit.h"
#include "src/models/co_resident/model.h"
#include "src/models/evaluation/counted_kernels.h"
#include "src/models/evaluation/judge_learned_runs.h"
#include "src/models/evaluation/judged.h"
#include "src/models/evaluation/shared_sm_report.h"
#include "src/models/samples/hold_out.h"

namespace gpushare::models {
namespace {

co_resident::Kernel KernelOf(const CountedKernel& kernel) {
  return {kernel.counters, kernel.saturating_occupancy, kernel.workers_per_sm_max};
}

co_resident::Sample SampleOf(const SharedSm& shared) {
  return {{KernelOf(*shared.kernel), shared.row->workers_per_sm},
          {KernelOf(*shared.neighbour), shared.row->neighbour_workers_per_sm},
          shared.speed};
}

std::vector<JudgedSharedSm> JudgeRows(const co_resident::Model& model,
                                      const std::vector<SharedSm>& rows, int32_t sm_count) {
  std::map<const CountedKernel*, co_resident::View> views;
  const auto view_of = [&](const CountedKernel* kernel) {
    const auto [found, is_new] = views.try_emplace(kernel);
    if (is_new) found->second = model.ViewOf(KernelOf(*kernel));
    return &found->second;
  };
  std::vector<JudgedSharedSm> judged;
  for (const SharedSm& shared : rows) {
    const co_resident::Speeds speeds =
        model.Predict({view_of(shared.kernel), shared.row->workers_per_sm},
                      {view_of(shared.neighbour), shared.row->neighbour_workers_per_sm});
    if (!speeds.known) continue;
    // The IPC alone is measured, so that only the speed is predicted.
    const double ipc = MeasuredIpcShare(shared, sm_count) / shared.speed * speeds.speed[0];
    judged.push_back({shared, speeds.speed[0], ipc});
  }
  return judged;
}

co_resident::Model Fitted(const std::vector<co_resident::Sample>& samples) {
  return co_resident::Model(co_resident::FitPairs(samples));
}

// Each kernel is left out once, with those of its fold, and registered by its counters.
constexpr size_t kKernelFolds = 5;

using FoldOf = std::map<const CountedKernel*, size_t>;

FoldOf FoldsOf(const std::map<std::string, CountedKernel>& kernels) {
  FoldOf folds;
  for (const auto& [name, kernel] : kernels) folds[&kernel] = folds.size() % kKernelFolds;
  return folds;
}

// Rows of which a kernel is registered so. `timed`: somebody timed its saturating occupancy too, as
// a pre-run does.
void JudgeRegistered(const co_resident::Model& model, const std::vector<SharedSm>& rows,
                     const FoldOf& folds, size_t fold, bool timed, int32_t sm_count,
                     std::vector<Judged>& out) {
  std::map<const CountedKernel*, CountedKernel> registered;
  for (const auto& [kernel, of] : folds) {
    registered[kernel] = *kernel;
    if (of == fold && !timed) registered[kernel].saturating_occupancy = 0;
  }
  std::vector<SharedSm> chosen;
  for (const SharedSm& shared : rows) {
    if (folds.at(shared.kernel) != fold && folds.at(shared.neighbour) != fold) continue;
    SharedSm one = shared;
    one.kernel = &registered.at(shared.kernel);
    one.neighbour = &registered.at(shared.neighbour);
    chosen.push_back(one);
  }
  std::vector<Judged> judged;
  ReportSpeeds(timed ? "counters and a timed occupancy" : "counters alone",
               JudgeRows(model, chosen, sm_count), judged);
  for (Judged& one : judged) {
    one.family = "kernels registered by counters";
    out.push_back(std::move(one));
  }
}

void JudgeKernelsByCounters(const std::vector<SharedSm>& rows,
                            const std::map<std::string, CountedKernel>& kernels, int32_t sm_count,
                            std::vector<Judged>& out) {
  const FoldOf folds = FoldsOf(kernels);
  for (size_t fold = 0; fold < kKernelFolds; ++fold) {
    std::vector<co_resident::Sample> training;
    for (const SharedSm& shared : rows) {
      if (folds.at(shared.kernel) == fold || folds.at(shared.neighbour) == fold) continue;
      training.push_back(SampleOf(shared));
    }
    const co_resident::Model model(co_resident::FitWeights(training));
    for (const bool timed : {true, false}) {
      JudgeRegistered(model, rows, folds, fold, timed, sm_count, out);
    }
  }
}

bool IsHeldOutKernel(const std::string& name) { return IsHeldOut(absl::StrCat("kernel ", name)); }

}  // namespace

void JudgeCoResident(const Samples& samples, std::vector<Judged>& out) {
  const std::map<std::string, CountedKernel> kernels = CountedKernels(samples);
  std::vector<co_resident::Sample> training;
  std::vector<co_resident::Sample> training_without_kernels;
  std::vector<SharedSm> held_out;
  std::vector<SharedSm> never_met;
  const std::vector<SharedSm> all = SharedSms(samples, kernels);
  for (const SharedSm& shared : all) {
    const bool is_new =
        IsHeldOutKernel(shared.row->kernel) || IsHeldOutKernel(shared.row->neighbour);
    if (shared.held_out) held_out.push_back(shared);
    if (!shared.held_out) training.push_back(SampleOf(shared));
    if (is_new) never_met.push_back(shared);
    if (!is_new) training_without_kernels.push_back(SampleOf(shared));
  }
  const char* const model = "Gaussian process over counters";
  const int32_t sms = samples.head.sm_count;
  const co_resident::Model fitted = Fitted(training);
  const std::vector<JudgedSharedSm> rows = JudgeRows(fitted, held_out, sms);
  ReportSpeeds(model, rows, out);
  ReportIpc(model, rows, sms, out);
  ReportThroughput(model, rows, out);
  ReportSpeeds("the same, kernels never met",
               JudgeRows(Fitted(training_without_kernels), never_met, sms), out);
  JudgeKernelsByCounters(all, kernels, sms, out);
  JudgeLearnedRuns(fitted.state(), held_out, sms, out);
}

}  // namespace gpushare::models
