// Rounds of a row on a real device: its arrivals in equal spells of time, and the pooled numbers.
//
// Rows that are compared are interleaved round by round, so that a drift of the machine meets all
// of them. Pure.

#ifndef GPUSHARE_TOOLS_GPUSHARE_ROUNDS_H_
#define GPUSHARE_TOOLS_GPUSHARE_ROUNDS_H_

#include <cstdint>
#include <vector>

#include "tools/gpushare/runner.h"

namespace gpushare::tool {

// What arrives in round `round` of `rounds`, its times from the round's own start. Over all rounds
// every arrival comes once; a closed loop's queries are divided, and each round thinks differently.
std::vector<LcPlan> RoundOf(const std::vector<LcPlan>& plans, int round, int rounds);

// The arrivals of the first span_ns, at least one of every app; a closed loop gets `queries_max`.
std::vector<LcPlan> Beginning(const std::vector<LcPlan>& plans, int64_t span_ns,
                              int64_t queries_max);

// Adds a round to what is pooled: samples are joined, counts added, rates weighted by their spans.
// Of the eviction latency only summaries exist: p50 is weighted by the counts, p99 the largest.
// An empty `pooled` takes the round as it is.
void Pool(const RunOutcome& round, RunOutcome& pooled);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_ROUNDS_H_
