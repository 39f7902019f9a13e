// The list of active queries and the apps' load. See active_queries.h.

#include "src/core/state/active_queries.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "src/core/base/tuning.h"
#include "src/core/state/target_tail.h"

namespace gpushare::core {
namespace {

// Adds the time since the last change to the app's exponentially weighted load.
void AdvanceLoad(Flow& flow, App& app) {
  const TimeNs now_ns = flow.now_ns;
  if (now_ns <= app.load_updated_ns) return;
  const double keep = flow.load_decay.KeepOver(now_ns - app.load_updated_ns);
  const bool counts = app.was_active && !app.only_waits;
  const double busy = counts ? 1 - keep : 0;
  app.load_sum = app.load_sum * keep + busy;
  app.load_weight = app.load_weight * keep + (1 - keep);
  app.busy_load = app.busy_load * keep + busy;
  if (counts) app.busy_ns += now_ns - app.load_updated_ns;
  app.load_updated_ns = now_ns;
}

// A busy period counts as what its queries take alone. Otherwise a layout that slows LC would make
// the app seem loaded, and the planner would leave that layout again.
void EndBusyPeriod(Flow& flow, App& app) {
  AdvanceLoad(flow, app);
  if (app.busy_ns > 0 && app.busy_solo_ns < app.busy_ns) {
    const double longer =
        1 - static_cast<double>(app.busy_solo_ns) / static_cast<double>(app.busy_ns);
    app.load_sum = std::max(0.0, app.load_sum - app.busy_load * longer);
  }
  app.busy_load = 0;
  app.busy_ns = app.busy_solo_ns = 0;
  app.was_active = false;
  app.idle_since_ns = flow.now_ns;
}

// The row of a BE kernel on the place that nobody measured beside the app on the split; -1: none.
int32_t UnknownKernelOn(const Flow& flow, PlaceIndex place, int32_t app, int32_t split) {
  const PairTable& pairs = flow.buffers.snapshot.pairs;
  for (const Task* const task : flow.running_be) {
    const int32_t row = task->progress.kernel_row;
    if (row < 0 || row >= pairs.kernels || !(pairs.HopedAt(app, row, split) > 0)) continue;
    for (const Part& part : task->progress.parts) {
      if (part.place == place) return row;
    }
  }
  return -1;
}

void NoteTrial(Flow& flow, const QueryState& query, int64_t latency_ns) {
  PairTrial& trial = flow.trial;
  EarnTrialCredit(trial);
  const auto splits = flow.lanes.splits();
  const int32_t split = trial.split;
  if (split < 0 || split >= static_cast<int32_t>(splits.size())) return;
  // An app that the table of this plan does not have yet has no query on trial.
  const int32_t app = query.app->plan_index;
  if (flow.pairs_stale || app < 0 || app >= flow.lc_apps.size()) return;
  if (query.arrival_ns < trial.begin_ns) return;
  const PlaceIndex place = splits[static_cast<size_t>(split)].be_place;
  const int32_t kernel = UnknownKernelOn(flow, place, app, split);
  if (kernel < 0) return;
  const int64_t limit_ns = query.app->options.promise.LatencyLimit();
  const bool on_time = limit_ns != kNever && latency_ns <= limit_ns;
  NoteTrialQuery(trial, static_cast<int32_t>(query.app->slot), kernel, on_time);
}

// Since when no BE compute work has been on the device; kNever: there is some.
TimeNs WithoutBeSince(const Flow& flow) {
  const bool none =
      std::all_of(flow.running_be.begin(), flow.running_be.end(),
                  [](const Task* task) { return task->work.kind == TaskKind::kMemcpy; });
  return none ? flow.be_left_ns : kNever;
}

// A query of an app that states a bound has ended. If it began where the app's last one ended, with
// the whole device to itself, its time counts for the duty of BE work.
void NoteDuty(Flow& flow, const QueryState& query) {
  App& app = *query.app;
  const App* const last = std::exchange(flow.query_end_app, &app);
  const TimeNs began_ns = std::exchange(flow.query_end_ns, flow.now_ns);
  if (!app.options.promise.BoundsP99() || last != &app || query.arrival_ns > began_ns) return;
  const TimeNs without_be_ns = WithoutBeSince(flow);
  if (query.disturbed || query.done_ns <= 0 || without_be_ns > began_ns) return;
  for (const QueryState* other = flow.first_query; other != nullptr; other = other->next) {
    if (other->app != &app) return;
  }
  NoteServiceTime(app.duty, flow.now_ns - began_ns, without_be_ns <= began_ns - kDutyQuietNs,
                  app.options.promise.ToleratedLonger(LoadOf(flow, app)), app.query_solo_ns,
                  flow.now_ns);
}

}  // namespace

void LinkQuery(Flow& flow, QueryState& query) {
  App& app = *query.app;
  query.active = true;
  query.deadline_ns =
      app.options.promise.HasTarget() ? query.arrival_ns + app.options.promise.target_ns : kNever;
  // The newest query is nearly always the last to arrive: walk back from the end.
  QueryState* before = flow.last_query;
  while (before != nullptr && before->arrival_ns > query.arrival_ns) before = before->previous;
  query.previous = before;
  query.next = before == nullptr ? flow.first_query : before->next;
  (query.next == nullptr ? flow.last_query : query.next->previous) = &query;
  (before == nullptr ? flow.first_query : before->next) = &query;
  NoteArrival(app.account, flow.now_ns);
  flow.busy_on_credit = flow.busy_on_credit || flow.on_credit > 0;
  query.met_credit = flow.busy_on_credit;
  if (!app.was_active) {
    AdvanceLoad(flow, app);
    app.was_active = true;
  }
}

void UnlinkQuery(Flow& flow, QueryState& query) {
  App& app = *query.app;
  (query.previous == nullptr ? flow.first_query : query.previous->next) = query.next;
  (query.next == nullptr ? flow.last_query : query.next->previous) = query.previous;
  query.active = false;
  const int64_t latency_ns = flow.now_ns - query.arrival_ns;
  app.latency.Add(latency_ns);
  if (!query.met_credit) app.tail.Add(latency_ns);
  app.delivered.Add(latency_ns, latency_ns > app.options.promise.LatencyLimit());
  NoteQuery(app.account, app.options.promise, latency_ns, query.met_credit);
  if (flow.first_query == nullptr) flow.busy_on_credit = false;
  LearnLateness(app, latency_ns);
  NoteTrial(flow, query, latency_ns);
  if (query.solo_ns > 0) {
    app.query_solo_ns =
        app.query_solo_ns == 0
            ? query.solo_ns
            : app.query_solo_ns + ((query.solo_ns - app.query_solo_ns) >> kQuerySoloShift);
  }
  // A query without a prediction takes what it took; nothing if it ended before it arrived.
  app.busy_solo_ns += query.solo_ns > 0 ? query.solo_ns : std::max<int64_t>(0, latency_ns);
  if (query.done_ns > 0) NoteLcWork(flow.segment_gains, query.solo_ns);
  NoteDuty(flow, query);
  if (app.active_queries.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    EndBusyPeriod(flow, app);
  }
}

double LoadErrorOf(const App& app, double load, TimeNs now_ns) {
  if (app.account.arrivals == 0) return 0;
  const auto seen = static_cast<double>(now_ns - app.account.first_arrival_ns) / kLoadWindowNs;
  const double weight = seen > kLoadWindowsKept ? 1 : 1 - std::exp(-seen);
  const double query_ns = static_cast<double>(std::max<int64_t>(app.query_solo_ns, 1));
  const double query = query_ns / (2 * kLoadWindowNs * weight / (2 - weight) + query_ns);
  return std::sqrt((load + query) * query);
}

double LoadOf(Flow& flow, App& app) {
  AdvanceLoad(flow, app);
  app.only_waits = app.tasks_in_flight == 0 &&
                   app.active_queries.load(std::memory_order_acquire) <= app.heads_waiting;
  return app.load_weight > 0 ? app.load_sum / app.load_weight : 0;
}

}  // namespace gpushare::core
