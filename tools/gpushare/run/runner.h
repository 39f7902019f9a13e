// One run: a set of apps on one fresh runtime under one policy, open loop.
//
// Latency is the completion, as the host sees it, minus the *intended* arrival: a slow device
// cannot hide its delay. BE apps keep a fixed number of tasks pending until the last arrival; then
// the run drains. Every accepted task must complete exactly once with verdict OK and a right
// result, or the run fails.
//
// In virtual time the caller's thread drives the runtime from event to event. In real time
// (DeviceChoice::real_time) the library's thread drives it. The caller's thread is then the load
// thread: it spins until each intended arrival and submits. A warm-up that is not counted comes
// first.
//
// Threads: a run belongs to its caller's thread. In virtual time runs of different threads share
// nothing. In real time there is one run at a time.

#ifndef GPUSHARE_TOOLS_GPUSHARE_RUN_RUNNER_H_
#define GPUSHARE_TOOLS_GPUSHARE_RUN_RUNNER_H_

#include <cstdint>

#include "tools/gpushare/base/library.h"
#include "tools/gpushare/run/run_outcome.h"
#include "tools/gpushare/run/run_plan.h"
#include "tools/gpushare/scenario/scenario.h"
#include "tools/gpushare/workloads/workloads.h"

namespace gpushare::tool {

// Throws InputError or RunError.
RunOutcome ExecuteRun(const RunPlan& plan);

// Median latency of a few queries, one after another, on an idle device under the policy `bare`.
int64_t MeasureSoloNs(const DeviceChoice& device, Workloads& workloads, const LcApp& app);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_RUN_RUNNER_H_
