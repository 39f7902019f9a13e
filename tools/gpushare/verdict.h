// The verdict on a run, one line for each policy: QoS kept or not, and what BE got.

#ifndef GPUSHARE_TOOLS_GPUSHARE_VERDICT_H_
#define GPUSHARE_TOOLS_GPUSHARE_VERDICT_H_

#include <string>
#include <vector>

#include "tools/gpushare/colocate.h"

namespace gpushare::tool {

// The head of the report and the table. For each policy: the number of cases in which every LC app
// kept its QoS line, and the mean BE rate over all cases.
struct PolicyVerdict {
  std::string policy;
  int cases = 0;
  int cases_met = 0;        // every LC app with a line kept it
  int cases_with_line = 0;  // at least one LC app has a line
  double be_rate_mean = 0;
  double gain_over_limit_mean = 0;  // work rate - 1: above 0, overlap gave more than time sharing
  double worst_p99_over_alone = 0;
};
std::vector<PolicyVerdict> JudgePolicies(const ColocateResult& result);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_VERDICT_H_
