// Marks the queue heads that are ready. See promote.h.

#include "src/core/flow/planning/promote.h"

#include "src/core/flow/planning/awaited.h"
#include "src/core/flow/verbs/finish.h"
#include "src/core/flow/verbs/waits.h"
#include "src/core/state/backlog.h"
#include "src/core/state/state_change.h"

namespace gpushare::core {
namespace {

constexpr int kNoneFailed = -1;

// Whether every ticket that the task waits for is done. `failed`: the first of its waits for a task
// that did not end OK, or kNoneFailed.
bool TicketsDone(const Task& task, int& failed) {
  for (int i = 0; i < task.wait_tickets.size(); ++i) {
    const Wait& wait = task.waits[static_cast<size_t>(i)];
    if (wait.on != nullptr) return false;
    if (wait.verdict != Verdict::kOk && failed == kNoneFailed) failed = i;
  }
  return true;
}

// The task names the ticket that it waited for itself: in a chain, not the one that failed first.
void FailWith(Flow& flow, Task& task, int failed) {
  const Wait& wait = task.waits[static_cast<size_t>(failed)];
  task.record.failed_dependency = task.wait_tickets[failed];
  task.record.failed_dependency_verdict = wait.verdict;
  task.record.error_code = wait.error_code;
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
    int failed = kNoneFailed;
    if (!TicketsDone(*task, failed)) {
      queue.head_waits = true;
      queue.app->queries_waiting += queue.queries_listed;  // of a BE app: none
      lc_waits = lc_waits || IsLc(*task);
      continue;
    }
    if (failed != kNoneFailed) {
      FailWith(flow, *task, failed);
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
