// The result of one row from the outcome of its run: latencies against LC alone, work against BE
// alone. Callers name the row (RunResult::policy, case_name, load).
//
// Threads: any; pure.

#ifndef GPUSHARE_TOOLS_GPUSHARE_RUN_RUN_RESULT_H_
#define GPUSHARE_TOOLS_GPUSHARE_RUN_RUN_RESULT_H_

#include <cstdint>
#include <vector>

#include "tools/gpushare/run/metrics.h"
#include "tools/gpushare/run/run_outcome.h"
#include "tools/gpushare/run/run_plan.h"
#include "tools/gpushare/scenario/scenario.h"

namespace gpushare::tool {

// The bound on p99 over p99 alone: the case's, else the app's; 0: none.
double BoundOf(const Case& one, const LcApp& app);

// The latency target in nanoseconds: the app's own, else its multiple of one query alone; 0: none.
int64_t TargetOf(const LcPlan& plan);

// LC apps without BE.
RunResult LcAloneResult(const RunPlan& plan, const RunOutcome& outcome);

// One BE app without LC. Throws RunError if it did no work.
RunResult BeAloneResult(const RunPlan& plan, const RunOutcome& outcome);

// The BE apps of a case alone, as one row: work of each, mean utilisation.
RunResult JoinBeAlone(const std::vector<const RunResult*>& be_alone);

// LC apps under a policy, with BE or without. `lc_alone` has the same arrivals; `be_alone` has an
// entry for each BE app of the plan.
RunResult PolicyResult(const Case& one, const RunPlan& plan, const RunOutcome& outcome,
                       const RunResult& lc_alone, const std::vector<const RunResult*>& be_alone);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_RUN_RUN_RESULT_H_
