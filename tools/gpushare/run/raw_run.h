// One run without the library: bare launches of the tasks of LC and BE apps, each app on its own
// stream. It measures LC alone, and how CUDA shares a GPU by itself.
//
// Arrivals, warm-up, span and checks of results are those of runner.h. The caller's thread spins on
// the wall clock. It launches a query's tasks at its arrival, polls a mark behind the query's last
// task, and meanwhile keeps a bounded number of BE tasks in flight. Latency is the time at which it
// sees the mark minus the intended arrival. LC launches come before BE launches.
//
// A baseline may starve LC, so the run is bounded. After the last arrival BE continues until every
// query is answered, for at most the length of the arrivals (at least one second). A query without
// an answer then counts with the time that it has waited. The run is `unstable` if there is such a
// query, or if more than a tenth of the queries still waited at the last arrival.
//
// Threads: one run at a time, on its caller's thread.

#ifndef GPUSHARE_TOOLS_GPUSHARE_RUN_RAW_RUN_H_
#define GPUSHARE_TOOLS_GPUSHARE_RUN_RAW_RUN_H_

#include "tools/gpushare/run/run_outcome.h"
#include "tools/gpushare/run/run_plan.h"

namespace gpushare::tool {

// plan.workloads must support raw apps (HasRaw). Throws InputError or RunError.
RunOutcome ExecuteRawRun(const RunPlan& plan);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_RUN_RAW_RUN_H_
