// Rows and predictions; see predicted_pairs.h.

#include "tools/gpushare/plan/predicted_pairs.h"

#include <algorithm>
#include <set>

#include "src/models/placement/cost_model_pairs.h"
#include "tools/gpushare/base/files.h"
#include "tools/gpushare/base/json_reader.h"
#include "tools/gpushare/base/limits.h"
#include "tools/gpushare/datacenter/warehouse.h"

namespace gpushare::tool {

namespace {

using models::placement::Cluster;
using models::placement::kLaunchesMax;
using models::placement::kPredictedLoadMax;
using models::placement::kRatioMax;
using models::placement::PairPrediction;
using models::placement::PairRow;

template <class App>
const App* Find(const std::vector<App>& apps, const std::string& name) {
  for (const App& app : apps) {
    if (app.name == name) return &app;
  }
  return nullptr;
}

template <class App>
std::set<std::string> KindsOf(const std::vector<App>& apps) {
  std::set<std::string> kinds;
  for (const App& app : apps) kinds.insert(app.kind);
  return kinds;
}

// Of a scenario of `gpushare colocate` or of `gpushare datacenter`.
Scenario AppsOf(const std::string& file) {
  const std::string text = ReadFile(file, kScenarioBytesMax);
  Scenario out = ParseJson(text, file).contains("datacenter") ? ParseWarehouse(text, file).apps
                                                              : ParseScenario(text, file);
  RequireProfile(out);
  return out;
}

}  // namespace

PredictedPairs::PredictedPairs(const Cluster& cluster, const std::string& scenario)
    : table_(cluster.pairs), workloads_(MakeNoWorkloads()) {
  for (const PairRow& row : cluster.pairs) with_rows_.emplace(row.lc, row.be);
  const Scenario known = AppsOf(FindScenario(scenario));
  runtime_ = OpenRuntime({.device = "sim", .profile = known.profile}, "bare");
  kernels_ = std::make_unique<KernelTable>(runtime_.get(), *workloads_);
  const auto absent = [&](const std::string& kind) {
    reasons_[kind] = "the scenario '" + known.name + "' has no such app";
  };
  for (const std::string& kind : KindsOf(cluster.lc)) {
    const auto* const app = Find(known.lc, kind);
    if (app == nullptr) {
      absent(kind);
    } else {
      lc_[kind] = LaunchesOf(kind, app->tasks);
    }
  }
  for (const std::string& kind : KindsOf(cluster.be)) {
    const auto* const app = Find(known.be, kind);
    if (app == nullptr) {
      absent(kind);
      continue;
    }
    if (app->tasks.size() > 1) {
      reasons_[kind] = "its steps have several tasks, and one kernel or graph is predicted";
      continue;
    }
    be_[kind] = LaunchesOf(kind, app->tasks);
  }
}

PredictedPairs::Launches PredictedPairs::LaunchesOf(const std::string& kind,
                                                    const std::vector<WorkItem>& tasks) {
  Launches out;
  for (const WorkItem& task : tasks) {
    if (task.is_copy()) {
      reasons_[kind] = "it copies, and copies are not predicted";
      return {};
    }
    gpushare_kernel* const kernel = kernels_->Get(task.kernel);
    if (!out.empty() && out.back().kernel == kernel && out.back().block_tasks == task.block_tasks) {
      ++out.back().count;
      continue;
    }
    if (out.size() == kLaunchesMax) {
      reasons_[kind] = "its query has more than 64 different launches in a row";
      return {};
    }
    out.push_back(GPUSHARE_PAIR_LAUNCH_INIT);
    out.back().kernel = kernel;
    out.back().block_tasks = task.block_tasks;
    out.back().count = 1;
  }
  return out;
}

std::optional<PairPrediction> PredictedPairs::Beside(absl::string_view lc_kind, double load,
                                                     absl::string_view be_kind,
                                                     double p99_limit) const {
  const std::string lc(lc_kind);
  const std::string be(be_kind);
  if (with_rows_.count({lc, be}) != 0) return table_.Beside(lc_kind, load, be_kind, p99_limit);
  const Key key(lc, load, be, p99_limit);
  const auto found = predicted_.find(key);
  if (found != predicted_.end()) return found->second;
  return predicted_.emplace(key, Predict(lc, load, be, p99_limit)).first->second;
}

PredictedPairs::Prediction PredictedPairs::Predict(const std::string& lc_kind, double load,
                                                   const std::string& be_kind,
                                                   double p99_limit) const {
  for (const std::string& kind : {lc_kind, be_kind}) {
    const auto reason = reasons_.find(kind);
    if (reason == reasons_.end()) continue;
    not_predicted_.insert(*reason);
    return std::nullopt;
  }
  if (load >= kPredictedLoadMax) {
    not_predicted_[lc_kind] = "its load is above 63 / 64";
    return std::nullopt;
  }
  const Launches& query = lc_.at(lc_kind);
  gpushare_place_pair pair = GPUSHARE_PLACE_PAIR_INIT;
  pair.load = load;
  Check(gpushare_predict_pair(runtime_.get(), query.data(), query.size(), be_.at(be_kind).data(),
                              std::clamp(p99_limit, 1.0, kRatioMax), &pair));
  return PairPrediction{.p99_ratio = pair.p99_ratio,
                        .p99_error = pair.p99_error,
                        .be_rate = pair.be_rate,
                        .be_error = pair.be_error};
}

std::vector<PairRow> PredictedPairs::Rows() const {
  std::vector<PairRow> out;
  for (const auto& [key, prediction] : predicted_) {
    if (!prediction) continue;
    const auto& [lc, load, be, limit] = key;
    // Of one pair at one load the keys are in the order of the limit.
    if (!out.empty() && out.back().lc == lc && out.back().load == load && out.back().be == be) {
      continue;
    }
    out.push_back({.lc = lc,
                   .be = be,
                   .load = load,
                   .p99_ratio = prediction->p99_ratio,
                   .p99_error = prediction->p99_error,
                   .be_rate = prediction->be_rate,
                   .be_error = prediction->be_error});
  }
  return out;
}

std::vector<std::string> PredictedPairs::NotPredicted() const {
  std::vector<std::string> out;
  for (const auto& [kind, reason] : not_predicted_) {
    out.push_back("'" + kind + "' is not predicted: " + reason + ".");
  }
  return out;
}

}  // namespace gpushare::tool
