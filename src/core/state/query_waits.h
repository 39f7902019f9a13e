// Which active queries only wait: a task of theirs stands in a queue whose head waits for tickets,
// and none of their tasks is on the device.
//
// Such a query is no load, however many stand behind the head: nothing can serve it before the
// tickets are done, and these may be of BE work. All tasks of a query go to one queue, so that each
// queue counts its queries here and no plan walks along its list.
// Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_STATE_QUERY_WAITS_H_
#define GPUSHARE_SRC_CORE_STATE_QUERY_WAITS_H_

#include <cstdint>

#include "src/core/state/task.h"

namespace gpushare::core {

// Whether the query has tasks in its queue's list and none on the device.
inline bool IsListed(const QueryState& query) {
  return query.tasks_listed > 0 && query.tasks_running == 0;
}

// Whether a task of the query is on the device, or has been.
inline bool HasBegun(const QueryState& query) {
  return query.tasks_running > 0 || query.tasks_finished > 0;
}

// As of the last plan, which saw whether the head waits.
inline bool OnlyWaits(const QueryState& query) {
  return query.queue->head_waits && IsListed(query);
}

// Counts a task that enters (1) or leaves (-1) the list, or the device. Tasks of BE apps have no
// query.
inline void CountQueryTask(const Task& task, int32_t listed, int32_t running) {
  if (task.query == nullptr) return;
  QueryState& query = *task.query;
  const bool was_listed = IsListed(query);
  const bool was_running = query.tasks_running > 0;
  query.tasks_listed += listed;
  query.tasks_running += running;
  query.queue->queries_listed += (IsListed(query) ? 1 : 0) - (was_listed ? 1 : 0);
  query.app->on_device.queries += (query.tasks_running > 0 ? 1 : 0) - (was_running ? 1 : 0);
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_STATE_QUERY_WAITS_H_
