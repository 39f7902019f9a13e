// Whether the LC side of a split may take the next queries, by how far LC is behind its shadow.
//
// The shadow is the queue that an app would have alone on the same arrivals, and its lag D is how
// much later than there it ends what it has, if it gets the whole device from now on
// (evidence/shadow.h). Each query is at most D later than alone. So the p99 keeps its bound under
// any arrivals while D stays below the slack B (Promise::LagSlack). With S, a query alone, and v,
// its speed on the side:
//
//   2 S (1 / v - 1) <= B                the side may be chosen: a burst finds LC there with two
//                                       queries (the question's slowdown_max)
//   D + S (1 / v - 1) + R (1 - v) <= B  it may take one more query (MayTakeQueries)
//
// R: how long evicted BE work stays on the other side on the mean, where that may be longer than
// two queries; a burst has its own side alone meanwhile. Work that nothing evicts counts nothing:
// LC leaves the side before it has ended, and would wait for the rest on all SMs.
//
// Else queries go to the whole device, until the sum is below kLagReturn of B or no query is left.
// What is in flight on the side counts in D, at its speed there with the BE side empty. Of an
// eviction that every budget accepts, half is no lag: it is in the budget already, and on the mean
// the query meets half of it. Speeds were measured of one app, so apps that have queries at the
// same time share the whole device. Loads only choose among what this allows. Pure.

#ifndef GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_ARRANGEMENT_LAG_H_
#define GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_ARRANGEMENT_LAG_H_

#include "src/core/policies/adaptive/arrangement/arrangement.h"
#include "src/core/policies/adaptive/arrangement/question.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

// Whether the arrangement's split may take the queries that come next. `question`: of the snapshot.
bool MayTakeQueries(const Snapshot& snapshot, const Question& question,
                    const Arrangement& arrangement);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_ARRANGEMENT_LAG_H_
