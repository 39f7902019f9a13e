// The complete stage: completions of launches, and what each means for its task. See complete.h.

#include "src/core/flow/complete.h"

#include <algorithm>

#include "src/core/flow/learn/learn.h"
#include "src/core/flow/learn/samples.h"
#include "src/core/flow/learn/slices.h"
#include "src/core/flow/loss/hangs.h"
#include "src/core/flow/verbs/evict.h"
#include "src/core/flow/verbs/finish.h"
#include "src/core/flow/verbs/running.h"
#include "src/core/log/label.h"
#include "src/core/seams/launch_claims.h"
#include "src/core/state/backlog.h"
#include "src/core/state/state_change.h"

namespace gpushare::core {
namespace {

// Counts the part's eviction, and whether it was blocked. Returns how long it took, or kNotEvicted.
int64_t CountEviction(Flow& flow, Task& task, const Part& part,
                      const DeviceCompletion& completion) {
  if (!IsLeaving(flow.gate, part) || task.progress.eviction_p99_ns == kNever) return kNotEvicted;
  const TimeNs evicted_at = flow.lanes.lane(part.lane).evicted_at_ns.load();
  if (evicted_at < part.launched_ns || completion.end_ns < evicted_at) return kNotEvicted;
  const int64_t latency_ns = completion.end_ns - evicted_at;
  // A graph's last segments have the lowest priority: they may wait for the LC work that evicted
  // them, which says nothing about the next eviction.
  const bool in_segments = part.form == Form::kSegments;
  if (!in_segments && !part.blocked_eviction && latency_ns > BlockedEvictionNs(task)) {
    flow.counters.evictions_blocked.fetch_add(1, std::memory_order_relaxed);
  }
  if (completion.outcome != Outcome::kEvicted) return kNotEvicted;
  ++task.record.evictions;
  task.app->evictions.fetch_add(1, std::memory_order_relaxed);
  flow.counters.evictions.fetch_add(1, std::memory_order_relaxed);
  flow.counters.eviction_latency.Add(latency_ns);
  return latency_ns;
}

// Charges the device time and the work of an ended launch to its task and app.
PartWork Account(Flow& flow, Task& task, const Part& part, const DeviceCompletion& completion) {
  const bool timed = flow.device->capabilities().timestamps;
  const TimeNs start = timed ? completion.start_ns : part.launched_ns;
  const TimeNs end = timed ? completion.end_ns : flow.now_ns;
  const int64_t span_ns = std::max<int64_t>(0, end - start);
  if (task.record.start_ns == 0) task.record.start_ns = start;
  task.record.end_ns = std::max(task.record.end_ns, end);
  task.record.measured_ns += span_ns;
  App& app = *task.app;
  app.device_ns.fetch_add(span_ns, std::memory_order_relaxed);
  const bool counted = ClaimsBlockTasks(part.form);
  const int64_t done = counted                                    ? completion.block_tasks_done
                       : completion.outcome == Outcome::kFinished ? part.blocks_asked
                                                                  : 0;
  task.progress.blocks_done = std::min(task.work.block_tasks, task.progress.blocks_done + done);
  app.block_tasks.fetch_add(done, std::memory_order_relaxed);
  const double work_ns = static_cast<double>(task.progress.predicted.duration_ns) *
                         static_cast<double>(done) / static_cast<double>(task.work.block_tasks);
  app.work_ns.fetch_add(static_cast<int64_t>(work_ns), std::memory_order_relaxed);
  app.uses[ResourceOf(task)].attained_ns += work_ns / app.fair_weight;
  return {.span_ns = span_ns, .work_ns = work_ns};
}

// The task's last launch has ended: the task finishes, or its rest returns to its queue.
void SettleTask(Flow& flow, Task& task, const Part& part, const DeviceCompletion& completion) {
  // Any failed launch fails the task, also when its other launches ran every block task: the failed
  // one may have left its signal event unrecorded. So does a function that failed while it
  // enqueued.
  if (task.progress.launch_failed || task.progress.enqueue_failed) {
    FinishTask(flow, task, Verdict::kFailed);
    return;
  }
  // Checked before cancellation and shutdown: they do not undo finished work.
  if (task.progress.blocks_done >= task.work.block_tasks) {
    FinishTask(flow, task, Verdict::kOk);
    return;
  }
  if (task.cancel_requested.load() || flow.cut_off) {
    FinishTask(flow, task, task.cancel_requested.load() ? Verdict::kCancelled : Verdict::kShutdown);
    return;
  }
  if (ClaimsBlockTasks(part.form) && completion.outcome == Outcome::kFinished &&
      completion.block_tasks_done == 0) {
    // Nothing was left to claim, yet block tasks are missing. The device is at fault; a relaunch
    // would loop.
    FinishTask(flow, task, Verdict::kFailed);
    return;
  }
  LeaveRunning(flow, task);
  if (task.query != nullptr) task.query->issued_ns -= task.progress.issued_ns;
  task.progress.issued_ns = 0;
  if (task.progress.entered_gate) {
    flow.gate.LeaveLc();
    task.progress.entered_gate = false;
  }
  SetState(task, TaskState::kReady);
  task.progress.draining = false;
  task.progress.claims_looks = 0;
  task.progress.ready_ns = flow.now_ns;
  task.progress.evicted_since_ns = flow.now_ns;
  PushFront(flow, task);
}

void HandleCompletion(Flow& flow, const DeviceCompletion& completion) {
  Task* task = flow.launches.Find(completion.launch);
  if (task == nullptr) {
    flow.counters.strays.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  Adopt(flow, *task);
  int index = 0;
  while (task->progress.parts[index].launch != completion.launch) ++index;
  const Part part = task->progress.parts[index];
  flow.dirty = true;
  if (flow.HasEvents()) {
    flow.Emit(PartDone{.task = LabelOf(*task),
                       .launch = part.launch,
                       .start_ns = completion.start_ns,
                       .end_ns = completion.end_ns,
                       .block_tasks_done = completion.block_tasks_done,
                       .place = part.place,
                       .outcome = completion.outcome});
  }
  if (completion.outcome == Outcome::kDeviceLost) {
    LoseDevice(flow, completion.error_code);
    return;
  }
  if (completion.outcome == Outcome::kFailed) {
    task->progress.launch_failed = true;
    task->record.error_code = completion.error_code;
  }
  const int64_t eviction_ns = CountEviction(flow, *task, part, completion);
  SampleLaunch(flow, *task, part, completion, eviction_ns);
  LearnSlice(flow, *task, part, completion);
  DropPart(flow, *task, index);
  const PartWork work = Account(flow, *task, part, completion);
  LearnPartEnded(flow, *task, part, completion, work);
  if (task->progress.parts.empty()) {
    SettleTask(flow, *task, part, completion);
  } else if (completion.outcome == Outcome::kFinished && ClaimsBlockTasks(part.form)) {
    task->progress.draining = true;
  }
}

}  // namespace

bool Complete(Flow& flow) {
  flow.samples.Clear();
  bool any = false;
  if (!flow.device_lost.load()) {
    for (const DeviceCompletion& refused : flow.refused) HandleCompletion(flow, refused);
    flow.refused.Clear();
    const size_t count = flow.device->PollCompletions(absl::MakeSpan(flow.completions));
    // Work that a submitter launched since the Tick began may be complete already.
    if (count > 0) flow.now_ns = flow.device->NowNs();
    for (size_t i = 0; i < count; ++i) HandleCompletion(flow, flow.completions[i]);
    any = count > 0;
    CheckBlockedEvictions(flow);
    if (!flow.device_lost.load()) any = CheckHangs(flow) || any;
  }
  // The device was lost at a fast-path launch, or while words were still in the ring.
  const bool left = !flow.running_be.empty() || !flow.running_lc.empty() || !flow.backlog.empty();
  if (flow.device_lost.load() && (left || !flow.loss_handled)) {
    LoseDevice(flow, flow.loss_code.load());
    any = true;
  }
  return any;
}

}  // namespace gpushare::core
