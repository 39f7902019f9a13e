// The plan of partitions for a policy. See partition_views.h.

#include "src/core/flow/planning/partition_views.h"

#include <cstddef>
#include <cstdint>

#include "src/core/flow/verbs/queries/jobs.h"

namespace gpushare::core {
namespace {

// The oldest job of the app that is not done, and whether it is beyond its worst case.
bool OldestOverran(const Flow& flow, const App& app) {
  return app.first_query != nullptr && IsJob(flow, *app.first_query) && app.first_query->overran;
}

// Of a task on the device: its job, and when that job has run for its worst case. Not in a
// partition of one app: there a launch may wait behind the app's job before, and nobody sees when
// it begins.
void ViewRunningJob(Flow& flow, const Task& task, RealTimeView& view) {
  const Part& part = task.progress.parts[0];
  view.running = task.record.ticket;
  view.has_word = part.epoch != 0;
  view.leaving = IsLeaving(flow.gate, part);
  const RealTimeShare& share = task.app->real_time;
  const bool shared = share.partition >= 0 && flow.partitions.partitions[share.partition].shared;
  if (!shared || task.query == nullptr) return;
  // A job from before the plan has no budget in it, and stays to its end.
  view.budget_end_ns = kNever;
  if (!IsJob(flow, *task.query)) return;
  // The launch may have waited for an eviction, which the plan charged.
  view.budget_end_ns =
      part.launched_ns + flow.partition_overhead_ns + share.worst_ns - task.query->done_ns;
  if (flow.now_ns >= view.budget_end_ns) NoteOverrun(flow, *task.query);
}

}  // namespace

void ViewPartitions(Flow& flow) {
  Snapshot& snapshot = flow.buffers.snapshot;
  const bool in_force = flow.PlanInForce();
  snapshot.partitions = in_force ? &flow.partitions : nullptr;
  if (!in_force) return;
  for (const App* const app : flow.lc_apps) {
    RealTimeView& view = flow.partitions.apps[static_cast<size_t>(app->plan_index)];
    view = RealTimeView();
    view.partition = app->real_time.partition;
    view.deadline_ns = app->options.real_time.Deadline();
    view.evictable = app->options.real_time.eviction_ns > 0;
  }
  for (Task* const task : flow.running_lc) {
    if (task->app->real_time.partition < 0 || task->progress.parts.empty()) continue;
    RealTimeView& view = flow.partitions.apps[static_cast<size_t>(task->app->plan_index)];
    if (view.running.value == 0) ViewRunningJob(flow, *task, view);
  }
  for (const App* const app : flow.lc_apps) {
    flow.partitions.apps[static_cast<size_t>(app->plan_index)].overran = OldestOverran(flow, *app);
  }
}

}  // namespace gpushare::core
