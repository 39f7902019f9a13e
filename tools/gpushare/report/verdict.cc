#include "tools/gpushare/report/verdict.h"

#include <algorithm>

#include "tools/gpushare/base/text.h"

namespace gpushare::tool {

std::vector<PolicyVerdict> JudgePolicies(const ColocateResult& result) {
  std::vector<PolicyVerdict> verdicts;
  for (const std::string& policy : result.policies) {
    PolicyVerdict verdict;
    verdict.policy = policy;
    int64_t rates = 0;
    for (const RunResult& run : result.runs) {
      if (run.policy != policy) continue;
      ++verdict.cases;
      bool has_line = false;
      for (const LcResult& app : run.lc) has_line |= app.qos_ns > 0;
      verdict.worst_p50_over_alone = std::max(verdict.worst_p50_over_alone, WorstP50OverAlone(run));
      verdict.worst_p99_over_alone = std::max(verdict.worst_p99_over_alone, WorstP99OverAlone(run));
      verdict.cases_with_line += has_line;
      verdict.cases_met += has_line && KeepsQos(run);
      verdict.be_rate_mean += MeanBeRate(run);
      verdict.several_be_apps |= run.be.size() > 1;
      for (const BeResult& app : run.be) {
        verdict.be_rate_least =
            rates++ == 0 ? app.rate_of_solo : std::min(verdict.be_rate_least, app.rate_of_solo);
        verdict.be_rate_most = std::max(verdict.be_rate_most, app.rate_of_solo);
      }
      if (KeepsQos(run)) {
        ++verdict.cases_kept;
        verdict.gain_when_kept_mean += run.work_rate - 1;
      }
    }
    if (verdict.cases > 0) {
      verdict.be_rate_mean /= verdict.cases;
      if (verdict.cases_kept > 0) verdict.gain_when_kept_mean /= verdict.cases_kept;
      verdicts.push_back(verdict);
    }
  }
  return verdicts;
}

MeasuredVerdict JudgeMeasured(const ColocateResult& result, const MeasuredResults& measured,
                              const std::string& policy) {
  MeasuredVerdict verdict;
  for (const RunResult& run : result.runs) {
    const double bound = WidestBound(run);
    if (run.policy != policy || bound == 0) continue;
    const MeasuredRow* row = measured.Find(run.case_name, policy);
    if (row == nullptr) continue;
    ++verdict.cases;
    verdict.cases_met += row->p99_over_alone <= bound;
    verdict.worst_p99_over_alone = std::max(verdict.worst_p99_over_alone, row->p99_over_alone);
  }
  return verdict;
}

std::string FewQueriesText(const ColocateResult& result) {
  size_t few = 0;
  size_t all = 0;
  int64_t least = kQueriesForP99;
  for (const RunResult& run : result.runs) {
    if (IsReference(run.policy) || run.lc.empty()) continue;
    ++all;
    int64_t queries = kQueriesForP99;
    for (const LcResult& app : run.lc) queries = std::min(queries, app.queries);
    few += queries < kQueriesForP99;
    least = std::min(least, queries);
  }
  if (few == 0) return "";
  return Format(
      "%zu of %zu runs have an LC app with fewer than %lld queries (the least: %lld), too few for "
      "a "
      "p99: it is the slowest query, and a bound that it keeps shows little.",
      few, all, static_cast<long long>(kQueriesForP99), static_cast<long long>(least));
}

std::string RunDeviceName(const ColocateResult& result) {
  if (result.device.simulated) return "simulated";
  return result.hardware.gpu.empty() ? result.device.name : result.hardware.gpu;
}

double MeanBeRate(const RunResult& run) {
  double sum = 0;
  for (const BeResult& app : run.be) sum += app.rate_of_solo;
  return run.be.empty() ? 0 : sum / static_cast<double>(run.be.size());
}

double WorstP50OverAlone(const RunResult& run) {
  double worst = 0;
  for (const LcResult& app : run.lc) worst = std::max(worst, app.p50_over_alone);
  return worst;
}

double WorstP99OverAlone(const RunResult& run) {
  double worst = 0;
  for (const LcResult& app : run.lc) worst = std::max(worst, app.p99_over_alone);
  return worst;
}

bool KeepsQos(const RunResult& run) {
  return std::all_of(run.lc.begin(), run.lc.end(), [](const LcResult& app) { return app.qos_met; });
}

double WidestBound(const RunResult& run) {
  double widest = 0;
  for (const LcResult& app : run.lc) widest = std::max(widest, app.p99_bound);
  return widest;
}

}  // namespace gpushare::tool
