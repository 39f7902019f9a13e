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

// A piece of a graph succeeds only if those before it did: the caller sees the last one alone.
Verdict WithPiecesBefore(Task& task, Verdict verdict) {
  if (verdict != Verdict::kOk || task.piece.verdict == Verdict::kPending) return verdict;
  task.record.error_code = task.piece.error_code;
  return task.piece.verdict;
}

// Hands on to the piece behind it what the graph has taken so far. The last one's record becomes
// that of the whole graph.
void SumPieces(Flow& flow, Task& task) {
  const PieceOfGraph& piece = task.piece;
  if (piece.graph == nullptr) return;
  CompletionRecord& record = task.record;
  Task* const next = piece.next ? flow.tables.FindTask(piece.next) : nullptr;
  const TimeNs launch_ns = piece.launch_ns != 0 ? piece.launch_ns : record.launch_ns;
  const TimeNs start_ns = piece.start_ns != 0 ? piece.start_ns : record.start_ns;
  if (piece.next) {
    if (next == nullptr) return;  // the caller cancelled it, and it is over
    PieceOfGraph& behind = next->piece;
    behind.verdict = record.verdict == Verdict::kOk ? Verdict::kPending : record.verdict;
    behind.error_code = record.error_code;
    behind.launches = piece.launches + record.launches;
    behind.launch_ns = launch_ns;
    behind.start_ns = start_ns;
    behind.predicted_ns = piece.predicted_ns + record.predicted_ns;
    behind.measured_ns = piece.measured_ns + record.measured_ns;
    return;
  }
  record.kernel = piece.graph->id;
  record.kind = TaskKind::kGraph;
  record.block_tasks = record.verdict == Verdict::kOk ? 1 : 0;
  record.launches += piece.launches;
  record.launch_ns = launch_ns;
  record.start_ns = start_ns;
  record.predicted_ns += piece.predicted_ns;
  record.measured_ns += piece.measured_ns;
  // As of any graph: a lane that hangs may still run it.
  if (record.verdict != Verdict::kTimedOut) flow.tables.UseOf(piece.graph->id).Leave();
}

void NoteAwaited(Flow& flow, Task& task) {
  if (!task.awaited.load(std::memory_order_seq_cst)) return;
  task.awaited.store(false, std::memory_order_relaxed);
  if (!flow.awaited_ends.tasks.TryAdd(&task)) flow.awaited_ends.more = true;
}

}  // namespace

void FinishTask(Flow& flow, Task& task, Verdict verdict) {
  verdict = WithPiecesBefore(task, verdict);
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
  // A lane that hangs may still run the graph.
  if (task.work.kind == TaskKind::kGraph && verdict != Verdict::kTimedOut) {
    flow.tables.UseOf(task.work.kernel->id).Leave();
  }
  CountHeld(task, flow.now_ns);
  DropWaits(flow, task);
  SetState(task, StateOf(verdict));
  if (task.progress.entered_gate) flow.gate.LeaveLc();
  // Workers on an abandoned lane may still claim from their counter, so it is not reused.
  if (task.progress.counter >= 0 && verdict != Verdict::kTimedOut) {
    flow.free_counters.Add(task.progress.counter);
  }
  CompletionRecord& record = task.record;
  record.verdict = verdict;
  if (verdict == Verdict::kDeviceLost) record.error_code = flow.loss_code.load();
  record.complete_ns = flow.now_ns;
  record.block_tasks = task.progress.blocks_done;
  SettleWaits(task);
  App& app = *task.app;
  CountVerdict(app, verdict);
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
                  .verdict = verdict});
  }
  if (task.token_mark != 0) {
    const int64_t distance_ns = flow.token_streams.TaskEnded(task);
    task.query->distance_ns = std::max(task.query->distance_ns, distance_ns);
  }
  FinishQueryTask(flow, task);
  SumPieces(flow, task);
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
