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
  App& app = *query.app;
  before = app.last_query;
  while (before != nullptr && before->arrival_ns > query.arrival_ns) {
    before = before->previous_of_app;
  }
  query.previous_of_app = before;
  query.next_of_app = before == nullptr ? app.first_query : before->next_of_app;
  (query.next_of_app == nullptr ? app.last_query : query.next_of_app->previous_of_app) = &query;
  (before == nullptr ? app.first_query : before->next_of_app) = &query;
}

void UnlinkQuery(Flow& flow, QueryState& query) {
  (query.previous == nullptr ? flow.first_query : query.previous->next) = query.next;
  (query.next == nullptr ? flow.last_query : query.next->previous) = query.previous;
  App& app = *query.app;
  QueryState* const next = query.next_of_app;
  QueryState* const previous = query.previous_of_app;
  (previous == nullptr ? app.first_query : previous->next_of_app) = next;
  (next == nullptr ? app.last_query : next->previous_of_app) = previous;
  query.active = false;
}

}  // namespace gpushare::core
