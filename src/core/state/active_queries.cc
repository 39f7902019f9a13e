// The list of active queries. See active_queries.h.

#include "src/core/state/active_queries.h"

namespace gpushare::core {

void LinkQuery(Flow& flow, QueryState& query) {
  query.active = true;
  // The newest query is nearly always the last to arrive: walk back from the end.
  QueryState* before = flow.last_query;
  while (before != nullptr && before->arrival_ns > query.arrival_ns) before = before->previous;
  query.previous = before;
  query.next = before == nullptr ? flow.first_query : before->next;
  (query.next == nullptr ? flow.last_query : query.next->previous) = &query;
  (before == nullptr ? flow.first_query : before->next) = &query;
}

void UnlinkQuery(Flow& flow, QueryState& query) {
  (query.previous == nullptr ? flow.first_query : query.previous->next) = query.next;
  (query.next == nullptr ? flow.last_query : query.next->previous) = query.previous;
  query.active = false;
}

}  // namespace gpushare::core
