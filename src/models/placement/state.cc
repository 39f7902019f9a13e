// What stands on each GPU; see state.h.

#include "src/models/placement/state.h"

#include <algorithm>
#include <optional>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "src/core/promise/promise.h"

namespace gpushare::models::placement {

namespace {

// Sums of doubles: what is above a limit by less is rounding.
constexpr double kRounding = 1e-9;

}  // namespace

Problem::Problem(const Cluster& cluster, const PairSource& pairs, const Valuation& valuation)
    : cluster_(cluster), pairs_(pairs), valuation_(valuation) {
  for (size_t i = 0; i < cluster.gpus.size(); ++i) {
    group_of_name_.try_emplace(cluster.gpus[i].name, i);
    first_.push_back(gpus());
    group_.insert(group_.end(), static_cast<size_t>(cluster.gpus[i].count),
                  static_cast<int32_t>(i));
  }
}

double Problem::P99Limit(int32_t lc) const {
  const LcApp& app = cluster_.lc[static_cast<size_t>(lc)];
  const core::Promise promise = {
      .target_ns = app.target_ns, .p99_bound = app.p99_bound, .p99_alone_ns = app.p99_alone_ns};
  return promise.MostP99();
}

Problem::Pairing Problem::At(int32_t lc, int32_t be) const {
  if (lc == kNone) return {};
  const LcApp& app = cluster_.lc[static_cast<size_t>(lc)];
  const double limit = P99Limit(lc);
  const std::optional<PairPrediction> found =
      pairs_.Beside(app.kind, app.load, cluster_.be[static_cast<size_t>(be)].kind, limit);
  // Nobody knows what it gets and what it costs.
  if (!found) return {.verdict = Verdict::kUnknown, .be_rate = 0, .value = 0};
  const double p99 = found->p99_ratio + valuation_.error_bars * found->p99_error;
  return {.verdict = p99 <= limit + kRounding ? Verdict::kAllowed : Verdict::kBreaksBound,
          .p99 = p99,
          .be_rate = found->be_rate,
          .be_error = found->be_error,
          .value = found->be_rate - valuation_.risk * found->be_error};
}

std::string Problem::NameOf(int32_t gpu) const {
  const int32_t group = group_[static_cast<size_t>(gpu)];
  return absl::StrCat(cluster_.gpus[static_cast<size_t>(group)].name, ":",
                      gpu - first_[static_cast<size_t>(group)]);
}

int32_t Problem::GpuOf(const std::string& name) const {
  const size_t colon = name.rfind(':');
  int32_t index = 0;
  if (colon == std::string::npos || !absl::SimpleAtoi(name.substr(colon + 1), &index)) return kNone;
  const auto group = group_of_name_.find(absl::string_view(name).substr(0, colon));
  if (group == group_of_name_.end()) return kNone;
  const bool exists = index >= 0 && index < cluster_.gpus[group->second].count;
  return exists ? first_[group->second] + index : kNone;
}

State::State(const Problem& problem)
    : problem_(&problem),
      loads_(static_cast<size_t>(problem.gpus())),
      sums_(static_cast<size_t>(problem.gpus())) {
  for (int32_t gpu = 0; gpu < problem.gpus(); ++gpu) {
    sums_[static_cast<size_t>(gpu)].memory_left = problem.MemoryOf(gpu);
  }
}

void State::PutLc(int32_t gpu, int32_t lc) {
  loads_[static_cast<size_t>(gpu)].lc = lc;
  sums_[static_cast<size_t>(gpu)].memory_left -=
      problem_->cluster().lc[static_cast<size_t>(lc)].memory_bytes;
}

double State::WeightOf(int32_t be) const {
  return problem_->cluster().together == Together::kAtOnce
             ? problem_->cluster().be[static_cast<size_t>(be)].weight
             : 1;
}

double State::P99With(const Sums& sums, double p99) const {
  // What helps an LC app alone may not help it beside others: no pair counts as below 1.
  const double one = std::max(1.0, p99);
  return problem_->cluster().together == Together::kAtOnce ? sums.p99 + (one - 1)
                                                           : std::max(sums.p99, one);
}

State::Answer State::Ask(int32_t gpu, int32_t be) const {
  const GpuLoad& load = loads_[static_cast<size_t>(gpu)];
  const Sums& sums = sums_[static_cast<size_t>(gpu)];
  if (static_cast<int32_t>(load.be.size()) >= problem_->cluster().be_per_gpu) return Answer::kFull;
  if (problem_->cluster().be[static_cast<size_t>(be)].memory_bytes > sums.memory_left) {
    return Answer::kMemory;
  }
  if (load.lc == kNone || !problem_->valuation().keep_bounds) return Answer::kFits;
  const Problem::Pairing pairing = problem_->At(load.lc, be);
  if (pairing.verdict == Problem::Verdict::kUnknown) return Answer::kUnknown;
  return P99With(sums, pairing.p99) <= problem_->P99Limit(load.lc) + kRounding
             ? Answer::kFits
             : Answer::kBreaksBound;
}

void State::Count(Sums& sums, const Problem::Pairing& pairing, double weight) const {
  sums.p99 = P99With(sums, pairing.p99);
  sums.weight += weight;
  sums.rate += weight * pairing.be_rate;
  sums.error += weight * pairing.be_error;
  sums.value += weight * pairing.value;
}

void State::Add(int32_t gpu, int32_t be) {
  GpuLoad& load = loads_[static_cast<size_t>(gpu)];
  Sums& sums = sums_[static_cast<size_t>(gpu)];
  load.be.push_back(be);
  sums.memory_left -= problem_->cluster().be[static_cast<size_t>(be)].memory_bytes;
  Count(sums, problem_->At(load.lc, be), WeightOf(be));
  ++be_placed_;
}

void State::Remove(int32_t gpu, int32_t be) {
  GpuLoad& load = loads_[static_cast<size_t>(gpu)];
  const auto found = std::find(load.be.begin(), load.be.end(), be);
  if (found == load.be.end()) return;
  load.be.erase(found);
  // Of a maximum nothing can be taken away, and differences of sums would drift.
  Sums sums;
  sums.memory_left = sums_[static_cast<size_t>(gpu)].memory_left +
                     problem_->cluster().be[static_cast<size_t>(be)].memory_bytes;
  for (const int32_t left : load.be) Count(sums, problem_->At(load.lc, left), WeightOf(left));
  sums_[static_cast<size_t>(gpu)] = sums;
  --be_placed_;
}

GpuEffect State::Of(int32_t gpu) const {
  const GpuLoad& load = loads_[static_cast<size_t>(gpu)];
  const Sums& sums = sums_[static_cast<size_t>(gpu)];
  if (load.be.empty()) {
    return {.value = load.lc == kNone ? problem_->valuation().free_gpu : 0};
  }
  return {.p99 = sums.p99,
          .be_rate = sums.rate / sums.weight,
          .be_error = sums.error / sums.weight,
          .value = sums.value / sums.weight};
}

double State::Value() const {
  double value = 0;
  for (int32_t gpu = 0; gpu < problem_->gpus(); ++gpu) value += Of(gpu).value;
  return value;
}

}  // namespace gpushare::models::placement
