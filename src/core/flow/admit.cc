// Queues, admission and adoption. See admit.h.

#include "src/core/flow/admit.h"

#include "src/core/base/ids.h"
#include "src/core/flow/complete.h"
#include "src/core/flow/launch.h"
#include "src/core/flow/predict.h"
#include "src/core/state/active_queries.h"
#include "src/core/state/state_change.h"

namespace gpushare::core {
namespace {

void EnterBacklog(Flow& flow, Queue& queue) {
  if (queue.backlog_index >= 0) return;
  queue.backlog_index = flow.backlog_count;
  flow.backlog[static_cast<size_t>(flow.backlog_count++)] = &queue;
}

void LeaveBacklog(Flow& flow, Queue& queue) {
  if (queue.backlog_index < 0) return;
  Queue* last = flow.backlog[static_cast<size_t>(--flow.backlog_count)];
  flow.backlog[static_cast<size_t>(queue.backlog_index)] = last;
  last->backlog_index = queue.backlog_index;
  queue.backlog_index = -1;
}

void AdmitTask(Flow& flow, Task& task) {
  task.adopted = true;
  task.sequence = flow.next_sequence++;
  task.record.admit_ns = flow.now_ns;
  if (task.query != nullptr) Activate(flow, *task.query);
  const bool late =
      task.query != nullptr && task.app->options.drop_late && flow.now_ns > task.query->deadline_ns;
  const Verdict refusal = flow.device_lost.load()        ? Verdict::kDeviceLost
                          : !flow.accepting.load()       ? Verdict::kShutdown
                          : task.cancel_requested.load() ? Verdict::kCancelled
                          : late                         ? Verdict::kDropped
                                                         : Verdict::kPending;
  if (refusal != Verdict::kPending) {
    task.queue->unlaunched.fetch_sub(1, std::memory_order_acq_rel);
    FinishTask(flow, task, refusal);
    return;
  }
  SetState(task, TaskState::kWaiting);
  PushBack(flow, task);
  flow.fresh[static_cast<size_t>(flow.fresh_count++)] = &task;
  flow.dirty = true;
}

void AdmitWord(Flow& flow, uint64_t word) {
  const uint64_t id = RingSlotWord(word);
  switch (RingTagOf(word)) {
    case RingTag::kSubmitted:
      if (Task* task = flow.tables.FindTask(TicketId{id}); task != nullptr) AdmitTask(flow, *task);
      return;
    case RingTag::kStarted:
      if (Task* task = flow.tables.FindTask(TicketId{id}); task != nullptr) Adopt(flow, *task);
      return;
    case RingTag::kStartFailed:
      if (Task* task = flow.tables.FindTask(TicketId{id}); task != nullptr) {
        task->adopted = true;
        task->sequence = flow.next_sequence++;
        if (task->query != nullptr) Activate(flow, *task->query);
        FinishTask(flow, *task, flow.device_lost.load() ? Verdict::kDeviceLost : Verdict::kFailed);
      }
      return;
    case RingTag::kQueryBegun:
      if (QuerySlot* slot = flow.tables.FindQuery(QueryId{id}); slot != nullptr) {
        Activate(flow, slot->state);
      }
      return;
    case RingTag::kQueryEnded:
      if (QuerySlot* slot = flow.tables.FindQuery(QueryId{id}); slot != nullptr) {
        EndQuery(flow, *slot);
      }
      return;
  }
}

// Whether every ticket that the task waits for is done. A ticket that failed fails its dependants.
bool TicketsDone(const Flow& flow, const Task& task, bool* failed) {
  for (int i = 0; i < task.wait_ticket_count; ++i) {
    const Task* other = flow.tables.FindTask(task.wait_tickets[static_cast<size_t>(i)]);
    if (other == nullptr) continue;  // complete and released
    if (!other->complete.load(std::memory_order_acquire)) return false;
    if (other->record.verdict != Verdict::kOk) *failed = true;
  }
  return true;
}

}  // namespace

void PushBack(Flow& flow, Task& task) {
  Queue& queue = *task.queue;
  task.next = nullptr;
  (queue.head == nullptr ? queue.head : queue.tail->next) = &task;
  queue.tail = &task;
  ++queue.length;
  EnterBacklog(flow, queue);
}

void PushFront(Flow& flow, Task& task) {
  Queue& queue = *task.queue;
  task.next = queue.head;
  queue.head = &task;
  if (queue.tail == nullptr) queue.tail = &task;
  ++queue.length;
  queue.unlaunched.fetch_add(1, std::memory_order_acq_rel);
  EnterBacklog(flow, queue);
}

void Unlink(Flow& flow, Task& task) {
  Queue& queue = *task.queue;
  Task* previous = nullptr;
  for (Task* at = queue.head; at != nullptr; previous = at, at = at->next) {
    if (at != &task) continue;
    (previous == nullptr ? queue.head : previous->next) = task.next;
    if (queue.tail == &task) queue.tail = previous;
    task.next = nullptr;
    --queue.length;
    queue.unlaunched.fetch_sub(1, std::memory_order_acq_rel);
    break;
  }
  if (queue.head == nullptr) LeaveBacklog(flow, queue);
}

void Adopt(Flow& flow, Task& task) {
  // acquire: what the submitter wrote before it launched.
  if (task.state.load(std::memory_order_acquire) != TaskState::kRunning || task.adopted) return;
  task.adopted = true;
  task.sequence = flow.next_sequence++;
  task.record.admit_ns = flow.now_ns;
  if (task.query != nullptr) Activate(flow, *task.query);
  PredictTask(flow, task);
  EnterRunning(flow, task, task.parts[0]);
  flow.dirty = true;
}

void PromoteHeads(Flow& flow) {
  for (int i = 0; i < flow.lc_app_count; ++i) {
    flow.buffers.lc_owner[static_cast<size_t>(i)]->heads_waiting = 0;
  }
  for (int i = 0; i < flow.backlog_count; ++i) {
    Queue& queue = *flow.backlog[static_cast<size_t>(i)];
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
    task->ready_ns = flow.now_ns;
  }
}

void Admit(Flow& flow) {
  flow.fresh_count = 0;
  for (int i = 0; i < flow.inbox_count; ++i) AdmitWord(flow, flow.inbox[static_cast<size_t>(i)]);
}

}  // namespace gpushare::core
