// What a plan may ask for. See plan_entry.h.

#include "src/core/flow/verbs/plan_entry.h"

#include "src/core/seams/ordinary_form.h"

namespace gpushare::core {
namespace {

// A CUDA kernel runs slices by its slice function or its worker function. On the simulated device
// there are no functions, and every kernel with block tasks runs slices, unless its PTX was
// refused.
bool RunsSlices(const KernelDesc& kernel) {
  if (kernel.ptx() != nullptr) return kernel.ptx()->RunsSlices();
  const FunctionCode* const functions = kernel.functions();
  const bool native = functions != nullptr && functions->original != nullptr;
  return !native || functions->slice != nullptr || functions->worker != nullptr;
}

}  // namespace

bool HasForm(const Task& task, Form form) {
  if (form == OrdinaryForm(task.work.kind)) return true;
  if (form == Form::kSegments) return task.IsSegmented();
  // A simulated chain of nodes has no block tasks.
  if (task.work.kind != TaskKind::kKernel || !task.work.kernel->simulation.nodes.empty()) {
    return false;
  }
  if (form == Form::kWorkers) return task.work.kernel->evictable;
  return form == Form::kSlice && RunsSlices(*task.work.kernel);
}

bool MayHaveMoreParts(const Task& task, const PlannedLaunch& planned) {
  return !IsLc(task) && task.progress.counter >= 0 && planned.form == Form::kWorkers &&
         HasForm(task, Form::kWorkers);
}

void CountDropped(Flow& flow) {
  flow.counters.plan_entries_dropped.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace gpushare::core
