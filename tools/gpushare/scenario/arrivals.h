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

// Arrival times in nanoseconds from the start of the run, ascending. `spec` is of any kind but
// kClosedLoop. The rows of a trace must be in spec.times_ns already (LoadTraces).
std::vector<int64_t> MakeArrivals(const ArrivalSpec& spec, const ArrivalRequest& request);

// Times of the rows of a CSV file with a header line, in nanoseconds from the first, ascending.
// `column` is a name in the header, empty for the first column. A cell is a number of seconds or a
// time stamp "YYYY-MM-DD HH:MM:SS[.fraction]" ('T' instead of the blank and a final 'Z' are fine).
std::vector<int64_t> ParseTrace(std::string_view text, const std::string& file,
                                const std::string& column);

// Fills times_ns of every trace in the scenario; `override_path`, when not empty, is read instead
// of what the scenario says.
void LoadTraces(Scenario& scenario, const std::string& override_path);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_SCENARIO_ARRIVALS_H_
