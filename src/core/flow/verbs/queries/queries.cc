// Verbs of a query. See queries.h.

#include "src/core/flow/verbs/queries/queries.h"

#include <algorithm>

#include "src/core/base/saturating.h"
#include "src/core/flow/learn/learn.h"
#include "src/core/flow/learn/samples.h"
#include "src/core/flow/verbs/queries/idle.h"
#include "src/core/flow/verbs/queries/jobs.h"
#include "src/core/log/events.h"
#include "src/core/state/active_queries.h"
#include "src/core/state/features.h"

namespace gpushare::core {
namespace {

// One error bar more than predicted: what is left of a query is rather too long than too short.
void PredictWhole(const Flow& flow, QueryState& query) {
  if (!(query.input_size > 0)) return;
  const Prediction whole = flow.model->durations().PredictQuery(FeaturesOf(query));
  if (whole.trained) query.sized_ns = std::min(whole.duration_ns + whole.error_ns, kMaxDurationNs);
}

void EndIfDone(Flow& flow, QueryState& query, int32_t tasks_submitted) {
  if (!query.active || !query.ended || query.tasks_finished != tasks_submitted) return;
  if (flow.HasEvents()) {
    flow.Emit(QueryEnded{.query = query.id,
                         .app = AppId{query.app->id.load()},
                         .latency_ns = flow.now_ns - query.arrival_ns,
                         .target_ns = query.app->options.promise.target_ns});
  }
  NoteJobEnded(flow, query);
  UnlinkQuery(flow, query);
  App& app = *query.app;
  const int32_t loading = app.LoadingQueries();
  app.active_queries.fetch_sub(1, std::memory_order_acq_rel);
  if (!query.abandoned) app.latency.Add(flow.now_ns - query.arrival_ns);
  if (query.was_idle || query.abandoned) {
    LearnQueryLeft(flow, query, loading);
  } else {
    LearnQueryEnded(flow, query, loading);
  }
  flow.dirty = true;
}

// An idle query has work again, or ends.
void Resume(Flow& flow, QueryState& query) {
  query.idle = false;
  --query.app->queries_idle;
  flow.dirty = true;
  if (!query.began) return;
  LinkQuery(flow, query);
  LearnQueryReturned(flow, query);
  WatchQuery(flow, query);
}

}  // namespace

void BeginActiveQuery(Flow& flow, QueryState& query) {
  BeginLaunchedQuery(flow, query, flow.now_ns);
}

void BeginLaunchedQuery(Flow& flow, QueryState& query, TimeNs since_ns) {
  if (query.idle) Resume(flow, query);
  if (query.active) return;
  query.began = true;
  query.partition_plan = flow.partition_plan;
  const Promise& promise = query.app->options.promise;
  query.deadline_ns =
      promise.HasTarget() ? SaturatingAdd(query.arrival_ns, promise.target_ns) : kNever;
  LinkQuery(flow, query);
  PredictWhole(flow, query);
  LearnQueryBegan(flow, query, since_ns);
  WatchQuery(flow, query);
  if (flow.HasEvents()) {
    flow.Emit(QueryBegun{
        .query = query.id, .app = AppId{query.app->id.load()}, .arrival_ns = query.arrival_ns});
  }
  flow.dirty = true;
}

QueryTaskEnd EndInQuery(const Task& task) {
  return {.measured_ns = task.record.measured_ns,
          .end_ns = task.record.end_ns,
          .ran_alone = task.query != nullptr && RanAlone(task)};
}

void FinishQueryTask(Flow& flow, Task& task, const QueryTaskEnd& own) {
  QueryState* query = task.query;
  if (query == nullptr) return;
  BeginActiveQuery(flow, *query);  // a task that ended before it was admitted
  ++query->tasks_finished;
  query->quiet_since_ns = flow.now_ns;
  query->issued_ns -= task.progress.issued_ns;
  query->done_ns += own.measured_ns;
  query->ended_ns = std::max(query->ended_ns, std::min(own.end_ns, flow.now_ns));
  NoteJobTask(flow, task);
  if (task.next_within_ns != 0) query->next_within_ns = task.next_within_ns;
  LearnQueryTask(*query, own.ran_alone);
  if (task.explicit_query == nullptr) {
    query->ended = true;
    EndIfDone(flow, *query, 1);
    return;
  }
  QuerySlot& slot = *task.explicit_query;
  EndIfDone(flow, *query, slot.tasks_submitted.load(std::memory_order_acquire));
  if (!query->active) flow.tables.FreeQuery(slot);
}

void EndExplicitQuery(Flow& flow, QuerySlot& slot) {
  slot.state.ended = true;
  BeginActiveQuery(flow, slot.state);
  EndIfDone(flow, slot.state, slot.tasks_submitted.load(std::memory_order_acquire));
  if (!slot.state.active) flow.tables.FreeQuery(slot);
}

}  // namespace gpushare::core
