// Verbs of a query. See queries.h.

#include "src/core/flow/verbs/queries.h"

#include <algorithm>

#include "src/core/log/events.h"
#include "src/core/state/active_queries.h"

namespace gpushare::core {
namespace {

QueryFeatures FeaturesOf(const QueryState& query) {
  return {AppId{query.app->id.load(std::memory_order_relaxed)}, query.input_size};
}

// One error bar more than predicted: what is left of a query is rather too long than too short.
void PredictWhole(const Flow& flow, QueryState& query) {
  if (!(query.input_size > 0)) return;
  const Prediction whole = flow.model->PredictQuery(FeaturesOf(query));
  if (whole.trained) query.sized_ns = std::min(whole.duration_ns + whole.error_ns, kMaxDurationNs);
}

// A task that ran in one launch on the whole device, with nothing beside it.
bool RanAlone(const Task& task) {
  return task.record.verdict == Verdict::kOk && task.record.launches == 1 &&
         task.record.evictions == 0 && task.record.place == kWholeDevice &&
         task.record.form != Form::kFused && !task.progress.had_co_residents &&
         !task.progress.beside_overlaps;
}

void LearnWhole(Flow& flow, const QueryState& query) {
  if (!(query.input_size > 0) || query.disturbed || query.done_ns <= 0) return;
  if (flow.query_samples.full() || !flow.learns.load(std::memory_order_relaxed)) return;
  flow.query_samples.Add() = {FeaturesOf(query), query.done_ns};
}

void EndIfDone(Flow& flow, QueryState& query, int32_t tasks_submitted) {
  if (!query.active || !query.ended || query.tasks_finished != tasks_submitted) return;
  if (flow.HasEvents()) {
    flow.Emit(QueryEnded{.query = query.id,
                         .app = AppId{query.app->id.load()},
                         .latency_ns = flow.now_ns - query.arrival_ns,
                         .target_ns = query.app->options.promise.target_ns});
  }
  LearnWhole(flow, query);
  UnlinkQuery(flow, query);
  flow.dirty = true;
}

}  // namespace

void BeginActiveQuery(Flow& flow, QueryState& query) {
  if (query.active) return;
  LinkQuery(flow, query);
  PredictWhole(flow, query);
  if (flow.HasEvents()) {
    flow.Emit(QueryBegun{
        .query = query.id, .app = AppId{query.app->id.load()}, .arrival_ns = query.arrival_ns});
  }
  flow.dirty = true;
}

void FinishQueryTask(Flow& flow, Task& task) {
  QueryState* query = task.query;
  if (query == nullptr) return;
  BeginActiveQuery(flow, *query);  // a task that ended before it was admitted
  ++query->tasks_finished;
  query->issued_ns -= task.progress.issued_ns;
  query->done_ns += task.record.measured_ns;
  query->disturbed = query->disturbed || !RanAlone(task);
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
