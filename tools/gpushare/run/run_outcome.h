// What one run measured: the latencies of LC queries, the work of BE apps, the library's counters.
//
// Threads: plain data.

#ifndef GPUSHARE_TOOLS_GPUSHARE_RUN_RUN_OUTCOME_H_
#define GPUSHARE_TOOLS_GPUSHARE_RUN_RUN_OUTCOME_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tools/gpushare/base/library.h"

namespace gpushare::tool {

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
  gpushare_app_guarantee guarantee = GPUSHARE_APP_GUARANTEE_INIT;  // at the end of the span
};

struct BeWork {
  double work_per_second = 0;
  int64_t tasks = 0;
  int64_t evictions = 0;
  gpushare_app_guarantee guarantee = GPUSHARE_APP_GUARANTEE_INIT;  // at the end of the span
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

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_RUN_RUN_OUTCOME_H_
