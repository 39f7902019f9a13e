// The verb "launch" of one task by itself. See launch_task.h.

#include "src/core/flow/verbs/launch_task.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "src/core/flow/verbs/evict.h"
#include "src/core/flow/verbs/finish.h"
#include "src/core/flow/verbs/plan_entry.h"
#include "src/core/flow/verbs/request.h"
#include "src/core/flow/verbs/running.h"
#include "src/core/log/label.h"
#include "src/core/seams/launch_claims.h"
#include "src/core/seams/native_code.h"
#include "src/core/state/backlog.h"
#include "src/core/state/hold_time.h"
#include "src/core/state/state_change.h"

namespace gpushare::core {
namespace {

// The rest of a task needs a form that skips the block tasks that are done: workers continue from
// the task's counter, a graph with its next segment, an ordinary grid as a slice. A grid that is
// cut short is a slice too.
Form FormOf(const Flow& flow, const Task& task, const PlannedLaunch& planned, bool evictable_lane) {
  if (task.IsSegmented()) {
    if (task.progress.counter >= 0 || YieldsInSegments(flow, task)) return Form::kSegments;
    // A form that no graph has is dropped (IsAllowed), and never runs the graph whole instead.
    if (planned.form != Form::kSegments) return planned.form;
    return evictable_lane ? Form::kSegments : Form::kGraph;
  }
  if (task.work.kind != TaskKind::kKernel || planned.form == Form::kFused) return planned.form;
  if (task.progress.counter >= 0) return Form::kWorkers;
  if (task.progress.blocks_done > 0) return Form::kSlice;
  Form form = planned.form;
  if (form == Form::kWorkers && !evictable_lane) form = Form::kOriginal;
  const bool cut = planned.blocks_max > 0 && planned.blocks_max < task.work.block_tasks;
  return form == Form::kOriginal && cut ? Form::kSlice : form;
}

// Whether a launch in this form, on the place of this lane, can be done.
bool IsAllowed(const Task& task, Form form, const Lane& lane) {
  const bool confined = lane.spec.place != kWholeDevice;
  if (confined && task.work.kernel != nullptr && !task.work.kernel->confinable) return false;
  return HasForm(task, form);
}

// A launch in segments has its lane to itself until it is reported, and LC queues stay on plain
// lanes under some policies. So the rest of a graph goes to a BE lane, whatever the plan says.
LaneClass LaneClassOf(const Flow& flow, const Task& task, const PlannedLaunch& planned) {
  if (YieldsInSegments(flow, task)) return LaneClass::kCopy;
  const bool rest = task.IsSegmented() && task.progress.counter >= 0;
  return rest ? LaneClass::kBe : planned.lane_class;
}

bool HasQuota(const Task& task) { return !IsLc(task) && task.app->reserved_capsms > 0; }

// The lane of the route, for a task that stands behind none of its queue's work or leaves it.
LaneIndex PickFreely(const Flow& flow, const Task& task, const PlannedLaunch& planned) {
  const LaneClass lane_class = LaneClassOf(flow, task, planned);
  if (lane_class == LaneClass::kCopy && task.work.kind == TaskKind::kMemcpy) {
    return flow.lanes.PickForCopy(task.work.copy.direction, flow.lc_may_yield);
  }
  const uint32_t salt = task.work.kind == TaskKind::kMemcpy
                            ? static_cast<uint32_t>(task.work.copy.direction)
                            : task.app->slot;
  if (lane_class == LaneClass::kBe && planned.form == Form::kWorkers && HasQuota(task)) {
    return flow.lanes.PickForQuota(planned.place, salt);
  }
  return flow.lanes.Pick(planned.place, lane_class, salt);
}

// The lane that the task's queue is in order on: LC work is in flight there. kNoLane: on none, or
// on one that hung.
LaneIndex LaneInOrder(const Flow& flow, const Task& task) {
  const Queue& queue = *task.queue;
  if (!IsLc(task) || queue.in_flight.load(std::memory_order_acquire) == 0) return kNoLane;
  const LaneIndex lane = queue.lane.load(std::memory_order_relaxed);
  return flow.lanes.lane(lane).usable.load(std::memory_order_relaxed) ? lane : kNoLane;
}

// The device has refused the launch and started nothing.
void Refused(Flow& flow, Task& task, const absl::Status& status) {
  if (IsDeviceLost(status)) {
    task.record.error_code = NativeCodeOf(status);
    LoseDevice(flow, NativeCodeOf(status));
  } else if (task.progress.parts.empty()) {
    task.record.error_code = NativeCodeOf(status);
    if (task.progress.running_index < 0) Unlink(flow, task);
    FinishTask(flow, task, Verdict::kFailed);
  }
}

}  // namespace

void Hold(Flow& flow, Task& task, const PlannedHold& hold) {
  // One event, however many plans in a row hold the task for the same reason.
  if (task.progress.held_since_ns > 0 && task.record.hold_reason == hold.reason) return;
  CountHeld(task, flow.now_ns);
  task.progress.held_since_ns = flow.now_ns;
  if (task.queue->head == &task && flow.now_ns > 0) task.queue->held = hold.reason;
  if (std::exchange(task.record.hold_reason, hold.reason) == hold.reason) return;
  flow.Emit(Held{.task = LabelOf(task),
                 .value_ns = hold.value_ns,
                 .limit_ns = hold.limit_ns,
                 .reason = hold.reason});
}

bool HasCounter(Flow& flow, Task& task) {
  if (task.progress.counter >= 0) return true;
  if (flow.free_counters.empty()) return false;
  task.progress.counter = flow.free_counters.PopBack();
  task.progress.counter_fresh = true;
  return true;
}

LanePick PickLane(const Flow& flow, const Task& task, const PlannedLaunch& planned) {
  if (YieldsInSegments(flow, task)) {
    // No other lane orders it behind its queue's work, so it waits for that.
    if (task.queue->in_flight.load(std::memory_order_acquire) > 0) return {};
    return {flow.lanes.PickForYielding(), kNoLane};
  }
  if (RunsInSlices(task)) {
    const LaneIndex lane = task.progress.parts[0].lane;
    const bool usable = flow.lanes.lane(lane).usable.load(std::memory_order_relaxed);
    return {usable ? lane : kNoLane, kNoLane};
  }
  const LaneIndex behind = LaneInOrder(flow, task);
  if (behind == kNoLane) return {PickFreely(flow, task, planned), kNoLane};
  const Lane& lane = flow.lanes.lane(behind);
  // Behind this lane it would wait for both parts of a fused launch. Held, it waits for its queue's
  // part alone and then takes another lane.
  if (lane.fused_partners_pending.load(std::memory_order_relaxed) > 0) return {};
  // A policy of the application's own may put LC work on BE lanes.
  if (lane.holds_segments.load(std::memory_order_relaxed)) return {};
  if (MayGoOn(flow, *task.queue, behind, planned.place))
    return {PickFreely(flow, task, planned), behind};
  // Work that no partition can hold waits until the queue's lane is empty.
  const bool fits = task.work.kernel == nullptr || task.work.kernel->confinable ||
                    lane.spec.place == kWholeDevice;
  return {fits ? behind : kNoLane, kNoLane};
}

void EnterGate(Flow& flow, Task& task, PlaceIndex place) {
  assert(!task.progress.entered_gate && "a task enters the gate once");
  flow.gate.EnterLc();
  task.progress.entered_gate = true;
  const LcRoute& route = flow.buffers.plan.routes[static_cast<size_t>(task.app->plan_index)];
  task.progress.evicts = route.evict_overlapping;
  task.progress.waits_for_empty_sms = false;
  if (!task.progress.evicts) return;
  // Work that no partition can hold has a wider place than its route.
  flow.gate.WidenLanes(flow.lanes.EvictableLanes(place));
  EvictForRoute(flow, task, route, place);
}

void RecordLaunched(Flow& flow, Task& task, const Part& part, Reason reason) {
  if (ClaimsBlockTasks(part.form)) task.progress.counter_fresh = false;
  if (task.progress.running_index < 0) {
    // The order matters: a submitter that sees nothing unlaunched must see the lane in use.
    const LaneIndex order = part.order_lane != kNoLane ? part.order_lane : part.lane;
    task.queue->lane.store(order, std::memory_order_relaxed);
    task.queue->in_flight.fetch_add(1, std::memory_order_acq_rel);
    Unlink(flow, task);
  }
  if (task.state.load(std::memory_order_relaxed) == TaskState::kWaiting) {
    SetState(task, TaskState::kReady);  // an LC task right behind its head
  }
  SetState(task, TaskState::kRunning);
  CountHeld(task, flow.now_ns);
  if (task.record.launches++ == 0) {
    task.record.launch_ns = part.launched_ns;
    task.record.launch_reason = reason;
  }
  if (task.progress.evicted_since_ns > 0) {
    task.record.evicted_ns += part.launched_ns - task.progress.evicted_since_ns;
    task.progress.evicted_since_ns = 0;
  }
  if (IsExclusive(task)) flow.graph_tasks[task.work.kernel->id.value] = &task;
  task.record.form = part.form;
  task.record.place = part.place;
  Lane& lane = flow.lanes.lane(part.lane);
  lane.in_flight.fetch_add(1, std::memory_order_relaxed);
  if (part.form == Form::kSegments) lane.holds_segments.store(true, std::memory_order_relaxed);
  EnterRunning(flow, task, task.progress.parts.Add(part), reason);
}

bool LaunchTask(Flow& flow, Task& task, const PlannedLaunch& planned) {
  const bool lc = IsLc(task);
  // `limit`: the size of the table that is full.
  const auto hold = [&](Reason reason, int64_t limit = 0) {
    Hold(flow, task, {task.record.ticket, reason, limit, limit});
    return false;
  };
  // Of two heads of one graph in a plan, the first is launched.
  if (flow.WaitsForGraph(task)) return hold(Reason::kHoldWindow, 1);
  if (task.progress.parts.full()) return hold(Reason::kHoldParts, kMaxPartsPerTask);
  if (!lc && task.progress.running_index < 0 && flow.running_be.full()) {
    return hold(Reason::kHoldRunning, kMaxRunning);
  }
  Part part;
  const LanePick pick = PickLane(flow, task, planned);
  part.lane = pick.lane;
  part.after_lane = pick.after_lane;
  if (part.lane == kNoLane &&
      !flow.lanes.HasKind(planned.place, LaneClassOf(flow, task, planned)) &&
      !YieldsInSegments(flow, task)) {
    CountDropped(flow);
    return hold(Reason::kHoldPlan);
  }
  if (part.lane == kNoLane) return hold(Reason::kHoldLane);
  Lane& lane = flow.lanes.lane(part.lane);
  part.place = lane.spec.place;
  part.form = FormOf(flow, task, planned, lane.spec.evictable);
  if (!IsAllowed(task, part.form, lane)) {
    CountDropped(flow);
    return hold(Reason::kHoldPlan);
  }
  SizePart(flow, task, planned, part);
  if (ClaimsBlockTasks(part.form) && !HasCounter(flow, task)) {
    return hold(Reason::kHoldCounters, kMaxCounters);
  }
  part.launch = flow.launches.Take(&task);
  if (!part.launch) return hold(Reason::kHoldLaunches, kMaxInFlightLaunches);
  const bool in_segments = YieldsInSegments(flow, task);
  const bool evictable = (lane.spec.evictable || in_segments) && ClaimsBlockTasks(part.form);
  if (evictable) {
    // The order matters: counted, then the epoch, then the gate (lanes.h, lc_gate.h).
    lane.evictable.fetch_add(1, std::memory_order_seq_cst);
    part.epoch = part.leave_epoch = flow.gate.ReadLaunchEpoch(part.lane);
  }
  if (lane.spec.evictable && !flow.gate.IsOpen(part.lane)) {
    if (evictable) lane.evictable.fetch_sub(1, std::memory_order_relaxed);
    flow.launches.Free(part.launch);
    return hold(Reason::kHoldLcActive);  // the LC completion that opens the gate asks for a plan
  }
  if (lc) EnterGate(flow, task, part.place);
  part.launched_ns = flow.device->NowNs();
  const LaunchRequest request = MakeRequest(task, part);
  if (part.form == Form::kOpaque) {
    // Launched after Tick, with no lock held. Counted before the task leaves its queue: what stands
    // behind it must see one or the other.
    task.queue->deferred.fetch_add(1, std::memory_order_release);
    flow.deferred.Push({request, task.queue});
  } else if (const absl::Status status = LaunchInQuery(flow, request, task.explicit_query);
             !status.ok()) {
    if (evictable) lane.evictable.fetch_sub(1, std::memory_order_relaxed);
    flow.launches.Free(part.launch);
    Refused(flow, task, status);
    return false;
  }
  RecordLaunched(flow, task, part, planned.reason);
  return true;
}

}  // namespace gpushare::core
