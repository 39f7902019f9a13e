// The lists of tasks that wait. See backlog.h.

#include "src/core/state/backlog.h"

#include <algorithm>

#include "src/core/state/query_waits.h"

namespace gpushare::core {
namespace {

void EnterBacklog(Flow& flow, Queue& queue) {
  if (queue.backlog_index >= 0) return;
  queue.backlog_index = flow.backlog.size();
  flow.backlog.Add(&queue);
  if (queue.in_plan_order) return;
  queue.in_plan_order = true;
  flow.plan_order.Add({0, &queue});  // no head's sequence is 0
}

void LeaveBacklog(Flow& flow, Queue& queue) {
  const int index = queue.backlog_index;
  if (index < 0) return;
  flow.backlog.RemoveAt(index);
  if (index < flow.backlog.size()) flow.backlog[index]->backlog_index = index;
  queue.backlog_index = -1;
}

// The queue's head was `before` and is another one now; null: none.
void CountHead(Queue& queue, const Task* before) {
  if (before != nullptr) --queue.app->uses[ResourceOf(*before)].queues;
  if (queue.head != nullptr) ++queue.app->uses[ResourceOf(*queue.head)].queues;
}

void ForgetReadyRun(Queue& queue) {
  queue.ready_run = 0;
  queue.ready_last = nullptr;
}

}  // namespace

void PushBack(Flow& flow, Task& task) {
  Queue& queue = *task.queue;
  // The view of a head says whether another task is behind it.
  if (queue.head == queue.tail) queue.view_is_current = false;
  task.progress.next = nullptr;
  task.progress.previous = queue.tail;
  if (queue.head == nullptr) {
    queue.head = &task;
    CountHead(queue, nullptr);
  } else {
    queue.tail->progress.next = &task;
  }
  queue.tail = &task;
  CountQueryTask(task, 1, 0);
  EnterBacklog(flow, queue);
}

void PushFront(Flow& flow, Task& task) {
  Queue& queue = *task.queue;
  Task* const before = queue.head;
  task.progress.next = before;
  (before == nullptr ? queue.tail : before->progress.previous) = &task;
  queue.head = &task;
  CountHead(queue, before);
  queue.view_is_current = false;
  ForgetReadyRun(queue);
  queue.unlaunched.fetch_add(1, std::memory_order_acq_rel);
  CountQueryTask(task, 1, 0);
  EnterBacklog(flow, queue);
}

void Unlink(Flow& flow, Task& task) {
  Queue& queue = *task.queue;
  Task* const next = task.progress.next;
  Task* const previous = queue.head == &task ? nullptr : task.progress.previous;
  if (previous == nullptr || previous == queue.head) queue.view_is_current = false;
  if (previous != nullptr || --queue.ready_run <= 0) ForgetReadyRun(queue);
  if (previous == nullptr) {
    queue.head = next;
    CountHead(queue, &task);
  } else {
    previous->progress.next = next;
  }
  (next == nullptr ? queue.tail : next->progress.previous) = previous;
  task.progress.next = nullptr;
  queue.unlaunched.fetch_sub(1, std::memory_order_acq_rel);
  CountQueryTask(task, -1, 0);
  if (queue.head == nullptr) LeaveBacklog(flow, queue);
}

int32_t ReadyRun(Queue& queue, int32_t most) {
  if (queue.ready_run == 0) {
    queue.ready_run = 1;
    queue.ready_last = queue.head;
  }
  while (queue.ready_run < most) {
    Task* const next = queue.ready_last->progress.next;
    if (next == nullptr || !next->wait_tickets.empty()) break;
    queue.ready_last = next;
    ++queue.ready_run;
  }
  return std::min(queue.ready_run, most);
}

}  // namespace gpushare::core
