// The measurements of a completion. See samples.h.

#include "src/core/flow/learn/samples.h"

#include <algorithm>

#include "src/core/base/tuning.h"
#include "src/core/flow/learn/co_residents.h"
#include "src/core/seams/launch_claims.h"
#include "src/core/state/features.h"

namespace gpushare::core {
namespace {

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
void SampleFirstIdea(Flow& flow, const Task& task, const Part& part) {
  if (IsLc(task) || task.work.kernel == nullptr || part.form == Form::kFused) return;
  Sample* const sample =
      AddSample(flow, task, part, static_cast<int64_t>(task.progress.whole_device_ns), false);
  if (sample == nullptr) return;
  sample->observation.sms = 0;
  sample->has_beside = true;
}

// A launch that left before its first block task has no latency to learn from. Block tasks of a
// fused launch take longer than those of the kernel alone.
void SampleEviction(Flow& flow, const Task& task, const Part& part,
                    const DeviceCompletion& completion, int64_t eviction_ns) {
  if (eviction_ns == kNotEvicted) return;
  if (completion.block_tasks_done <= 0 || part.form != Form::kWorkers) return;
  // Block tasks of fewer workers take less time, where no other work fills the SMs.
  if (!part.had_co_residents && IsNarrow(flow, task, part)) return;
  AddSample(flow, task, part, eviction_ns, true);
}

// An eviction of a graph waits at most for the segments that are on the device. Longer ones, on
// fewer SMs or beside other work, would not tell what an eviction from the whole device waits for.
// Where the cut knows all segments, there is nothing to learn.
void SampleSegments(Flow& flow, const Task& task, const Part& part,
                    const DeviceCompletion& completion) {
  if (part.form != Form::kSegments || completion.longest_segment_ns <= 0) return;
  if (part.place != kWholeDevice || part.had_co_residents) return;
  if (task.work.kernel->known_blocking() != nullptr) return;
  AddSample(flow, task, part, kSegmentsOutstanding * completion.longest_segment_ns, true);
}

// A fused launch of which both parts have ended, alone on the device.
void SampleFused(Flow& flow, const Task& task, const Part& part,
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

// A launch with fewer of its time beside the neighbour says more of its workers without it.
constexpr double kBesideShareMin = 0.9;

void SampleCoRun(Flow& flow, const Task& task, const Part& part,
                 const DeviceCompletion& completion) {
  const bool timed = completion.timed && completion.outcome != Outcome::kFailed;
  const bool whole =
      completion.outcome == Outcome::kFinished && completion.block_tasks_done >= part.blocks_asked;
  CoRunTimes times;
  if (!flow.co_runs.End(
          {part.launch, timed ? completion.start_ns : 0, timed ? completion.end_ns : 0, whole},
          times)) {
    return;
  }
  const double share = static_cast<double>(times.beside_ns) / static_cast<double>(times.ns);
  const KernelDesc* const neighbour = flow.tables.FindKernel(times.neighbour.kernel);
  if (share < kBesideShareMin || neighbour == nullptr) return;
  Sample* const sample = AddSample(flow, task, part, times.ns, false);
  if (sample == nullptr) return;
  sample->co_run = {{task.work.kernel, times.own.per_sm, completion.block_tasks_done},
                    {neighbour, times.neighbour.per_sm, 0},
                    share};
}

int64_t LatencyOf(const Flow& flow, const Part& part) {
  const DeviceProfile& profile = flow.device->capabilities().profile;
  return part.form == Form::kGraph ? profile.graph_launch_latency_ns : profile.launch_latency_ns;
}

// The device's own duration. For an LC launch that waited for BE work to leave its SMs, it includes
// that wait, because a device may report the start before it.
int64_t MeasuredFor(const Flow& flow, const Task& task, const Part& part,
                    const DeviceCompletion& completion) {
  if (!task.progress.beside_overlaps) return task.record.measured_ns;
  const TimeNs end = flow.device->capabilities().timestamps ? completion.end_ns : flow.now_ns;
  return std::max(task.record.measured_ns, end - part.launched_ns - LatencyOf(flow, part));
}

// The first launch of a busy period says what it evicted, if that is all that it met.
// Longer segments than the graph's own say nothing of those.
void NoteEviction(const Flow& flow, const Task& task, TimeNs launched_ns, int64_t launch_ns) {
  EvictionDelay& delay = task.app->evidence.eviction;
  delay.evicted = KernelId();
  if (!task.progress.beside_overlaps || !task.progress.evicts) return;
  if (launched_ns < flow.long_segments_until_ns) return;
  delay.evicted = task.record.beside;
  delay.kernel = task.record.kernel;
  delay.kernel_trained = task.progress.predicted.trained;
  delay.launch_ns = launch_ns;
}

void NoteLcLaunch(const Flow& flow, const Task& task, const Part& part,
                  const DeviceCompletion& completion, int64_t measured_ns) {
  if (!IsLc(task) || task.query == nullptr || task.work.kernel == nullptr) return;
  AppEvidence& app = task.app->evidence;
  const QueryState& query = *task.query;
  const bool first = query.ended_ns == 0;
  const int64_t launch_ns = LatencyOf(flow, part);
  if (first && !query.waited) return NoteEviction(flow, task, part.launched_ns, launch_ns);
  NoteMet(app.eviction, task.record.beside);
  if (first || task.record.beside) return;
  const TimeNs ready_ns = std::max(query.ended_ns, part.launched_ns + launch_ns);
  NoteLaunchGap(app, std::max<int64_t>(0, completion.end_ns - ready_ns - measured_ns));
}

}  // namespace

void SampleLaunch(Flow& flow, const Task& task, const Part& part,
                  const DeviceCompletion& completion, int64_t eviction_ns) {
  SampleEviction(flow, task, part, completion, eviction_ns);
  SampleSegments(flow, task, part, completion);
  SampleFused(flow, task, part, completion);
  SampleCoRun(flow, task, part, completion);
}

bool SampleTask(Flow& flow, const Task& task, const Part& part,
                const DeviceCompletion& completion) {
  if (!completion.timed) return false;
  // A fused launch takes longer than its kernels alone.
  if (task.record.launches == 1 && task.record.evictions == 0 && part.form != Form::kFused) {
    const int64_t measured_ns = MeasuredFor(flow, task, part, completion);
    NoteLcLaunch(flow, task, part, completion, measured_ns);
    const bool sampled = AddSample(flow, task, part, measured_ns, false) != nullptr;
    return sampled && !IsLc(task) && !task.progress.had_co_residents;
  }
  if (task.record.launches > 1) SampleFirstIdea(flow, task, part);
  return false;
}

void SampleQuery(Flow& flow, const QueryState& query) {
  if (!(query.input_size > 0) || query.disturbed || query.done_ns <= 0) return;
  if (flow.query_samples.full() || !flow.learns.load(std::memory_order_relaxed)) return;
  flow.query_samples.Add() = {FeaturesOf(query), query.done_ns};
}

void SampleDelay(Flow& flow, const EvictionDelay& delay) {
  if (flow.delayed_queries.full() || !flow.learns.load(std::memory_order_relaxed)) return;
  flow.delayed_queries.Add() = {.kernel = flow.tables.FindKernel(delay.kernel),
                                .kernel_trained = delay.kernel_trained,
                                .evicted = flow.tables.FindKernel(delay.evicted),
                                .added_ns = delay.delay_ns};
}

bool RanAlone(const Task& task) {
  return task.record.verdict == Verdict::kOk && task.record.launches == 1 &&
         task.record.evictions == 0 && task.record.place == kWholeDevice &&
         task.record.form != Form::kFused && !task.progress.had_co_residents &&
         !task.progress.beside_overlaps;
}

}  // namespace gpushare::core
