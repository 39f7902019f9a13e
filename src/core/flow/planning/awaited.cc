// Marks the BE queues that LC work waits for. See awaited.h.

#include "src/core/flow/planning/awaited.h"

namespace gpushare::core {
namespace {

// The view of a head outlives the plan, and says so too.
void SetAwaited(Queue& queue, bool awaited) {
  queue.awaited_by_lc = queue.view.awaited_by_lc = awaited;
}

// LC work runs on its own, or its queue's head waits and is a beginning of the search.
void MarkQueueOf(Flow& flow, const Task& task) {
  Queue& queue = *task.queue;
  if (IsLc(task) || queue.awaited_by_lc) return;
  SetAwaited(queue, true);
  flow.awaited_queues.Add(&queue);
}

void MarkTicketsOf(Flow& flow, const Task& task) {
  for (int i = 0; i < task.wait_tickets.size(); ++i) {
    const Task* const other = task.waits[static_cast<size_t>(i)].on;
    if (other != nullptr) MarkQueueOf(flow, *other);
  }
}

// What the queue itself waits for. While a task of it runs, only that one's end matters.
void Follow(Flow& flow, const Queue& queue) {
  if (queue.head == nullptr || queue.in_flight.load(std::memory_order_acquire) > 0) return;
  if (queue.head_waits) MarkTicketsOf(flow, *queue.head);
  if (flow.GraphIsTaken(*queue.head)) {
    MarkQueueOf(flow, *flow.graph_tasks[queue.head->work.kernel->id.value]);
  }
}

}  // namespace

void MarkAwaited(Flow& flow, bool lc_waits) {
  for (Queue* const queue : flow.awaited_queues) SetAwaited(*queue, false);
  flow.awaited_queues.Clear();
  if (!lc_waits) return;
  for (const Queue* const queue : flow.backlog) {
    if (queue->head_waits && IsLc(*queue->head)) MarkTicketsOf(flow, *queue->head);
  }
  for (int i = 0; i < flow.awaited_queues.size(); ++i) Follow(flow, *flow.awaited_queues[i]);
}

}  // namespace gpushare::core
