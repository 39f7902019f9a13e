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

#ifndef GPUSHARE_TOOLS_GPUSHARE_RUNNER_H_
#define GPUSHARE_TOOLS_GPUSHARE_RUNNER_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/gpushare/library.h"
#include "tools/gpushare/metrics.h"
#include "tools/gpushare/scenario.h"
#include "tools/gpushare/workloads.h"

namespace gpushare::tool {

struct LcPlan {
  const LcApp* app = nullptr;
  std::vector<int64_t> arrivals_ns;  // from the start; empty for a closed loop
  int64_t closed_queries = 0;        // closed loop: so many queries in all
  uint64_t think_seed = 0;
  int64_t solo_ns = 0;
  double p99_bound = 0;      // told to the library, 0: not
  int64_t p99_alone_ns = 0;  // given to the library; 0: unknown
  int64_t target_ns = 0;     // told to the library, 0: not
  bool reserve = false;
};

struct BePlan {
  const BeApp* app = nullptr;
  bool quota = false;
};

struct TraceWindow {
  std::string event_log_path;  // empty: no event log
  std::string perfetto_path;   // empty: none
  int64_t from_ns = 0;         // from the start
  int64_t length_ns = 0;
};

// How LC and BE share the GPU in a run without the library.
struct RawForm {
  bool priority = false;      // LC at the highest stream priority, BE at the lowest
  bool carveout_max = false;  // BE kernels prefer the maximum shared-memory carve-out
};

struct RunPlan {
  DeviceChoice device;
  Workloads* workloads = nullptr;  // must be given; not owned
  std::string policy;
  std::vector<LcPlan> lc;
  std::vector<BePlan> be;
  int64_t span_ns = 0;  // without LC apps: length of the run; with closed loops: its limit
  TraceWindow trace;
  bool raw = false;  // bare launches without the library (raw_run.h): the policy is only a name
  RawForm raw_form;
  const std::atomic<bool>* stop = nullptr;  // another thread sets it: give up soon
};

struct NamedId {
  uint32_t id = 0;
  std::string name;
  bool latency_critical = false;  // apps only
};

struct LcSamples {
  std::vector<int64_t> latencies_ns;  // by query
  // Raw runs: queries without an answer when the run was given up. Their latencies are the times
  // that they had waited by then.
  int64_t unanswered = 0;
};

struct BeWork {
  double work_per_second = 0;
  int64_t tasks = 0;
  int64_t evictions = 0;
};

struct RunOutcome {
  std::vector<LcSamples> lc;
  std::vector<BeWork> be;
  int64_t start_ns = 0;  // on the device's clock
  int64_t span_ns = 0;
  double utilisation = 0;
  double realised_load = 0;
  bool verified = false;  // every app's answers were checked
  bool unstable = false;  // raw runs: the LC queue kept growing
  gpushare_runtime_stats stats = GPUSHARE_RUNTIME_STATS_INIT;
  bool traced = false;
  gpushare_trace_summary trace = GPUSHARE_TRACE_SUMMARY_INIT;
  std::vector<NamedId> apps;
  std::vector<NamedId> kernels;
};

// Throws InputError or RunError.
RunOutcome ExecuteRun(const RunPlan& plan);

// Median latency of a few queries, one after another, on an idle device under the policy `bare`.
int64_t MeasureSoloNs(const DeviceChoice& device, Workloads& workloads, const LcApp& app);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_RUNNER_H_
