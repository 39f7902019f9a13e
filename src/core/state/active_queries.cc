// The list of active queries and the apps' load. See active_queries.h.

#include "src/core/state/active_queries.h"

#include <algorithm>
#include <cmath>

#include "src/core/base/tuning.h"

namespace gpushare::core {
namespace {

// Adds the time since the last change to the app's exponentially weighted load.
void AdvanceLoad(App& app, TimeNs now_ns) {
  const double elapsed = static_cast<double>(now_ns - app.load_updated_ns);
  if (elapsed <= 0) return;
  const double keep = std::exp(-elapsed / kLoadWindowNs);
  const double busy = app.was_active ? 1 - keep : 0;
  app.load_sum = app.load_sum * keep + busy;
  app.load_weight = app.load_weight * keep + (1 - keep);
  app.busy_load = app.busy_load * keep + busy;
  if (app.was_active) app.busy_ns += now_ns - app.load_updated_ns;
  app.load_updated_ns = now_ns;
}

// A busy period that BE work or a small place made longer counts as what its queries take alone:
// else a layout that slows LC would make it seem loaded, and be left again.
void EndBusyPeriod(App& app, TimeNs now_ns) {
  AdvanceLoad(app, now_ns);
  if (app.busy_ns > 0 && app.busy_solo_ns < app.busy_ns) {
    const double longer =
        1 - static_cast<double>(app.busy_solo_ns) / static_cast<double>(app.busy_ns);
    app.load_sum = std::max(0.0, app.load_sum - app.busy_load * longer);
  }
  app.busy_load = 0;
  app.busy_ns = app.busy_solo_ns = 0;
  app.was_active = false;
  app.idle_since_ns = now_ns;
}

void EmitQuery(const Flow& flow, const QueryState& query, EventType type, int64_t b, int64_t c) {
  EventRecord event;
  event.type = static_cast<uint8_t>(type);
  event.time_ns = flow.now_ns;
  event.id = query.id.value;
  event.app = query.app->id.load();
  event.app_class = static_cast<uint8_t>(AppClass::kLatencyCritical);
  event.a = query.app->id.load();
  event.b = b;
  event.c = c;
  flow.Emit(event);
}

void Deactivate(Flow& flow, QueryState& query) {
  App& app = *query.app;
  (query.previous == nullptr ? flow.first_query : query.previous->next) = query.next;
  (query.next == nullptr ? flow.last_query : query.next->previous) = query.previous;
  query.active = false;
  const int64_t latency_ns = flow.now_ns - query.arrival_ns;
  app.latency.Add(latency_ns);
  if (query.solo_ns > 0) {
    app.query_solo_ns =
        app.query_solo_ns == 0
            ? query.solo_ns
            : app.query_solo_ns + ((query.solo_ns - app.query_solo_ns) >> kQuerySoloShift);
  }
  EmitQuery(flow, query, EventType::kQueryEnded, latency_ns, app.options.target_ns);
  // What is not predicted takes what it took: nothing when it ended before its intended arrival.
  app.busy_solo_ns += query.solo_ns > 0 ? query.solo_ns : std::max<int64_t>(0, latency_ns);
  if (app.active_queries.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    EndBusyPeriod(app, flow.now_ns);
  }
  flow.dirty = true;
}

void EndIfDone(Flow& flow, QueryState& query, int32_t tasks_submitted) {
  if (query.active && query.ended && query.tasks_finished == tasks_submitted) {
    Deactivate(flow, query);
  }
}

}  // namespace

void Activate(Flow& flow, QueryState& query) {
  if (query.active) return;
  App& app = *query.app;
  query.active = true;
  query.deadline_ns = app.options.target_ns > 0 ? query.arrival_ns + app.options.target_ns : kNever;
  // Nearly always the newest: walk back from the end.
  QueryState* before = flow.last_query;
  while (before != nullptr && before->arrival_ns > query.arrival_ns) before = before->previous;
  query.previous = before;
  query.next = before == nullptr ? flow.first_query : before->next;
  (query.next == nullptr ? flow.last_query : query.next->previous) = &query;
  (before == nullptr ? flow.first_query : before->next) = &query;
  if (!app.was_active) {
    AdvanceLoad(app, flow.now_ns);
    app.was_active = true;
  }
  EmitQuery(flow, query, EventType::kQueryBegun, query.arrival_ns, 0);
  flow.dirty = true;
}

void FinishQueryTask(Flow& flow, Task& task) {
  QueryState* query = task.query;
  if (query == nullptr) return;
  Activate(flow, *query);  // a task that ended before it was admitted
  ++query->tasks_finished;
  query->issued_ns -= task.issued_ns;
  query->done_ns += task.record.measured_ns;
  if (task.explicit_query == nullptr) {
    query->ended = true;
    EndIfDone(flow, *query, 1);
    return;
  }
  QuerySlot& slot = *task.explicit_query;
  EndIfDone(flow, *query, slot.tasks_submitted.load(std::memory_order_acquire));
  if (!query->active) flow.tables.FreeQuery(slot);
}

void EndQuery(Flow& flow, QuerySlot& slot) {
  slot.state.ended = true;
  Activate(flow, slot.state);
  EndIfDone(flow, slot.state, slot.tasks_submitted.load(std::memory_order_acquire));
  if (!slot.state.active) flow.tables.FreeQuery(slot);
}

double LoadOf(App& app, TimeNs now_ns) {
  AdvanceLoad(app, now_ns);
  return app.load_weight > 0 ? app.load_sum / app.load_weight : 0;
}

}  // namespace gpushare::core
