// The verdict on a run, one line for each policy: QoS kept or not, and what BE got.

#ifndef GPUSHARE_TOOLS_GPUSHARE_REPORT_VERDICT_H_
#define GPUSHARE_TOOLS_GPUSHARE_REPORT_VERDICT_H_

#include <cstdint>
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
  int cases_kept = 0;            // no LC app missed its line; one without a line cannot
  // Work rate - 1 over these cases: above 0, overlap gave more than time sharing. A policy that
  // breaks its bounds gives BE more, so its other cases compare with nothing. Rates of several BE
  // apps do not add up to a share of the device, because copies take no time of its SMs.
  double gain_when_kept_mean = 0;
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

// Fewer queries than this have no p99: the nearest rank is then the slowest query.
inline constexpr int64_t kQueriesForP99 = 100;
// A sentence if runs that judge a policy have fewer queries than that; "" if none has.
std::string FewQueriesText(const ColocateResult& result);

// "simulated", else the GPU, else the name of the device.
std::string RunDeviceName(const ColocateResult& result);

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
