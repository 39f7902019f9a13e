// Active LC queries: the list in order of arrival, and each app's load from when it had any.
//
// Threads: the one that runs Tick; App::active_queries is also raised by submitters.

#ifndef GPUSHARE_SRC_CORE_STATE_ACTIVE_QUERIES_H_
#define GPUSHARE_SRC_CORE_STATE_ACTIVE_QUERIES_H_

#include "src/core/state/flow.h"

namespace gpushare::core {

// Puts a query in the list, once.
void Activate(Flow& flow, QueryState& query);

// One of its tasks is complete; ends the query with its last task.
void FinishQueryTask(Flow& flow, Task& task);

// The application ended an explicit query.
void EndQuery(Flow& flow, QuerySlot& slot);

// Share of time in which the app would have active queries if they ran alone on the whole device,
// smoothed over kLoadWindowNs. A busy period counts in full while it lasts and is corrected to what
// its queries take alone when it ends.
double LoadOf(App& app, TimeNs now_ns);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_STATE_ACTIVE_QUERIES_H_
