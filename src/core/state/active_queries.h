// Active LC queries: the list in order of arrival, and the load of each app from its busy periods.
//
// Beginning and ending a query, with its event and its slot, are verbs (flow/verbs/queries.h).
// Threads: the one that runs Tick; submitters also raise App::active_queries.

#ifndef GPUSHARE_SRC_CORE_STATE_ACTIVE_QUERIES_H_
#define GPUSHARE_SRC_CORE_STATE_ACTIVE_QUERIES_H_

#include "src/core/state/flow.h"

namespace gpushare::core {

// Puts a query that is not active into the list.
void LinkQuery(Flow& flow, QueryState& query);

// Takes an active query out, and adds its latency and its solo time to its app's.
void UnlinkQuery(Flow& flow, QueryState& query);

// Share of time in which the app would have active queries if they ran alone on the whole device,
// smoothed over kLoadWindowNs. A busy period counts in full while it lasts, without the time in
// which every query waits for a ticket; when it ends it is corrected to what its queries take
// alone.
double LoadOf(Flow& flow, App& app);

// Standard deviation of that load, where queries arrive at random: n queries in the window leave an
// error of sqrt(n) queries. The window begins with the first query.
double LoadErrorOf(const App& app, double load, TimeNs now_ns);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_STATE_ACTIVE_QUERIES_H_
