// The verdict on a run, one line for each policy: QoS kept or not, and what BE got.

#ifndef GPUSHARE_TOOLS_GPUSHARE_REPORT_VERDICT_H_
#define GPUSHARE_TOOLS_GPUSHARE_REPORT_VERDICT_H_

#include <string>
#include <vector>

#include "tools/gpushare/colocate/colocate.h"
#include "tools/gpushare/report/measured.h"

namespace gpushare::tool {

// The head of the report and the table. For each policy: the number of cases in which every LC app
// kept its QoS line, and the BE rates over all cases.
struct PolicyVerdict {
  std::string policy;
  int cases = 0;
  int cases_met = 0;         // every LC app with a line kept it
  int cases_with_line = 0;   // at least one LC app has a line
  double be_rate_mean = 0;   // of MeanBeRate
  double be_rate_least = 0;  // of one BE app in one case
  double be_rate_most = 0;
  bool several_be_apps = false;  // in some case
  // Work rate - 1: above 0, overlap gave more than time sharing. Rates of several BE apps do not
  // add up to a share of the device, because copies take no time of its SMs.
  double gain_over_limit_mean = 0;
  double worst_p50_over_alone = 0;
  double worst_p99_over_alone = 0;
};
std::vector<PolicyVerdict> JudgePolicies(const ColocateResult& result);

// What a GPU measured of the cases of `result` that state a bound on p99.
struct MeasuredVerdict {
  int cases = 0;  // that the GPU ran under the policy
  int cases_met = 0;
  double worst_p99_over_alone = 0;
};
MeasuredVerdict JudgeMeasured(const ColocateResult& result, const MeasuredResults& measured,
                              const std::string& policy);

// The mean of the BE apps' rates of solo; 0 without any.
double MeanBeRate(const RunResult& run);
// The largest p50 or p99 over alone of the run's LC apps, 0 without any.
double WorstP50OverAlone(const RunResult& run);
double WorstP99OverAlone(const RunResult& run);
// Whether every LC app with a QoS line kept it.
bool KeepsQos(const RunResult& run);
// The widest bound on p99 that the run's LC apps asked for, 0: none did.
double WidestBound(const RunResult& run);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_REPORT_VERDICT_H_
