// What one run does: the device, the policy, the apps with their arrivals, and what it records.
//
// Threads: plain data; only `stop` is shared with another thread.

#ifndef GPUSHARE_TOOLS_GPUSHARE_RUN_RUN_PLAN_H_
#define GPUSHARE_TOOLS_GPUSHARE_RUN_RUN_PLAN_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/gpushare/base/library.h"
#include "tools/gpushare/scenario/scenario.h"
#include "tools/gpushare/workloads/workloads.h"

namespace gpushare::tool {

struct LcPlan {
  const LcApp* app = nullptr;
  std::vector<int64_t> arrivals_ns;  // from the start; empty for a closed loop
  int64_t closed_queries = 0;        // closed loop: so many queries in all
  uint64_t think_seed = 0;
  double load = 0;  // of the app, where its arrivals follow one
  int64_t solo_ns = 0;
  double p99_bound = 0;      // given to the library; 0: none
  double p50_bound = 0;      // the same
  int64_t p99_alone_ns = 0;  // given to the library; 0: unknown
  int64_t target_ns = 0;     // given to the library; 0: none
  bool reserve = false;
};

// Whether the app's queries come one in each round of BE tasks (ArrivalKind::kAfterBe).
inline bool InRounds(const LcPlan& plan) {
  return plan.app->arrivals.kind == ArrivalKind::kAfterBe;
}

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

// Longest round: a policy may hold BE tasks for ever. Then no further round begins.
inline constexpr int64_t kRoundNsMax = int64_t{10} * 1'000'000'000;

struct RunPlan {
  DeviceChoice device;
  Workloads* workloads = nullptr;  // must be given; not owned
  std::string policy;
  std::vector<LcPlan> lc;
  std::vector<BePlan> be;
  const std::vector<FusedPair>* fused = nullptr;  // of kernels that the apps use; null: none
  const PartitionSpec* partitions = nullptr;      // plan for the periodic apps; null: no plan
  int64_t round_ns_max = kRoundNsMax;             // in rounds: tests have shorter ones
  int64_t span_ns = 0;  // without LC apps: length of the run; with closed loops: its limit
  TraceWindow trace;
  bool raw = false;  // bare launches without the library (raw_run.h): the policy is only a name
  RawForm raw_form;
  const std::atomic<bool>* stop = nullptr;  // another thread sets it: give up soon
};

// Whether the run has rounds: BE apps submit `depth` tasks a queue at once, the LC apps' queries
// follow, and the next round begins when all of them have ended.
inline bool InRounds(const RunPlan& plan) { return !plan.lc.empty() && InRounds(plan.lc.front()); }

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_RUN_RUN_PLAN_H_
