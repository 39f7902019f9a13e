// The verb "idle". See idle.h.

#include "src/core/flow/verbs/queries/idle.h"

#include <algorithm>
#include <new>
#include <string>

#include "absl/strings/str_cat.h"
#include "src/core/base/saturating.h"
#include "src/core/base/tuning.h"
#include "src/core/flow/learn/learn.h"
#include "src/core/state/active_queries.h"

namespace gpushare::core {
namespace {

// When the query is idle for too long, unless a task comes; kNever: it cannot be. A query with work
// is looked at again after its whole limit.
TimeNs DueOf(const Flow& flow, const QueryState& query) {
  if (query.slot == nullptr || query.ended) return kNever;
  const bool works =
      query.tasks_finished != query.slot->tasks_submitted.load(std::memory_order_acquire);
  const TimeNs since_ns = works ? flow.now_ns : query.quiet_since_ns;
  return SaturatingAdd(since_ns, query.app->options.idle_timeout_ns);
}

TimeNs DueOf(const Task& region) {
  const int64_t limit_ns =
      std::max(region.app->options.idle_timeout_ns, kRegionBoundsMax * region.work.declared_ns);
  return SaturatingAdd(region.record.submit_ns, limit_ns);
}

// One sentence for an app, until it has nothing idle any more.
bool IsFirst(const App& app) { return app.queries_idle + app.regions_overdue == 0; }

void Report(Flow& flow, const App& app, const char* what, const char* consequence) {
  try {
    flow.reports.push_back(absl::StrCat(
        "App '", app.options.name, "' has ", what, " and longer than its idle timeout of ",
        app.options.idle_timeout_ns, " ns. ", consequence,
        " The metrics gpushare_app_queries_idle and gpushare_app_regions_overdue count more."));
  } catch (const std::bad_alloc&) {  // for the sentence
  }
}

void LeaveIdle(Flow& flow, QueryState& query) {
  App& app = *query.app;
  if (query.active) {
    UnlinkQuery(flow, query);
    LearnQueryLeft(flow, query, app.LoadingQueries());
  }
  query.idle = query.was_idle = true;
  ++app.queries_idle;
  flow.dirty = true;
}

// The region leaves the gate, and its query counts as no load. Its end enters neither again.
void LeaveOverdue(Flow& flow, Task& region) {
  App& app = *region.app;
  region.progress.region_overdue = true;
  ++app.regions_overdue;
  ++flow.regions_overdue;
  if (region.progress.entered_gate) {
    region.progress.entered_gate = false;
    flow.gate.LeaveLc();
  }
  if (region.query != nullptr) {
    region.query->idle = region.query->was_idle = true;
    ++app.queries_idle;
  }
  flow.dirty = true;
}

TimeNs CheckQueries(Flow& flow) {
  TimeNs next_ns = kNever;
  for (QueryState* query = flow.first_query; query != nullptr;) {
    QueryState* const following = query->next;
    const TimeNs due_ns = DueOf(flow, *query);
    if (due_ns > flow.now_ns) {
      next_ns = std::min(next_ns, due_ns);
    } else {
      const bool first = IsFirst(*query->app);
      LeaveIdle(flow, *query);
      if (first)
        Report(flow, *query->app, "a query that was begun and not ended, has no task",
               "It holds no best-effort work any more until it has a task; gpushare_query_abandon "
               "ends queries whose value is lost.");
    }
    query = following;
  }
  return next_ns;
}

TimeNs CheckRegions(Flow& flow) {
  TimeNs next_ns = kNever;
  for (Task* region = flow.first_region; region != nullptr; region = region->progress.next) {
    if (region->progress.region_overdue || region->region.load() != RegionPhase::kOpen) continue;
    const TimeNs due_ns = DueOf(*region);
    if (due_ns > flow.now_ns) {
      next_ns = std::min(next_ns, due_ns);
      continue;
    }
    const bool first = IsFirst(*region->app);
    LeaveOverdue(flow, *region);
    if (first)
      Report(flow, *region->app, "a region that is open for many times its bound",
             "It holds no work of other apps any more.");
  }
  return next_ns;
}

}  // namespace

void WatchQuery(Flow& flow, QueryState& query) {
  if (query.slot == nullptr) return;
  query.quiet_since_ns = flow.now_ns;
  flow.idle_check_ns = std::min(flow.idle_check_ns, DueOf(flow, query));
}

void WatchRegion(Flow& flow, Task& task) {
  if (task.region.load() != RegionPhase::kOpen || task.progress.region_watched) return;
  task.progress.region_watched = true;
  task.progress.previous = nullptr;
  task.progress.next = flow.first_region;
  if (flow.first_region != nullptr) flow.first_region->progress.previous = &task;
  flow.first_region = &task;
  flow.idle_check_ns = std::min(flow.idle_check_ns, DueOf(task));
}

void UnwatchRegion(Flow& flow, Task& task) {
  Progress& progress = task.progress;
  if (progress.region_overdue) {
    --task.app->regions_overdue;
    --flow.regions_overdue;
  }
  progress.region_overdue = false;
  if (!progress.region_watched) return;
  progress.region_watched = false;
  (progress.previous == nullptr ? flow.first_region : progress.previous->progress.next) =
      progress.next;
  if (progress.next != nullptr) progress.next->progress.previous = progress.previous;
  progress.next = progress.previous = nullptr;
}

void CheckIdle(Flow& flow) {
  if (flow.now_ns < flow.idle_check_ns) return;
  const TimeNs next_ns = std::min(CheckQueries(flow), CheckRegions(flow));
  flow.idle_check_ns = next_ns == kNever ? kNever : std::max(next_ns, flow.now_ns + kIdleLookNs);
}

}  // namespace gpushare::core
