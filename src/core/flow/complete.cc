// The complete stage: completions of launches, and what each means for its task. See complete.h.

#include "src/core/flow/complete.h"

#include <algorithm>

#include "src/core/base/tuning.h"
#include "src/core/evidence/segment_gain.h"
#include "src/core/evidence/solo_runs.h"
#include "src/core/flow/hangs.h"
#include "src/core/flow/verbs/evict.h"
#include "src/core/flow/verbs/finish.h"
#include "src/core/flow/verbs/label.h"
#include "src/core/flow/verbs/predict_task.h"
#include "src/core/flow/verbs/running.h"
#include "src/core/seams/launch_claims.h"
#include "src/core/state/backlog.h"
#include "src/core/state/state_change.h"

namespace gpushare::core {
namespace {

// Directions in which pinned BE copies ran at the launch of the LC task and at its end, with
// nothing else beside it; 0: not the same ones. What came and went in between is not seen.
LinkUse CopiesAllAlong(const Flow& flow, const Task& task) {
  if (task.record.beside) return 0;
  LinkUse now = 0;
  for (const CopyDirection direction :
       {CopyDirection::kHostToDevice, CopyDirection::kDeviceToHost}) {
    const CopyState& state = flow.copies[static_cast<size_t>(direction)];
    if (state.be_active > 0) now |= LinkUseOf(direction);
  }
  return now == task.progress.copies_beside ? now : LinkUse{0};
}

// Null: nobody learns, or this Tick has had its samples.
Sample* AddSample(Flow& flow, const Task& task, const Part& part, int64_t measured_ns,
                  bool evicted) {
  if (flow.samples.full() || !flow.learns.load(std::memory_order_relaxed)) return nullptr;
  Sample& sample = flow.samples.Add();
  Observation& observation = sample.observation;
  observation.features = FeaturesOf(task);
  observation.form = part.form;
  observation.sms = flow.lanes.place(part.place).sms;
  observation.workers = part.workers;
  observation.predicted_ns = task.progress.predicted.duration_ns;
  observation.measured_ns = measured_ns;
  observation.evicted = evicted;
  sample.has_beside = task.progress.had_co_residents;
  sample.beside.kernel = flow.tables.FindKernel(task.record.beside);
  // Only LC samples name their neighbour's SMs: LC work starts and ends while a BE launch runs, so
  // its effect on that launch cannot be attributed.
  if (!IsLc(task)) return &sample;
  observation.copies = CopiesAllAlong(flow, task);
  // Nor does LC work name BE work on its own SMs that it did not evict: it did not wait for that to
  // leave, and may have shared the SMs with it.
  const bool stayed = task.progress.beside_overlaps && !task.progress.evicts;
  sample.beside.sms = stayed ? 0 : task.progress.beside_sms;
  sample.beside.same_sms = task.progress.beside_overlaps && !stayed;
  return &sample;
}

// A BE task that ran in several launches, beside LC work or on a side of a split: what they would
// have taken alone on the whole device is a first idea of a kernel of which nothing is known. A
// task longer than the gaps between queries never gives a sample of one launch.
void LearnFirstIdea(Flow& flow, const Task& task, const Part& part) {
  if (IsLc(task) || task.work.kernel == nullptr || part.form == Form::kFused) return;
  Sample* const sample =
      AddSample(flow, task, part, static_cast<int64_t>(task.progress.whole_device_ns), false);
  if (sample == nullptr) return;
  sample->observation.sms = 0;
  sample->has_beside = true;
}

// Records how long the part's eviction took, and whether it was blocked.
void LearnEviction(Flow& flow, Task& task, const Part& part, const DeviceCompletion& completion) {
  if (!IsLeaving(flow.gate, part) || task.progress.eviction_p99_ns == kNever) return;
  const TimeNs evicted_at = flow.lanes.lane(part.lane).evicted_at_ns.load();
  if (evicted_at < part.launched_ns || completion.end_ns < evicted_at) return;
  const int64_t latency_ns = completion.end_ns - evicted_at;
  // A graph's last segments have the lowest priority: they may wait for the LC work that evicted
  // them, which says nothing about the next eviction.
  const bool in_segments = part.form == Form::kSegments;
  if (!in_segments && !part.blocked_eviction && latency_ns > BlockedEvictionNs(task)) {
    flow.counters.evictions_blocked.fetch_add(1, std::memory_order_relaxed);
  }
  if (completion.outcome != Outcome::kEvicted) return;
  ++task.record.evictions;
  task.app->evictions.fetch_add(1, std::memory_order_relaxed);
  flow.counters.evictions.fetch_add(1, std::memory_order_relaxed);
  flow.counters.eviction_latency.Add(latency_ns);
  // A launch that left before its first block task has no latency to learn from. Block tasks of a
  // fused launch take longer than those of the kernel alone.
  if (completion.block_tasks_done > 0 && part.form == Form::kWorkers) {
    AddSample(flow, task, part, latency_ns, true);
  }
}

// An eviction of a graph waits at most for the segments that are on the device. Longer ones, on
// fewer SMs or beside other work, would not tell what an eviction from the whole device waits for.
// Where the cut knows all segments, there is nothing to learn.
void LearnSegments(Flow& flow, const Task& task, const Part& part,
                   const DeviceCompletion& completion) {
  if (part.form != Form::kSegments || completion.longest_segment_ns <= 0) return;
  if (part.place != kWholeDevice || part.had_co_residents) return;
  if (task.work.kernel->cut.blocking.known()) return;
  AddSample(flow, task, part, kSegmentsOutstanding * completion.longest_segment_ns, true);
}

// A fused launch of which both parts have ended, alone on the device.
void LearnFused(Flow& flow, const Task& task, const Part& part,
                const DeviceCompletion& completion) {
  if (part.form != Form::kFused) return;
  FusedRun run;
  const bool whole = completion.timed && completion.outcome == Outcome::kFinished &&
                     completion.block_tasks_done >= part.blocks_asked;
  if (!flow.fused_runs.End({part.launch, completion.start_ns, completion.end_ns, whole}, run)) {
    return;
  }
  Sample* const sample = AddSample(flow, task, part, run.end_ns - run.start_ns, false);
  if (sample == nullptr) return;
  sample->fused = run.features;
  sample->has_beside = false;
}

// What the part did beside queries counts for all graphs in segments on the device. Without a known
// duration nobody can tell how much it did.
void NoteGain(Flow& flow, const Task& task, const Part& part, double work_ns) {
  SegmentGains& gains = flow.segment_gains;
  NoteBePart(gains, part.launched_ns, work_ns, flow.now_ns);
  if (part.form != Form::kSegments) return;
  if (!HasKnownDuration(flow.solo_runs, *task.work.kernel)) return BeginAnew(gains, flow.now_ns);
  CreditInterval(gains, task.record.kernel, flow.now_ns);
  for (const Task* other : flow.running_be) {
    if (other == &task || other->progress.parts.empty()) continue;
    if (other->progress.parts[0].form != Form::kSegments) continue;
    if (!HasKnownDuration(flow.solo_runs, *other->work.kernel)) continue;
    CreditInterval(gains, other->record.kernel, flow.now_ns);
  }
  BeginInterval(gains, flow.now_ns);
}

// Charges the device time and the work of an ended launch to its task and app.
void Account(Flow& flow, Task& task, const Part& part, const DeviceCompletion& completion) {
  const bool timed = flow.device->capabilities().timestamps;
  const TimeNs start = timed ? completion.start_ns : part.launched_ns;
  const TimeNs end = timed ? completion.end_ns : flow.now_ns;
  const int64_t span_ns = std::max<int64_t>(0, end - start);
  if (task.record.start_ns == 0) task.record.start_ns = start;
  task.record.end_ns = std::max(task.record.end_ns, end);
  task.record.measured_ns += span_ns;
  if (!IsLc(task) && task.work.kernel != nullptr) {
    const double speed = flow.model->SpeedOn(*task.work.kernel, flow.lanes.place(part.place).sms);
    task.progress.whole_device_ns += static_cast<double>(span_ns) * speed;
  }
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
  app.attained_ns += work_ns / app.fair_weight;
  if (IsLc(task) || task.work.kind == TaskKind::kMemcpy) return;
  flow.be_left_ns = flow.now_ns;
  NoteGain(flow, task, part, work_ns);
}

// The device's own duration. For an LC launch that waited for BE work to leave its SMs, it includes
// that wait, because a device may report the start before it.
int64_t MeasuredFor(const Flow& flow, const Task& task, const Part& part,
                    const DeviceCompletion& completion) {
  if (!task.progress.beside_overlaps) return task.record.measured_ns;
  const DeviceProfile& profile = flow.device->capabilities().profile;
  const int64_t latency_ns =
      part.form == Form::kGraph ? profile.graph_launch_latency_ns : profile.launch_latency_ns;
  const TimeNs end = flow.device->capabilities().timestamps ? completion.end_ns : flow.now_ns;
  return std::max(task.record.measured_ns, end - part.launched_ns - latency_ns);
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
    // A fused launch takes longer than its kernels alone.
    if (completion.timed && task.record.launches == 1 && task.record.evictions == 0 &&
        part.form != Form::kFused) {
      const int64_t measured_ns = MeasuredFor(flow, task, part, completion);
      const bool sampled = AddSample(flow, task, part, measured_ns, false) != nullptr;
      if (sampled && !IsLc(task) && !task.progress.had_co_residents) {
        NoteSoloMeasured(flow.solo_runs, task.record.kernel);
      }
    } else if (completion.timed && task.record.launches > 1) {
      LearnFirstIdea(flow, task, part);
    }
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
  LearnEviction(flow, *task, part, completion);
  LearnSegments(flow, *task, part, completion);
  LearnFused(flow, *task, part, completion);
  DropPart(flow, *task, index);
  Account(flow, *task, part, completion);
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
