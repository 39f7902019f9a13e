// Intended arrival times of one LC app's queries, made before the run: open loop, so that a slow
// device never delays an arrival. Closed loops are the exception and are made while running.
//
// Pure and seeded. Throws InputError for a trace that cannot be read.

#ifndef GPUSHARE_TOOLS_GPUSHARE_SCENARIO_ARRIVALS_H_
#define GPUSHARE_TOOLS_GPUSHARE_SCENARIO_ARRIVALS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/gpushare/scenario/scenario.h"

namespace gpushare::tool {

struct ArrivalRequest {
  double mean_gap_ns = 0;   // solo time of a query over the app's load
  int64_t queries_max = 0;  // most queries
  int64_t duration_ns = 0;  // 0: no limit; else only arrivals before it
  uint64_t seed = 1;
};

// Arrival times in nanoseconds from the start of the run, ascending. `spec` is of any kind for
// which FollowsAnswers is false. The rows of a trace must be in spec.times_ns already (LoadTraces).
std::vector<int64_t> MakeArrivals(const ArrivalSpec& spec, const ArrivalRequest& request);

// Where the time stands in a row of a trace.
struct TraceColumn {
  std::string name;  // in the header line, empty for the first column; the key of a JSON line
  int64_t unit_ns = 1'000'000'000;  // of a number
};

// Times of the rows of a CSV file with a header line, or of JSON lines, in nanoseconds from the
// first, ascending. A time is as trace_time.h says. A byte order mark is skipped.
std::vector<int64_t> ParseTrace(std::string_view text, const std::string& file,
                                const TraceColumn& column);

// Fills times_ns of every trace in the scenario; `override_path`, when not empty, is read instead
// of what the scenario says.
void LoadTraces(Scenario& scenario, const std::string& override_path);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_SCENARIO_ARRIVALS_H_
