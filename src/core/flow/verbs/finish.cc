// The verb "finish". See finish.h.

#include "src/core/flow/verbs/finish.h"

#include <algorithm>

#include "src/core/flow/learn/learn.h"
#include "src/core/flow/verbs/queries/idle.h"
#include "src/core/flow/verbs/queries/queries.h"
#include "src/core/flow/verbs/running.h"
#include "src/core/flow/verbs/waits.h"
#include "src/core/log/label.h"
#include "src/core/state/backlog.h"
#include "src/core/state/hold_time.h"
#include "src/core/state/state_change.h"

namespace gpushare::core {
namespace {

TaskState StateOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return TaskState::kDone;
    case Verdict::kCancelled:
    case Verdict::kShutdown:
      return TaskState::kCancelled;
    case Verdict::kDropped:
      return TaskState::kDropped;
    case Verdict::kTimedOut:
      return TaskState::kTimedOut;
    case Verdict::kPending:
    case Verdict::kFailed:
    case Verdict::kDeviceLost:
      return TaskState::kFailed;
  }
  return TaskState::kFailed;
}

void CountVerdict(App& app, Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      app.completed.fetch_add(1, std::memory_order_relaxed);
      return;
    case Verdict::kDropped:
      app.dropped.fetch_add(1, std::memory_order_relaxed);
      return;
    case Verdict::kCancelled:
    case Verdict::kShutdown:
      app.cancelled.fetch_add(1, std::memory_order_relaxed);
      return;
    default:
      app.failed.fetch_add(1, std::memory_order_relaxed);
      return;
  }
}

// The longest one counts, and fades over some sixteen regions.
void NoteRegion(const Task& task) {
  constexpr int64_t kFades = 16;
  if (task.record.measured_ns <= 0) return;  // the device samples such times
  std::atomic<int64_t>& longest_ns = task.queue->region_ns;
  const int64_t before_ns = longest_ns.load(std::memory_order_relaxed);
  longest_ns.store(std::max(task.record.measured_ns, before_ns - before_ns / kFades),
                   std::memory_order_relaxed);
}

// What the graph has taken with this piece, handed on to the one behind it. The last piece's record
// becomes that of the whole graph: it succeeded only if every piece did, and has the error of the
// first one that did not.
void SumPieces(Flow& flow, Task& task) {
  PieceOfGraph& piece = task.piece;
  CompletionRecord& record = task.record;
  PieceOfGraph sum = piece;
  if (sum.verdict == Verdict::kPending && record.verdict != Verdict::kOk) {
    sum.verdict = record.verdict;
    sum.error_code = record.error_code;
    sum.failed_dependency = record.failed_dependency;
    sum.failed_dependency_verdict = record.failed_dependency_verdict;
  }
  // A lane that hangs may still run the piece, which uses the graph's memory.
  sum.hangs = sum.hangs || record.verdict == Verdict::kTimedOut;
  sum.launches += record.launches;
  sum.evictions += record.evictions;
  if (sum.first) {
    sum.submit_ns = record.submit_ns;
    sum.admit_ns = record.admit_ns;
  }
  if (sum.launch_ns == 0) {
    sum.launch_ns = record.launch_ns;
    sum.launch_reason = record.launch_reason;
    sum.place = record.place;
  }
  if (!sum.beside) sum.beside = record.beside;
  if (sum.start_ns == 0) sum.start_ns = record.start_ns;
  sum.end_ns = std::max(sum.end_ns, record.end_ns);
  sum.predicted_ns += record.predicted_ns;
  sum.predicted_error_ns += record.predicted_error_ns;
  sum.measured_ns += record.measured_ns;
  sum.evicted_ns += record.evicted_ns;
  if (piece.next != nullptr) {
    PieceOfGraph& behind = piece.next->piece;
    sum.graph = behind.graph;
    sum.first = false;
    sum.before = nullptr;
    sum.next = behind.next;
    sum.ended = behind.ended;
    behind = sum;
    return;
  }
  record.kernel = sum.graph->id;
  record.kind = TaskKind::kGraph;
  record.verdict = sum.verdict == Verdict::kPending ? Verdict::kOk : sum.verdict;
  record.error_code = sum.error_code;
  record.failed_dependency = sum.failed_dependency;
  record.failed_dependency_verdict = sum.failed_dependency_verdict;
  record.block_tasks = record.verdict == Verdict::kOk ? 1 : 0;
  record.launches = sum.launches;
  record.evictions = sum.evictions;
  record.submit_ns = sum.submit_ns;
  record.admit_ns = sum.admit_ns;
  record.launch_ns = sum.launch_ns;
  record.launch_reason = sum.launch_reason;
  record.place = sum.place;
  record.beside = sum.beside;
  record.start_ns = sum.start_ns;
  record.end_ns = sum.end_ns;
  record.predicted_ns = sum.predicted_ns;
  record.predicted_error_ns = sum.predicted_error_ns;
  record.measured_ns = sum.measured_ns;
  record.evicted_ns = sum.evicted_ns;
  flow.tables.UseOf(sum.graph->id).LeavePieces(sum.hangs);
}

void NoteAwaited(Flow& flow, Task& task) {
  if (!task.awaited.load(std::memory_order_seq_cst)) return;
  task.awaited.store(false, std::memory_order_relaxed);
  if (!flow.awaited_ends.tasks.TryAdd(&task)) flow.awaited_ends.more = true;
}

