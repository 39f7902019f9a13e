// Rounds of a row on a real device: divides its arrivals into rounds of equal length and pools the
// results.
//
// The rows of a case are interleaved round by round, so that a drift of the machine affects all of
// them. Pure.

#ifndef GPUSHARE_TOOLS_GPUSHARE_COLOCATE_ROUNDS_H_
#define GPUSHARE_TOOLS_GPUSHARE_COLOCATE_ROUNDS_H_

#include <cstdint>
#include <vector>

#include "tools/gpushare/run/run_outcome.h"
#include "tools/gpushare/run/run_plan.h"

namespace gpushare::tool {

// The arrivals of round `round` of `rounds`, with times from the start of the round. Every arrival
// is in exactly one round. The queries of a closed loop are divided among rounds, and each round
// draws other think times.
std::vector<LcPlan> RoundOf(const std::vector<LcPlan>& plans, int round, int rounds);

// The arrivals of the first span_ns, at least one of every app. A closed loop gets `queries_max`
// queries.
std::vector<LcPlan> Beginning(const std::vector<LcPlan>& plans, int64_t span_ns,
                              int64_t queries_max);

// Adds a round to the pooled outcome: joins samples, adds counts, weights rates by their spans. Of
// the eviction latency only summaries exist: p50 is weighted by counts, p99 is the largest. An
// empty `pooled` becomes a copy of the round.
void Pool(const RunOutcome& round, RunOutcome& pooled);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_COLOCATE_ROUNDS_H_
