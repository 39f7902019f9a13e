// Marks the queue heads that are ready. See promote.h.

#include "src/core/flow/planning/promote.h"

#include "src/core/flow/planning/awaited.h"
#include "src/core/flow/verbs/finish.h"
#include "src/core/flow/verbs/waits.h"
#include "src/core/state/backlog.h"
#include "src/core/state/state_change.h"

namespace gpushare::core {
namespace {

// Whether every ticket that the task waits for is done. `failed`: the first one whose task did not
// end OK, or null. The task holds their slots, so each is found.
bool TicketsDone(const Flow& flow, const Task& task, const CompletionRecord** failed) {
  for (const TicketId ticket : task.wait_tickets) {
    const Task& other = *flow.tables.FindTask(ticket);
    if (!other.complete.load(std::memory_order_acquire)) return false;
    if (other.record.verdict != Verdict::kOk && *failed == nullptr) *failed = &other.record;
  }
  return true;
}

// The task names the ticket that it waited for itself: in a chain, not the one that failed first.
void FailWith(Flow& flow, Task& task, const CompletionRecord& dependency) {
  task.record.failed_dependency = dependency.ticket;
  task.record.failed_dependency_verdict = dependency.verdict;
  task.record.error_code = dependency.error_code;
  Unlink(flow, task);
  FinishTask(flow, task, Verdict::kFailed);
}

}  // namespace

void PromoteHeads(Flow& flow) {
  for (App* app : flow.lc_apps) app->queries_waiting = 0;
  bool lc_waits = false;
  for (int i = 0; i < flow.backlog.size(); ++i) {
    Queue& queue = *flow.backlog[i];
    if (queue.view_is_current) continue;  // its head is ready
    Task* task = queue.head;
    queue.head_waits = false;
    if (task->state.load(std::memory_order_relaxed) != TaskState::kWaiting) continue;
    const CompletionRecord* failed = nullptr;
    if (!TicketsDone(flow, *task, &failed)) {
      queue.head_waits = true;
      queue.app->queries_waiting += queue.queries_listed;  // of a BE app: none
      lc_waits = lc_waits || IsLc(*task);
      continue;
    }
    if (failed != nullptr) {
      FailWith(flow, *task, *failed);
      --i;  // this queue's next head, or the queue that took its place
      continue;
    }
    DropWaits(flow, *task);
    SetState(*task, TaskState::kReady);
    task->progress.ready_ns = flow.now_ns;
  }
  MarkAwaited(flow, lc_waits);
}

}  // namespace gpushare::core
