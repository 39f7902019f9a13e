// Marks the queue heads that are ready. See promote.h.

#include "src/core/flow/promote.h"

#include "src/core/flow/verbs/finish.h"
#include "src/core/state/backlog.h"
#include "src/core/state/state_change.h"

namespace gpushare::core {
namespace {

// Whether every ticket that the task waits for is done. A ticket that failed fails its dependants.
bool TicketsDone(const Flow& flow, const Task& task, bool* failed) {
  for (const TicketId ticket : task.wait_tickets) {
    const Task* other = flow.tables.FindTask(ticket);
    if (other == nullptr) continue;  // complete and released
    if (!other->complete.load(std::memory_order_acquire)) return false;
    if (other->record.verdict != Verdict::kOk) *failed = true;
  }
  return true;
}

}  // namespace

void PromoteHeads(Flow& flow) {
  for (App* app : flow.lc_apps) app->heads_waiting = 0;
  for (int i = 0; i < flow.backlog.size(); ++i) {
    Queue& queue = *flow.backlog[i];
    Task* task = queue.head;
    if (task->state.load(std::memory_order_relaxed) != TaskState::kWaiting) continue;
    bool failed = false;
    if (!TicketsDone(flow, *task, &failed)) {
      if (queue.app->options.app_class == AppClass::kLatencyCritical) ++queue.app->heads_waiting;
      continue;
    }
    if (failed) {
      Unlink(flow, *task);
      FinishTask(flow, *task, Verdict::kFailed);
      --i;  // this queue's next head, or the queue that took its place
      continue;
    }
    SetState(*task, TaskState::kReady);
    task->progress.ready_ns = flow.now_ns;
  }
}

}  // namespace gpushare::core
