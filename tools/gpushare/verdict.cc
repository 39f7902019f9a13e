#include "tools/gpushare/verdict.h"

#include <algorithm>

namespace gpushare::tool {

std::vector<PolicyVerdict> JudgePolicies(const ColocateResult& result) {
  std::vector<PolicyVerdict> verdicts;
  for (const std::string& policy : result.policies) {
    PolicyVerdict verdict;
    verdict.policy = policy;
    for (const RunResult& run : result.runs) {
      if (run.policy != policy) continue;
      ++verdict.cases;
      bool has_line = false;
      bool met = true;
      for (const LcResult& app : run.lc) {
        has_line |= app.qos_ns > 0;
        met &= app.qos_met;
        verdict.worst_p99_over_alone = std::max(verdict.worst_p99_over_alone, app.p99_over_alone);
      }
      verdict.cases_with_line += has_line;
      verdict.cases_met += has_line && met;
      verdict.be_rate_mean += run.be_rate_of_solo;
      verdict.gain_over_limit_mean += run.work_rate - 1;
    }
    if (verdict.cases > 0) {
      verdict.be_rate_mean /= verdict.cases;
      verdict.gain_over_limit_mean /= verdict.cases;
      verdicts.push_back(verdict);
    }
  }
  return verdicts;
}

}  // namespace gpushare::tool
