// The verbs "enter running" and "leave running". See running.h.

#include "src/core/flow/verbs/running.h"

#include <algorithm>
#include <utility>

#include "src/core/flow/learn/co_residents.h"
#include "src/core/flow/learn/learn.h"
#include "src/core/flow/verbs/hang_limit.h"
#include "src/core/flow/verbs/predict_task.h"
#include "src/core/flow/verbs/queries/idle.h"
#include "src/core/flow/verbs/queries/queries.h"
#include "src/core/flow/verbs/request.h"
#include "src/core/flow/verbs/spin_window.h"
#include "src/core/log/label.h"
#include "src/core/state/query_waits.h"

namespace gpushare::core {
namespace {

// The list that the task is in while it runs. A region of a BE app counts as LC work: nothing can
// evict it.
bool InLcList(const Task& task) { return IsLc(task) || task.progress.started_early; }

CopyState& CopiesOf(Flow& flow, const Task& task) {
  return flow.copies[static_cast<size_t>(task.work.copy.direction)];
}

// What an eviction of a graph in segments leaves undone. The flow counts on one where no lane is
// blocked (plan.cc).
int64_t UncommittedNs(const Flow& flow, const Task& task, Form form) {
  if (form != Form::kSegments || IsLc(task) || flow.lanes.lanes_blocked() > 0) return 0;
  return std::max<int64_t>(0, task.progress.issued_ns - task.progress.eviction_p99_ns);
}

void EnterList(Flow& flow, Task& task, Form form) {
  const bool lc = InLcList(task);
  task.progress.running_index = lc ? flow.running_lc.size() : flow.running_be.size();
  if (lc) {
    flow.running_lc.Add(&task);
  } else {
    flow.running_be.Add(&task);
  }
  ++task.app->tasks_in_flight;
  CountQueryTask(task, 0, 1);
  task.progress.issued_ns = RemainingOf(task).duration_ns;
  if (!IsLc(task)) {
    const size_t resource = ResourceOf(task);
    double& virtual_time_ns = flow.virtual_time_ns[resource];
    virtual_time_ns = std::max(virtual_time_ns, StartTag(*task.app, resource));
    ResourceUse& use = task.app->uses[resource];
    ++use.tasks;
    use.on_device_ns += task.progress.issued_ns;
  }
  flow.queued_ns += task.progress.issued_ns;
  task.progress.uncommitted_ns = UncommittedNs(flow, task, form);
  flow.uncommitted_ns += task.progress.uncommitted_ns;
  if (task.query != nullptr) {
    task.query->issued_ns += task.progress.issued_ns;
    LcOnDevice& there = task.app->on_device;
    if (there.issued_ns == 0) there.first_since_ns = flow.now_ns;
    there.issued_ns += task.progress.issued_ns;
  }
  if (task.work.kind == TaskKind::kMemcpy) {
    CopyState& copies = CopiesOf(flow, task);
    ++(lc ? copies.lc_active : copies.be_active);
    copies.lc_uses = copies.lc_uses || lc;
  }
}

template <class List>
void RemoveFrom(List& list, int index) {
  list.RemoveAt(index);
  if (index < list.size()) list[index]->progress.running_index = index;
}

Launched LaunchedEvent(const Task& task, const Part& part, Reason reason) {
  return {.task = LabelOf(task),
          .launch = part.launch,
          .blocks_asked = part.blocks_asked,
          .workers = part.workers,
          .lane = part.lane,
          .place = part.place,
          .blocks_done = task.progress.blocks_done,
          .form = part.form,
          .reason = reason};
}

}  // namespace

void SizePart(const Flow& flow, const Task& task, const PlannedLaunch& planned, Part& part) {
  part.workers_per_sm =
      task.work.kernel == nullptr ? 1 : task.work.kernel->resources.workers_per_sm_max;
  const int64_t holds = int64_t{flow.lanes.place(part.place).sms} * part.workers_per_sm;
  const int64_t left = std::max<int64_t>(1, task.work.block_tasks - BlocksLaunched(task));
  int64_t workers = planned.workers > 0 ? planned.workers : holds;
  if (task.work.kind == TaskKind::kMemcpy || task.work.kind == TaskKind::kOpaque) workers = 0;
  part.workers = static_cast<int32_t>(std::min({workers, holds, left}));
  if (task.work.kind == TaskKind::kGraph || task.work.kind == TaskKind::kLibrary) {
    part.workers = static_cast<int32_t>(holds);
  }
  part.blocks_asked = left;
  // The block tasks of a graph are its segments, and no launch runs a part of them.
  const bool divisible = task.work.kind == TaskKind::kKernel || task.work.kind == TaskKind::kMemcpy;
  if (divisible && planned.blocks_max > 0) {
    part.blocks_asked = std::min(left, planned.blocks_max);
  }
  // The launch keeps the scheduler's thread until the copy has ended. An LC copy keeps its
  // submitter, whose query it is.
  const bool blocks = task.work.kind == TaskKind::kMemcpy && !task.work.copy.pinned &&
                      !IsLc(task) && flow.device->capabilities().pageable_copies_block;
  if (blocks) part.blocks_asked = std::min(part.blocks_asked, kPageablePieceBytesMax);
}

void EnterRunning(Flow& flow, Task& task, Part& part, Reason reason) {
  const bool begins = task.progress.running_index < 0;
  if (begins) {
    EnterList(flow, task, part.form);
    PublishSpinWindow(flow, task, part);
  }
  if (task.progress.started_early) SizePart(flow, task, PlannedLaunch(), part);
  if (flow.lanes.lane(part.lane).parts++ == 0) ++flow.lanes_busy;
  RecordCoResidents(flow, task, part);
  LearnPartBegan(flow, task, reason, begins);
  // The second part of a fused launch runs in the order of the first part's lane.
  flow.fused_runs.Spoil(part.launch, part.order_lane != kNoLane ? part.order_lane : part.lane);
  part.co_run_seen =
      flow.co_runs.Begin({part.launch, part.order_lane != kNoLane ? part.order_lane : part.lane,
                          CoRunWorkers(flow, task, part), part.launched_ns});
  flow.ledger.Charge(static_cast<int>(task.app->slot), part.workers, part.workers_per_sm);
  part.hang_limit_ns = HangLimitNs(flow, task, part);
  flow.hang_check_ns = std::min(flow.hang_check_ns, flow.now_ns + part.hang_limit_ns);
  flow.counters.launches.fetch_add(1, std::memory_order_relaxed);
  if (!flow.HasEvents()) return;
  const Launched launched = LaunchedEvent(task, part, reason);
  if (reason == Reason::kFastPath) {
    flow.EmitAt(part.launched_ns, FastPathLaunched{launched});
  } else {
    flow.EmitAt(part.launched_ns, launched);
  }
}

void DropPart(Flow& flow, Task& task, int index) {
  const Part& part = task.progress.parts[index];
  Lane& lane = flow.lanes.lane(part.lane);
  lane.in_flight.fetch_sub(1, std::memory_order_acq_rel);
  if (part.epoch != 0) lane.evictable.fetch_sub(1, std::memory_order_acq_rel);
  if (part.order_lane != kNoLane) {
    Lane& first = flow.lanes.lane(part.order_lane);
    first.fused_partners_pending.fetch_sub(1, std::memory_order_acq_rel);
    first.progress_ns = flow.now_ns;
    lane.holds_fused_partner.store(false, std::memory_order_relaxed);
  }
  if (part.form == Form::kSegments) {
    lane.holds_segments.store(false, std::memory_order_relaxed);
    LearnSegmentsDropped(flow, task, part);
  }
  if (--lane.parts == 0) --flow.lanes_busy;
  lane.progress_ns = flow.now_ns;
  // A launch may be dropped without a completion: its fused run then ends here, as no sample.
  FusedRun unused;
  flow.fused_runs.End({.launch = part.launch}, unused);
  flow.co_runs.Drop(part.launch, part.co_run_seen);
  flow.launches.Free(part.launch);
  flow.ledger.Release(static_cast<int>(task.app->slot), part.workers, part.workers_per_sm);
  task.progress.parts.RemoveAt(index);
}

void DropParts(Flow& flow, Task& task) {
  while (!task.progress.parts.empty()) DropPart(flow, task, 0);
}

void LeaveRunning(Flow& flow, Task& task) {
  const int index = task.progress.running_index;
  if (index < 0) return;
  const bool lc = InLcList(task);
  if (lc) {
    RemoveFrom(flow.running_lc, index);
  } else {
    RemoveFrom(flow.running_be, index);
  }
  task.progress.running_index = -1;
  --task.app->tasks_in_flight;
  CountQueryTask(task, 0, -1);
  task.progress.on_credit = false;
  flow.queued_ns -= task.progress.issued_ns;
  if (task.query != nullptr) {
    task.app->on_device.issued_ns -= task.progress.issued_ns;
    task.app->on_device.first_since_ns = flow.now_ns;
  }
  flow.uncommitted_ns -= std::exchange(task.progress.uncommitted_ns, 0);
  if (!IsLc(task)) {
    ResourceUse& use = task.app->uses[ResourceOf(task)];
    --use.tasks;
    use.on_device_ns -= task.progress.issued_ns;
    use.served_ns = flow.now_ns;
  }
  task.queue->in_flight.fetch_sub(1, std::memory_order_acq_rel);
  if (task.work.kind == TaskKind::kMemcpy) {
    CopyState& copies = CopiesOf(flow, task);
    --(lc ? copies.lc_active : copies.be_active);
  }
}

void Adopt(Flow& flow, Task& task) {
  // acquire: what the submitter wrote before it launched.
  if (task.state.load(std::memory_order_acquire) != TaskState::kRunning || task.progress.adopted)
    return;
  task.progress.adopted = true;
  task.progress.sequence = flow.next_sequence++;
  task.record.admit_ns = flow.now_ns;
  UnwatchRegion(flow, task);
  if (task.query != nullptr) {
    const TimeNs launch_ns = task.record.launch_ns;  // 0: a region
    BeginLaunchedQuery(flow, *task.query, launch_ns > 0 ? launch_ns : flow.now_ns);
  }
  PredictTask(flow, task);
  EnterRunning(flow, task, task.progress.parts[0], Reason::kFastPath);
  flow.dirty = true;
}

}  // namespace gpushare::core
