// The list of active LC queries, in order of arrival: of all apps, and of each.
//
// Beginning and ending a query, with its event and its slot, are verbs
// (flow/verbs/queries/queries.h). Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_STATE_ACTIVE_QUERIES_H_
#define GPUSHARE_SRC_CORE_STATE_ACTIVE_QUERIES_H_

#include "src/core/state/flow.h"

namespace gpushare::core {

// Puts a query that is not active into the list.
void LinkQuery(Flow& flow, QueryState& query);

// Takes an active query out.
void UnlinkQuery(Flow& flow, QueryState& query);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_STATE_ACTIVE_QUERIES_H_
