// Completions, hangs and the end of tasks. See complete.h.

#include "src/core/flow/complete.h"

#include <algorithm>
#include <array>

#include "src/core/base/tuning.h"
#include "src/core/flow/admit.h"
#include "src/core/flow/fast_path.h"
#include "src/core/flow/launch.h"
#include "src/core/flow/predict.h"
#include "src/core/seams/launch_claims.h"
#include "src/core/state/active_queries.h"
#include "src/core/state/state_change.h"

namespace gpushare::core {
namespace {

void RemoveRunning(Flow& flow, Task& task) {
  if (task.running_index < 0) return;
  const bool lc_list = IsLc(task) || task.started_early;
  const auto index = static_cast<size_t>(task.running_index);
  if (lc_list) {
    Task* last = flow.running_lc[static_cast<size_t>(--flow.running_lc_count)];
    flow.running_lc[index] = last;
    last->running_index = task.running_index;
  } else {
    Task* last = flow.running_be[static_cast<size_t>(--flow.running_be_count)];
    flow.running_be[index] = last;
    last->running_index = task.running_index;
  }
  task.running_index = -1;
  --task.app->tasks_in_flight;
  flow.queued_ns -= task.issued_ns;
  task.queue->in_flight.fetch_sub(1, std::memory_order_acq_rel);
  if (task.kind == TaskKind::kMemcpy) {
    CopyState& copies = flow.copies[static_cast<size_t>(task.copy.direction)];
    --(lc_list ? copies.lc_active : copies.be_active);
  }
}

// The part's lane, launch slot and CapSMs; not the task's lists.
void DropPart(Flow& flow, Task& task, int index) {
  const Part part = task.parts[static_cast<size_t>(index)];
  Lane& lane = flow.lanes.lane(part.lane);
  lane.in_flight.fetch_sub(1, std::memory_order_acq_rel);
  if (part.epoch != 0) lane.evictable.fetch_sub(1, std::memory_order_acq_rel);
  if (part.carrier != kNoLane) {
    Lane& carrier = flow.lanes.lane(part.carrier);
    carrier.carried.fetch_sub(1, std::memory_order_acq_rel);
    carrier.progress_ns = flow.now_ns;
    lane.ridden.store(false, std::memory_order_relaxed);
  }
  if (--lane.parts == 0) --flow.lanes_busy;
  lane.progress_ns = flow.now_ns;
  flow.launches.Free(part.launch);
  flow.ledger.Release(static_cast<int>(task.app->slot), part.workers, part.workers_per_sm);
  task.parts[static_cast<size_t>(index)] = task.parts[static_cast<size_t>(--task.part_count)];
}

void EmitPartDone(const Flow& flow, const Task& task, const Part& part,
                  const DeviceCompletion& completion) {
  EventRecord event;
  event.type = static_cast<uint8_t>(EventType::kPartDone);
  event.time_ns = flow.now_ns;
  event.id = task.record.ticket.value;
  event.app = task.record.app.value;
  event.app_class = static_cast<uint8_t>(task.app->options.app_class);
  event.kernel = task.record.kernel.value;
  event.place = static_cast<int16_t>(part.place);
  event.detail = static_cast<uint8_t>(completion.outcome);
  event.a = static_cast<int64_t>(part.launch.value);
  event.b = completion.start_ns;
  event.c = completion.end_ns;
  event.d = completion.block_tasks_done;
  flow.Emit(event);
}

void AddSample(Flow& flow, const Task& task, const Part& part, int64_t measured_ns, bool evicted) {
  if (flow.sample_count == kBatch || flow.bare.load(std::memory_order_relaxed)) return;
  Sample& sample = flow.samples[static_cast<size_t>(flow.sample_count++)];
  sample = Sample();
  Observation& observation = sample.observation;
  observation.features = FeaturesOf(task);
  observation.form = part.form;
  observation.sms = flow.lanes.places()[static_cast<size_t>(part.place)].sms;
  observation.workers = part.workers;
  observation.predicted_ns = task.predicted.duration_ns;
  observation.measured_ns = measured_ns;
  observation.evicted = evicted;
  sample.has_beside = task.had_company;
  sample.beside.kernel = flow.tables.FindKernel(task.record.beside);
  // LC work comes and goes: what it does to a BE launch is no constant.
  if (!IsLc(task)) return;
  sample.beside.sms = task.beside_sms;
  sample.beside.same_sms = task.beside_overlaps;
}

// An eviction that takes longer was blocked.
int64_t EvictionLimitNs(const Task& task) {
  return kBlockedEvictionFactor * task.eviction_p99_ns + kBlockedEvictionFloorNs;
}

// An eviction that the part saw: how long it took, and whether the write was blocked.
void LearnEviction(Flow& flow, Task& task, const Part& part, const DeviceCompletion& completion) {
  if (!WasTold(flow.gate, part) || task.eviction_p99_ns == kNever) return;
  const TimeNs evicted_at = flow.lanes.lane(part.lane).evicted_at_ns.load();
  if (evicted_at < part.launched_ns || completion.end_ns < evicted_at) return;
  const int64_t latency_ns = completion.end_ns - evicted_at;
  if (!part.blocked_eviction && latency_ns > EvictionLimitNs(task)) {
    flow.counters.evictions_blocked.fetch_add(1, std::memory_order_relaxed);
  }
  if (completion.outcome != Outcome::kEvicted) return;
  ++task.record.evictions;
  task.app->evictions.fetch_add(1, std::memory_order_relaxed);
  flow.counters.evictions.fetch_add(1, std::memory_order_relaxed);
  flow.counters.eviction_latency.Add(latency_ns);
  // A launch that was evicted before it took a block task says nothing about block tasks, and a
  // fused one little: its block tasks take longer than the kernel's own.
  if (completion.block_tasks_done > 0 && part.form != Form::kFused) {
    AddSample(flow, task, part, latency_ns, true);
  }
}

// Device time and work of one ended launch, charged to its task and app.
void Account(Flow& flow, Task& task, const Part& part, const DeviceCompletion& completion) {
  const bool timed = flow.device->capabilities().timestamps;
  const TimeNs start = timed ? completion.start_ns : part.launched_ns;
  const TimeNs end = timed ? completion.end_ns : flow.now_ns;
  const int64_t span_ns = std::max<int64_t>(0, end - start);
  if (task.record.start_ns == 0) task.record.start_ns = start;
  task.record.end_ns = std::max(task.record.end_ns, end);
  task.record.measured_ns += span_ns;
  App& app = *task.app;
  app.device_ns.fetch_add(span_ns, std::memory_order_relaxed);
  const double share =
      static_cast<double>(flow.lanes.places()[static_cast<size_t>(part.place)].sms) /
      flow.device->capabilities().profile.sm_count;
  app.attained_ns +=
      static_cast<int64_t>(static_cast<double>(span_ns) * share / app.options.weight);
  const bool counted = ClaimsBlockTasks(part.form);
  const int64_t done = counted                                    ? completion.block_tasks_done
                       : completion.outcome == Outcome::kFinished ? part.blocks_asked
                                                                  : 0;
  task.blocks_done = std::min(task.blocks, task.blocks_done + done);
  app.block_tasks.fetch_add(done, std::memory_order_relaxed);
  app.work_ns.fetch_add(
      static_cast<int64_t>(static_cast<double>(task.predicted.duration_ns) *
                           static_cast<double>(done) / static_cast<double>(task.blocks)),
      std::memory_order_relaxed);
}

// The device's own duration; of an LC launch that waited for BE work on its SMs to leave, the wait
// too, whenever the device says that it started.
int64_t MeasuredFor(const Flow& flow, const Task& task, const Part& part,
                    const DeviceCompletion& completion) {
  if (!task.beside_overlaps) return task.record.measured_ns;
  const DeviceProfile& profile = flow.device->capabilities().profile;
  const int64_t latency_ns =
      part.form == Form::kGraph ? profile.graph_launch_latency_ns : profile.launch_latency_ns;
  const TimeNs end = flow.device->capabilities().timestamps ? completion.end_ns : flow.now_ns;
  return std::max(task.record.measured_ns, end - part.launched_ns - latency_ns);
}

// The last launch of the task has ended: done, or back to its queue with the rest.
void SettleTask(Flow& flow, Task& task, const Part& part, const DeviceCompletion& completion) {
  // First of all: a cancellation or a shutdown that came too late takes nothing from what is done.
  if (task.blocks_done >= task.blocks) {
    // What a fused launch took says nothing about its kernels alone.
    if (completion.timed && task.record.launches == 1 && task.record.evictions == 0 &&
        part.form != Form::kFused) {
      AddSample(flow, task, part, MeasuredFor(flow, task, part, completion), false);
    }
    FinishTask(flow, task, Verdict::kOk);
    return;
  }
  if (completion.outcome == Outcome::kFailed) {
    task.record.error_code = completion.error_code;
    FinishTask(flow, task, Verdict::kFailed);
    return;
  }
  if (task.cancel_requested.load() || !flow.accepting.load()) {
    FinishTask(flow, task, task.cancel_requested.load() ? Verdict::kCancelled : Verdict::kShutdown);
    return;
  }
  if (ClaimsBlockTasks(part.form) && completion.outcome == Outcome::kFinished &&
      completion.block_tasks_done == 0) {
    // Nothing was left to claim, and yet block tasks are missing: a device's fault, not ours to
    // loop on.
    FinishTask(flow, task, Verdict::kFailed);
    return;
  }
  RemoveRunning(flow, task);
  if (task.query != nullptr) task.query->issued_ns -= task.issued_ns;
  task.issued_ns = 0;
  if (task.entered_gate) {
    flow.gate.LeaveLc();
    task.entered_gate = false;
  }
  SetState(task, TaskState::kReady);
  task.ready_ns = flow.now_ns;
  task.evicted_since_ns = flow.now_ns;
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
  while (task->parts[static_cast<size_t>(index)].launch != completion.launch) ++index;
  const Part part = task->parts[static_cast<size_t>(index)];
  flow.dirty = true;
  EmitPartDone(flow, *task, part, completion);
  if (completion.outcome == Outcome::kDeviceLost) {
    LoseDevice(flow, completion.error_code);
    return;
  }
  LearnEviction(flow, *task, part, completion);
  DropPart(flow, *task, index);
  Account(flow, *task, part, completion);
  if (task->part_count == 0) SettleTask(flow, *task, part, completion);
}

// A part that made no progress for its limit: its lane is given up with all that is on it.
LaneIndex FindHungLane(Flow& flow, absl::Span<Task* const> tasks, TimeNs* next_check) {
  for (Task* task : tasks) {
    for (int p = 0; p < task->part_count; ++p) {
      const Part& part = task->parts[static_cast<size_t>(p)];
      const TimeNs since = std::max(part.launched_ns, flow.lanes.lane(part.lane).progress_ns);
      if (flow.now_ns - since >= part.hang_limit_ns) {
        // What hangs is the stream that the part is on.
        const bool carried = part.carrier != kNoLane && flow.lanes.lane(part.carrier).usable.load();
        return carried ? part.carrier : part.lane;
      }
      *next_check = std::min(*next_check, since + part.hang_limit_ns);
    }
  }
  return kNoLane;
}

bool IsOnLane(const Task& task, LaneIndex lane) {
  for (int p = 0; p < task.part_count; ++p) {
    const Part& part = task.parts[static_cast<size_t>(p)];
    if (part.lane == lane || part.carrier == lane) return true;
  }
  return false;
}

void GiveUpLane(Flow& flow, LaneIndex lane) {
  flow.device->AbandonLane(lane);
  flow.counters.hung.fetch_add(1, std::memory_order_relaxed);
  EventRecord event;
  event.type = static_cast<uint8_t>(EventType::kLaneAbandoned);
  event.time_ns = flow.now_ns;
  event.id = static_cast<uint64_t>(lane);
  flow.Emit(event);
  const auto finish_on_lane = [&](auto& list, const int& count) {
    for (int i = 0; i < count;) {
      Task& task = *list[static_cast<size_t>(i)];
      if (!IsOnLane(task, lane)) {
        ++i;
        continue;
      }
      // Its launch on the other side of a split is healthy and must not go on for nobody.
      for (int p = 0; p < task.part_count; ++p) {
        const Part& part = task.parts[static_cast<size_t>(p)];
        if (part.lane != lane && part.epoch != 0) {
          EvictLane(flow, part.lane, 0, task.record.ticket, Reason::kNone);
        }
      }
      ForgetParts(flow, task);
      FinishTask(flow, task, Verdict::kTimedOut);  // another task takes index i
    }
  };
  finish_on_lane(flow.running_be, flow.running_be_count);
  finish_on_lane(flow.running_lc, flow.running_lc_count);
  // A class without lanes holds its tasks: the reason is in the log, and nothing is lost.
  if (flow.lanes.lane(lane).usable.load()) {
    const int blocked = flow.lanes.lanes_blocked();
    flow.lanes.Replace(*flow.device, lane).IgnoreError();
    flow.counters.evictions_blocked.fetch_add(flow.lanes.lanes_blocked() - blocked,
                                              std::memory_order_relaxed);
  }
  flow.dirty = true;
}

bool CheckHangs(Flow& flow) {
  if (flow.now_ns < flow.hang_check_ns) return false;
  bool found = false;
  for (;;) {
    TimeNs next = kNever;
    const auto be =
        absl::MakeSpan(flow.running_be.data(), static_cast<size_t>(flow.running_be_count));
    const auto lc =
        absl::MakeSpan(flow.running_lc.data(), static_cast<size_t>(flow.running_lc_count));
    LaneIndex lane = FindHungLane(flow, be, &next);
    if (lane == kNoLane) lane = FindHungLane(flow, lc, &next);
    if (lane == kNoLane) {
      flow.hang_check_ns = next;
      return found;
    }
    GiveUpLane(flow, lane);
    found = true;
  }
}

// Evictions that are not seen in time are counted while their launches still run, each launch once:
// nothing waits for them.
void CheckEvictions(Flow& flow) {
  for (int i = 0; i < flow.running_be_count; ++i) {
    Task& task = *flow.running_be[static_cast<size_t>(i)];
    if (task.eviction_p99_ns == kNever) continue;
    for (int p = 0; p < task.part_count; ++p) {
      Part& part = task.parts[static_cast<size_t>(p)];
      if (part.blocked_eviction || !WasTold(flow.gate, part)) continue;
      if (part.told_ns == 0) part.told_ns = flow.now_ns;
      if (flow.now_ns - part.told_ns <= EvictionLimitNs(task)) continue;
      part.blocked_eviction = true;
      flow.counters.evictions_blocked.fetch_add(1, std::memory_order_relaxed);
    }
  }
}

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

void EmitCompleted(const Flow& flow, const Task& task) {
  EventRecord event;
  event.type = static_cast<uint8_t>(EventType::kCompleted);
  event.time_ns = flow.now_ns;
  event.id = task.record.ticket.value;
  event.app = task.record.app.value;
  event.app_class = static_cast<uint8_t>(task.app->options.app_class);
  event.kernel = task.record.kernel.value;
  event.place = static_cast<int16_t>(task.record.place);
  event.detail = static_cast<uint8_t>(task.record.verdict);
  event.a = task.record.predicted_ns;
  event.b = task.record.measured_ns;
  event.c = static_cast<int64_t>(task.record.query.value);
  event.d = task.query == nullptr ? task.record.submit_ns : task.query->arrival_ns;
  flow.Emit(event);
}

}  // namespace

void ForgetParts(Flow& flow, Task& task) {
  while (task.part_count > 0) DropPart(flow, task, 0);
}

void FinishTask(Flow& flow, Task& task, Verdict verdict) {
  const bool counted = task.running_index >= 0;
  RemoveRunning(flow, task);
  if (task.is_region) {
    if (!counted) task.queue->in_flight.fetch_sub(1, std::memory_order_acq_rel);
    flow.open_regions.fetch_sub(1, std::memory_order_acq_rel);
  }
  SetState(task, StateOf(verdict));
  if (task.entered_gate) flow.gate.LeaveLc();
  // Workers of a lane that was given up may still claim from their counter: it is not used again.
  if (task.counter >= 0 && verdict != Verdict::kTimedOut) {
    flow.free_counters[static_cast<size_t>(flow.free_counter_count++)] = task.counter;
  }
  CompletionRecord& record = task.record;
  record.verdict = verdict;
  record.complete_ns = flow.now_ns;
  record.block_tasks = task.blocks_done;
  App& app = *task.app;
  CountVerdict(app, verdict);
  if (task.query == nullptr) app.latency.Add(flow.now_ns - record.submit_ns);
  EmitCompleted(flow, task);
  FinishQueryTask(flow, task);
  task.queue->tasks_open.fetch_sub(1, std::memory_order_acq_rel);
  if (task.callback != nullptr) {
    flow.notices.push_back({task.callback, task.callback_user, record});
  }
  flow.dirty = true;
  task.complete.store(true, std::memory_order_release);
  flow.counters.pending.fetch_sub(1, std::memory_order_acq_rel);
  flow.tables.DropTask(task, kHeldByFlow);
}

void FinishBacklog(Flow& flow, Verdict verdict) {
  while (flow.backlog_count > 0) {
    Task& task = *flow.backlog[0]->head;
    Unlink(flow, task);
    FinishTask(flow, task, verdict);
  }
}

void LoseDevice(Flow& flow, int32_t error_code) {
  flow.device_lost.store(true);
  const bool first = !flow.loss_told;
  flow.loss_told = true;
  flow.accepting.store(false);
  flow.fast_path.store(false);
  if (first) {
    EventRecord event;
    event.type = static_cast<uint8_t>(EventType::kDeviceLost);
    event.time_ns = flow.now_ns;
    event.a = error_code;
    flow.Emit(event);
  }
  const auto finish_all = [&](auto& list, const int& count) {
    while (count > 0) {
      Task& task = *list[0];
      task.record.error_code = error_code;
      ForgetParts(flow, task);
      FinishTask(flow, task, Verdict::kDeviceLost);
    }
  };
  finish_all(flow.running_be, flow.running_be_count);
  finish_all(flow.running_lc, flow.running_lc_count);
  FinishBacklog(flow, Verdict::kDeviceLost);
}

bool Complete(Flow& flow) {
  flow.sample_count = 0;
  bool any = false;
  if (!flow.device_lost.load()) {
    for (const DeviceCompletion& refused : flow.refused) HandleCompletion(flow, refused);
    flow.refused.clear();
    const size_t count = flow.device->PollCompletions(absl::MakeSpan(flow.completions));
    // Work that a submitter launched since the Tick began may be complete already.
    if (count > 0) flow.now_ns = flow.device->NowNs();
    for (size_t i = 0; i < count; ++i) HandleCompletion(flow, flow.completions[i]);
    any = count > 0;
    CheckEvictions(flow);
    if (!flow.device_lost.load()) any = CheckHangs(flow) || any;
  }
  // Lost at a fast-path launch, or while words were still in the ring.
  const bool left = flow.running_be_count + flow.running_lc_count + flow.backlog_count > 0;
  if (flow.device_lost.load() && (left || !flow.loss_told)) {
    LoseDevice(flow, 0);
    any = true;
  }
  return any;
}

}  // namespace gpushare::core
