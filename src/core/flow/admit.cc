// The admit stage. See admit.h.

#include "src/core/flow/admit.h"

#include "src/core/base/ids.h"
#include "src/core/flow/learn/learn.h"
#include "src/core/flow/verbs/finish.h"
#include "src/core/flow/verbs/queries/idle.h"
#include "src/core/flow/verbs/queries/queries.h"
#include "src/core/flow/verbs/running.h"
#include "src/core/flow/verbs/waits.h"
#include "src/core/state/backlog.h"
#include "src/core/state/query_waits.h"
#include "src/core/state/state_change.h"

namespace gpushare::core {
namespace {

// Whether the task comes too late, and its app drops such work: its query then has no more tasks.
bool IsDropped(const Flow& flow, const Task& task) {
  if (task.query == nullptr || !task.app->options.drop_late) return false;
  QueryState& query = *task.query;
  const bool late = flow.now_ns > query.deadline_ns;
  query.dropped = query.dropped || (late && !HasBegun(query));
  return query.dropped || late;
}

void AdmitTask(Flow& flow, Task& task) {
  task.progress.adopted = true;
  task.progress.sequence = flow.next_sequence++;
  task.record.admit_ns = flow.now_ns;
  if (task.query != nullptr) BeginActiveQuery(flow, *task.query);
  const bool late = IsDropped(flow, task);
  const Verdict refusal = flow.device_lost.load()        ? Verdict::kDeviceLost
                          : flow.cut_off                 ? Verdict::kShutdown
                          : task.cancel_requested.load() ? Verdict::kCancelled
                          : late                         ? Verdict::kDropped
                                                         : Verdict::kPending;
  if (refusal != Verdict::kPending) {
    task.queue->unlaunched.fetch_sub(1, std::memory_order_acq_rel);
    FinishTask(flow, task, refusal);
    return;
  }
  LinkWaits(flow, task);
  SetState(task, TaskState::kWaiting);
  PushBack(flow, task);
  flow.fresh.Add(&task);
  flow.dirty = true;
}

// The task, and the pieces behind it where it is the first one of a graph (entry/pieces.h).
void AdmitAll(Flow& flow, TicketId ticket) {
  for (Task* task = flow.tables.FindTask(ticket); task != nullptr;) {
    Task* const next = task->piece.next;
    AdmitTask(flow, *task);  // it may end there, and its slot be another task's
    task = next;
  }
}

void AdmitWord(Flow& flow, uint64_t word) {
  const uint64_t id = RingSlotWord(word);
  switch (RingTagOf(word)) {
    case RingTag::kSubmitted:
      AdmitAll(flow, TicketId{id});
      return;
    case RingTag::kStarted:
      if (Task* task = flow.tables.FindTask(TicketId{id}); task != nullptr) Adopt(flow, *task);
      return;
    case RingTag::kStartFailed:
      if (Task* task = flow.tables.FindTask(TicketId{id}); task != nullptr) {
        task->progress.adopted = true;
        task->progress.sequence = flow.next_sequence++;
        if (task->query != nullptr) BeginActiveQuery(flow, *task->query);
        FinishTask(flow, *task, flow.device_lost.load() ? Verdict::kDeviceLost : Verdict::kFailed);
      }
      return;
    case RingTag::kRegionBegun:
      if (Task* task = flow.tables.FindTask(TicketId{id}); task != nullptr) {
        LearnRegionBegan(flow, *task);
        WatchRegion(flow, *task);
      }
      return;
    case RingTag::kQueryBegun:
      if (QuerySlot* slot = flow.tables.FindQuery(QueryId{id}); slot != nullptr) {
        BeginActiveQuery(flow, slot->state);
      }
      return;
    case RingTag::kQueryEnded:
      if (QuerySlot* slot = flow.tables.FindQuery(QueryId{id}); slot != nullptr) {
        EndExplicitQuery(flow, *slot);
      }
      return;
  }
}

}  // namespace

void Admit(Flow& flow) {
  flow.fresh.Clear();
  for (const uint64_t word : flow.inbox) AdmitWord(flow, word);
  CheckIdle(flow);
}

}  // namespace gpushare::core
