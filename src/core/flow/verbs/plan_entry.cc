// What a plan may ask for. See plan_entry.h.

#include "src/core/flow/verbs/plan_entry.h"

#include <algorithm>

#include "src/core/seams/ordinary_form.h"
#include "src/core/seams/sliceable.h"

namespace gpushare::core {

bool HasForm(const Task& task, Form form) {
  if (form == OrdinaryForm(task.work.kind)) return true;
  if (form == Form::kSegments) return task.IsSegmented();
  if (task.work.kind != TaskKind::kKernel) return false;
  if (form == Form::kSlice) return IsSliceable(*task.work.kernel);
  // A simulated chain of nodes has no block tasks.
  return form == Form::kWorkers && task.work.kernel->simulation.nodes.empty() &&
         task.work.kernel->evictable;
}

bool RunsInSlices(const Task& task) {
  const auto& parts = task.progress.parts;
  return !IsLc(task) && !parts.empty() &&
         std::all_of(parts.begin(), parts.end(),
                     [](const Part& part) { return part.form == Form::kSlice; });
}

bool MayHaveMoreParts(const Task& task, const PlannedLaunch& planned) {
  if (planned.form == Form::kSlice) return RunsInSlices(task);
  return !IsLc(task) && task.progress.counter >= 0 && planned.form == Form::kWorkers &&
         HasForm(task, Form::kWorkers);
}

void CountDropped(Flow& flow) {
  flow.counters.plan_entries_dropped.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace gpushare::core
