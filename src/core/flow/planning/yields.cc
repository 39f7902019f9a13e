// Which LC work yields. See yields.h.

#include "src/core/flow/planning/yields.h"

#include <algorithm>
#include <limits>

#include "src/core/base/tuning.h"
#include "src/core/flow/learn/learn.h"
#include "src/core/flow/verbs/launch_task.h"
#include "src/core/seams/graph_cut.h"

namespace gpushare::core {
namespace {

constexpr int32_t kNoPriority = std::numeric_limits<int32_t>::min();

// Whether others yield to the app now. Queries that only wait for tickets may wait for those.
bool HasQueries(const App& app) {
  return app.LoadingQueries() > app.queries_waiting || app.tasks_in_flight > 0;
}

// Since when the wait of the task adds to that of its query: a time when two of its tasks wait
// counts once.
TimeNs AddsSince(const Task& task) {
  return std::max(task.progress.yield_wait_since_ns, task.query->yielded_until_ns);
}

// The wait of a task's query so far.
int64_t YieldedNs(const Flow& flow, const Task& task) {
  const int64_t now_ns = task.progress.yield_wait_since_ns == 0 ? 0 : flow.now_ns - AddsSince(task);
  return task.query->yielded_ns + now_ns;
}

// Then its tasks go on.
bool HasWaitedEnough(const Flow& flow, const Task& task) {
  return YieldedNs(flow, task) >= task.app->options.yield_ns_max;
}

void EndWait(const Flow& flow, Task& task) {
  if (task.progress.yield_wait_since_ns == 0) return;
  task.query->yielded_ns = YieldedNs(flow, task);
  task.query->yielded_until_ns = flow.now_ns;
  task.progress.yield_wait_since_ns = 0;
}

// The task waits, or has just stopped.
void NoteWait(Task& task) {
  task.app->yield_wait_from_ns =
      std::min(task.app->yield_wait_from_ns, task.progress.yield_wait_since_ns);
}

// Notes when the wait of the head ends at last.
void NoteLongest(Flow& flow, const Task& head) {
  const int64_t most_ns = head.app->options.yield_ns_max;
  if (most_ns == kNever) return;
  flow.yields_until_ns =
      std::min(flow.yields_until_ns, AddsSince(head) + most_ns - head.query->yielded_ns);
}

// An evicted graph waits too, from when its segments should have ended: they may
// wait for the SMs that the higher priority has. That time is by the length that was asked for, so
// that it depends on no model. `yielded`: its app did so as of the last plan.
void FollowLeaving(const Flow& flow, Task& task, bool yielded) {
  const Part& part = task.progress.parts[0];
  if (part.form != Form::kSegments || !IsLeaving(flow.gate, part)) return;
  const TimeNs left_ns = flow.lanes.lane(part.lane).evicted_at_ns.load() +
                         kSegmentsOutstanding * SegmentNsOf(*task.work.kernel);
  TimeNs& since_ns = task.progress.yield_wait_since_ns;
  if (since_ns == 0 && yielded && flow.now_ns > left_ns) {
    since_ns = std::max(left_ns, task.app->evidence.yielded_as_of_ns);  // no wait counts twice
  }
  if (since_ns == 0) return;
  NoteWait(task);
  if (task.app->must_yield) {
    ++task.app->tasks_yielding;
  } else {
    EndWait(flow, task);
  }
}

}  // namespace

// At a shutdown all that is left runs.
void FindYielding(Flow& flow) {
  if (!flow.lc_may_yield) return;
  flow.yields_until_ns = kNever;
  int32_t highest = kNoPriority;
  const bool lets = flow.lets_lc_yield.load(std::memory_order_relaxed) && flow.accepting.load();
  for (const App* app : flow.lc_apps) {
    if (lets && HasQueries(*app)) highest = std::max(highest, app->options.priority);
  }
  uint64_t yielded = 0;  // as of the last plan: a bit an app
  static_assert(kMaxApps <= 64);
  for (App* app : flow.lc_apps) {
    yielded |= uint64_t{app->must_yield} << app->plan_index;
    app->must_yield = app->options.Yields() && app->options.priority < highest;
    app->tasks_yielding = 0;
    app->yield_wait_from_ns = kNever;
  }
  for (Task* task : flow.running_lc) {
    if (!YieldsInSegments(flow, *task) || task->progress.parts.empty()) continue;
    FollowLeaving(flow, *task, (yielded >> task->app->plan_index & 1) != 0);
  }
}

bool HeadYields(Flow& flow, Task& head) {
  if (!flow.lc_may_yield) return false;
  App& app = *head.app;
  TimeNs& since_ns = head.progress.yield_wait_since_ns;
  if (!app.must_yield || HasWaitedEnough(flow, head)) {
    if (since_ns != 0) NoteWait(head);
    EndWait(flow, head);
    return false;
  }
  if (since_ns == 0) since_ns = flow.now_ns;
  ++app.tasks_yielding;
  NoteWait(head);
  NoteLongest(flow, head);
  const int64_t most_ns = app.options.yield_ns_max;
  Hold(flow, head,
       {.task = head.record.ticket,
        .reason = Reason::kHoldLcPriority,
        .value_ns = YieldedNs(flow, head),
        .limit_ns = most_ns == kNever ? 0 : most_ns});
  return true;
}

void NoteYields(Flow& flow) {
  if (!flow.lc_may_yield) return;
  for (App* app : flow.lc_apps) {
    if (!app->options.Yields()) continue;
    LearnYields(*app, app->tasks_yielding > 0, app->yield_wait_from_ns, flow.now_ns);
  }
}

void EvictYielding(Flow& flow) {
  if (!flow.lc_may_yield) return;
  Plan& plan = flow.buffers.plan;
  plan.replan_at_ns = std::min(plan.replan_at_ns, flow.yields_until_ns);
  for (const Task* const task : flow.running_lc) {
    if (!task->app->must_yield || !YieldsInSegments(flow, *task)) continue;
    if (task->progress.parts.empty() || HasWaitedEnough(flow, *task)) continue;
    const Part& part = task->progress.parts[0];
    if (part.form != Form::kSegments || IsLeaving(flow.gate, part)) continue;
    plan.evictions.TryAdd(
        {.task = task->record.ticket, .place = part.place, .reason = Reason::kEvictForLcPriority});
  }
}

}  // namespace gpushare::core
