// One run without the library: bare launches of the LC apps' and BE apps' tasks, each app on a
// stream of its own. What "alone" and CUDA's own ways of sharing are measured with.
//
// The same arrivals, warm-up, span and checks of answers as in runner.h. One thread, the caller's,
// spins on the wall clock: it launches a query's tasks at its arrival, polls a mark behind the
// query's last task, and in between keeps a bounded number of BE tasks in flight. Latency is the
// moment at which the mark was seen minus the intended arrival. LC comes first wherever both have
// something to launch.
//
// A baseline may starve LC, so the run is bounded: BE goes on until every query is answered, at
// most as long again as arrivals came (at least one second). What has no answer then counts with
// the time that it had waited. The run is `unstable` when there is such a query, or when at the
// last arrival more than a tenth of the queries were still waiting.
//
// Threads: one run at a time, on its caller's thread.

#ifndef GPUSHARE_TOOLS_GPUSHARE_RAW_RUN_H_
#define GPUSHARE_TOOLS_GPUSHARE_RAW_RUN_H_

#include "tools/gpushare/runner.h"

namespace gpushare::tool {

// plan.workloads must have raw apps. Throws InputError or RunError.
RunOutcome ExecuteRawRun(const RunPlan& plan);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_RAW_RUN_H_
