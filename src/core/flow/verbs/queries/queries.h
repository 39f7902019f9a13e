// Verbs of a query: it begins, a task of it completes, it ends.
//
// Shared by admit (words of the submit ring) and complete (completions). Threads: the one that runs
// Tick.

#ifndef GPUSHARE_SRC_CORE_FLOW_VERBS_QUERIES_QUERIES_H_
#define GPUSHARE_SRC_CORE_FLOW_VERBS_QUERIES_QUERIES_H_

#include <cstdint>

#include "src/core/state/flow.h"

namespace gpushare::core {

// The query enters the list of active queries. Does nothing the second time.
void BeginActiveQuery(Flow& flow, QueryState& query);
// The same for a query whose first task its submitter launched, at `since_ns`.
void BeginLaunchedQuery(Flow& flow, QueryState& query, TimeNs since_ns);

// What a query's task adds to it. The record of a query's last piece becomes that of the whole
// graph (verbs/finish), so this is read before.
struct QueryTaskEnd {
  int64_t measured_ns = 0;
  TimeNs end_ns = 0;
  bool ran_alone = false;
};
QueryTaskEnd EndInQuery(const Task& task);

// A task of a query is complete. The query ends with its last task.
void FinishQueryTask(Flow& flow, Task& task, const QueryTaskEnd& own);

// The application ended an explicit query.
void EndExplicitQuery(Flow& flow, QuerySlot& slot);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_VERBS_QUERIES_QUERIES_H_
