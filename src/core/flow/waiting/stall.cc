// The reason for which the flow is at rest. See stall.h.

#include "src/core/flow/waiting/stall.h"

#include "absl/strings/str_cat.h"
#include "src/core/log/names.h"

namespace gpushare::core {
namespace {

std::string Named(const Task& task) {
  return absl::StrCat("ticket ", task.record.ticket.value, " of app '", task.app->options.name,
                      "'");
}

// Null: none is open any more.
const Task* FindOpenRegion(Flow& flow) {
  if (flow.open_regions.load() == 0) return nullptr;
  for (int slot = 0; slot < flow.tables.app_slots(); ++slot) {
    const App& app = flow.tables.app_slot(slot);
    if (app.id.load() == 0) continue;
    for (int i = 0; i < app.task_slots_used.load(); ++i) {
      const Task& task = app.TaskAt(static_cast<size_t>(i));
      if (task.region.load() == RegionPhase::kOpen && !task.complete.load()) return &task;
    }
  }
  return nullptr;
}

// An explicit query that the application has not ended, and that has nothing to do. Null: none.
const QueryState* FindOpenQuery(const Flow& flow) {
  for (const QueryState* query = flow.first_query; query != nullptr; query = query->next) {
    if (!query->ended && query->tasks_listed == 0 && query->tasks_running == 0) return query;
  }
  return nullptr;
}

// The oldest head that waits for nothing but a launch. Null: none.
const Task* FindHeld(const Flow& flow) {
  const Task* held = nullptr;
  for (const Queue* const queue : flow.backlog) {
    const Task& head = *queue->head;
    if (head.state.load() != TaskState::kReady) continue;
    if (held == nullptr || head.progress.sequence < held->progress.sequence) held = &head;
  }
  return held;
}

}  // namespace

std::string ReasonOfRest(Flow& flow) {
  if (flow.quiesced.load()) return "the runtime is quiesced, until gpushare_runtime_resume";
  if (const Task* const region = FindOpenRegion(flow); region != nullptr) {
    return absl::StrCat(Named(*region), " is a region that is open, until gpushare_region_end");
  }
  const Task* const held = FindHeld(flow);
  if (held == nullptr) return "no work is due";
  std::string reason = absl::StrCat(Named(*held), " is held with the reason ",
                                    ReasonName(static_cast<int64_t>(held->record.hold_reason)),
                                    ", and no plan is due");
  if (const QueryState* const query = FindOpenQuery(flow); query != nullptr) {
    absl::StrAppend(&reason, "; app '", query->app->options.name,
                    "' has a query that is open, until gpushare_query_end");
  }
  return reason;
}

}  // namespace gpushare::core