// The task leaves the flow's lists, and gives back what it has of the flow and of the device.
void EndTask(Flow& flow, Task& task, Verdict verdict) {
  LearnRegionEnded(flow, task);
  const bool counted = task.progress.running_index >= 0;
  LeaveRunning(flow, task);
  if (task.progress.is_region) {
    if (!counted) task.queue->in_flight.fetch_sub(1, std::memory_order_acq_rel);
    flow.open_regions.fetch_sub(1, std::memory_order_acq_rel);
    task.queue->regions_open.fetch_sub(1, std::memory_order_acq_rel);
    UnwatchRegion(flow, task);
    if (verdict == Verdict::kOk) NoteRegion(task);
  }
  if (IsExclusive(task) && !flow.GraphIsTaken(task)) {
    flow.graph_tasks[task.work.kernel->id.value] = nullptr;
  }
  if (task.work.kind == TaskKind::kGraph) {
    GraphUse& use = flow.tables.UseOf(task.work.kernel->id);
    // A lane that hangs may still run the graph.
    if (verdict == Verdict::kTimedOut) {
      use.Hang();
    } else {
      use.Leave();
    }
  }
  CountHeld(task, flow.now_ns);
  DropWaits(flow, task);
  SetState(task, StateOf(verdict));
  if (task.progress.entered_gate) flow.gate.LeaveLc();
  // Workers on an abandoned lane may still claim from their counter, so it is not reused.
  if (task.progress.counter >= 0 && verdict != Verdict::kTimedOut) {
    flow.free_counters.Add(task.progress.counter);
  }
  flow.dirty = true;  // its queue may have another head
}

// Completes the task for its callers and statistics, and frees its slot.
void CompleteTask(Flow& flow, Task& task, Verdict verdict) {
  CompletionRecord& record = task.record;
  record.verdict = verdict;
  if (verdict == Verdict::kDeviceLost) record.error_code = flow.loss_code.load();
  record.complete_ns = flow.now_ns;
  record.block_tasks = task.progress.blocks_done;
  const QueryTaskEnd own = EndInQuery(task);
  if (task.piece.graph != nullptr) SumPieces(flow, task);
  SettleWaits(task);
  App& app = *task.app;
  CountVerdict(app, record.verdict);
  if (task.query == nullptr) app.latency.Add(flow.now_ns - record.submit_ns);
  if (flow.HasEvents()) {
    flow.Emit(
        Completed{.task = LabelOf(task),
                  .predicted_ns = record.predicted_ns,
                  .measured_ns = record.measured_ns,
                  .query = record.query,
                  .since_ns = task.query == nullptr ? record.submit_ns : task.query->arrival_ns,
                  .failed_dependency = record.failed_dependency,
                  .place = record.place,
                  .verdict = record.verdict});
  }
  if (task.token_mark != 0) {
    const int64_t distance_ns = flow.token_streams.TaskEnded(task);
    task.query->distance_ns = std::max(task.query->distance_ns, distance_ns);
  }
  FinishQueryTask(flow, task, own);
  task.queue->tasks_open.fetch_sub(1, std::memory_order_acq_rel);
  if (task.callback != nullptr) {
    flow.notices.Push({task.callback, task.callback_user, record});
  }
  flow.dirty = true;
  // seq_cst: a caller marks the task awaited before it asks whether the task is complete.
  task.complete.store(true, std::memory_order_seq_cst);
  NoteAwaited(flow, task);
  flow.counters.pending.fetch_sub(1, std::memory_order_seq_cst);  // waiting/waiters.h
  flow.tables.DropFinished(task);
}

// The pieces behind one that did not succeed would compute with what it left. Those that are not
// launched never run. A lost device and a shutdown are the end of all.
void CancelBehind(Flow& flow, const Task& task) {
  const Verdict own = task.piece.ended;
  const bool for_all = own == Verdict::kDeviceLost || own == Verdict::kShutdown;
  const Verdict verdict = for_all ? own : Verdict::kCancelled;
  for (Task* piece = task.piece.next; piece != nullptr; piece = piece->piece.next) {
    const TaskState state = piece->state.load(std::memory_order_relaxed);
    if (state != TaskState::kWaiting && state != TaskState::kReady) continue;
    Unlink(flow, *piece);
    EndTask(flow, *piece, verdict);
    piece->piece.ended = verdict;
  }
}

// Completes the pieces that have ended, up to the first one that has not.
void CompletePieces(Flow& flow, Task& first) {
  for (Task* piece = &first; piece != nullptr && piece->piece.ended != Verdict::kPending;) {
    Task* const next = piece->piece.next;  // the slot of a complete one may be another task's
    CompleteTask(flow, *piece, piece->piece.ended);
    piece = next;
  }
}

}  // namespace

void FinishTask(Flow& flow, Task& task, Verdict verdict) {
  EndTask(flow, task, verdict);
  if (task.piece.graph == nullptr) {
    CompleteTask(flow, task, verdict);
    return;
  }
  task.piece.ended = verdict;
  if (verdict != Verdict::kOk) CancelBehind(flow, task);
  if (task.piece.before == nullptr) CompletePieces(flow, task);
}

void FinishBacklog(Flow& flow, Verdict verdict) {
  while (!flow.backlog.empty()) {
    Task& task = *flow.backlog[0]->head;
    Unlink(flow, task);
    FinishTask(flow, task, verdict);
  }
}

void LoseDevice(Flow& flow, int32_t error_code) {
  if (error_code != 0) flow.loss_code.store(error_code);
  flow.device_lost.store(true);
  flow.accepting.store(false);
  flow.fast_path.store(false);
  if (!flow.loss_handled) flow.Emit(DeviceLost{.error_code = error_code});
  flow.loss_handled = true;
  const auto finish_all = [&](const auto& running) {
    while (!running.empty()) {
      Task& task = *running[0];
      DropParts(flow, task);
      FinishTask(flow, task, Verdict::kDeviceLost);
    }
  };
  finish_all(flow.running_be);
  finish_all(flow.running_lc);
  FinishBacklog(flow, Verdict::kDeviceLost);
}

}  // namespace gpushare::core
