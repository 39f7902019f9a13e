// A task's launch by itself, and its steps. See launch_one.h.

#include "src/core/flow/verbs/launch_one.h"

#include <algorithm>

#include "src/core/flow/admit.h"
#include "src/core/flow/complete.h"
#include "src/core/flow/fast_path.h"
#include "src/core/seams/launch_claims.h"
#include "src/core/state/state_change.h"

namespace gpushare::core {
namespace {

void EmitHeld(const Flow& flow, const Task& task, const PlannedHold& hold) {
  EventRecord event;
  event.type = static_cast<uint8_t>(EventType::kHeld);
  event.time_ns = flow.now_ns;
  event.id = task.record.ticket.value;
  event.app = task.record.app.value;
  event.app_class = static_cast<uint8_t>(task.app->options.app_class);
  event.kernel = task.record.kernel.value;
  event.reason = static_cast<uint8_t>(hold.reason);
  event.a = hold.value_ns;
  event.b = hold.limit_ns;
  flow.Emit(event);
}

// What is left of a task that was on the device goes on in the form that knows what is done:
// workers by the task's counter, an ordinary grid by a slice.
Form FormOf(const Task& task, Form planned, bool evictable_lane) {
  if (task.kind != TaskKind::kKernel || planned == Form::kFused) return planned;
  if (task.counter >= 0) return Form::kWorkers;
  if (task.blocks_done > 0) return Form::kSlice;
  return planned == Form::kWorkers && !evictable_lane ? Form::kOriginal : planned;
}

// The device has refused the launch, and nothing of it happened.
void Refused(Flow& flow, Task& task, const absl::Status& status) {
  task.record.error_code = static_cast<int32_t>(status.code());
  if (IsDeviceLost(status)) {
    LoseDevice(flow, static_cast<int32_t>(status.code()));
  } else if (task.part_count == 0) {
    if (task.running_index < 0) Unlink(flow, task);
    FinishTask(flow, task, Verdict::kFailed);
  }
}

}  // namespace

void EmitLaunched(const Flow& flow, const Task& task, const Part& part, Reason reason,
                  EventType type) {
  EventRecord event;
  event.type = static_cast<uint8_t>(type);
  event.time_ns = part.launched_ns;
  event.id = task.record.ticket.value;
  event.app = task.record.app.value;
  event.app_class = static_cast<uint8_t>(task.app->options.app_class);
  event.kernel = task.record.kernel.value;
  event.place = static_cast<int16_t>(part.place);
  event.reason = static_cast<uint8_t>(reason);
  event.detail = static_cast<uint8_t>(part.form);
  event.a = static_cast<int64_t>(part.launch.value);
  event.b = part.blocks_asked;
  event.c = static_cast<int64_t>(part.workers) << 32 | static_cast<uint32_t>(part.lane);
  event.d = task.blocks_done;
  flow.Emit(event);
}

void Hold(Flow& flow, Task& task, const PlannedHold& hold) {
  // A task held for the same reason plan after plan is told once.
  if (task.record.hold_reason == hold.reason) return;
  task.record.hold_reason = hold.reason;
  EmitHeld(flow, task, hold);
}

bool HasCounter(Flow& flow, Task& task) {
  if (task.counter >= 0) return true;
  if (flow.free_counter_count == 0) return false;
  task.counter = flow.free_counters[static_cast<size_t>(--flow.free_counter_count)];
  task.counter_fresh = true;
  return true;
}

void SizePart(const Flow& flow, const Task& task, const PlannedLaunch& planned, Part& part) {
  part.workers_per_sm = task.kernel == nullptr ? 1 : task.kernel->workers_per_sm_max;
  const int64_t holds =
      int64_t{flow.lanes.places()[static_cast<size_t>(part.place)].sms} * part.workers_per_sm;
  const int64_t left = std::max<int64_t>(1, task.blocks - task.blocks_done);
  int64_t workers = planned.workers > 0 ? planned.workers : holds;
  if (task.kind == TaskKind::kMemcpy || task.kind == TaskKind::kOpaque) workers = 0;
  part.workers = static_cast<int32_t>(std::min({workers, holds, left}));
  if (task.kind == TaskKind::kGraph || task.kind == TaskKind::kLibrary) {
    part.workers = static_cast<int32_t>(holds);
  }
  part.blocks_asked = left;
  if (planned.blocks_max > 0) part.blocks_asked = std::min(left, planned.blocks_max);
}

LaneIndex PickLane(const Flow& flow, const Task& task, const PlannedLaunch& planned) {
  const Queue& queue = *task.queue;
  if (IsLc(task) && queue.in_flight.load(std::memory_order_acquire) > 0) {
    const LaneIndex lane = queue.lane.load(std::memory_order_relaxed);
    if (flow.lanes.lane(lane).usable.load(std::memory_order_relaxed)) {
      // Behind a fused launch it would wait for its partner too: it waits for its own part, and
      // goes to another lane.
      if (flow.lanes.lane(lane).carried.load(std::memory_order_relaxed) > 0) return kNoLane;
      // Work that no partition can hold waits until the queue's lane is empty.
      const bool fits = task.kernel == nullptr || task.kernel->confinable ||
                        flow.lanes.lane(lane).spec.place == kWholeDevice;
      return fits ? lane : kNoLane;
    }
  }
  const uint32_t salt =
      task.kind == TaskKind::kMemcpy ? static_cast<uint32_t>(task.copy.direction) : task.app->slot;
  return flow.lanes.Pick(planned.place, planned.lane_class, salt);
}

void EnterGate(Flow& flow, Task& task, PlaceIndex place) {
  flow.gate.EnterLc();
  task.entered_gate = true;
  task.evicts =
      flow.buffers.plan.routes[static_cast<size_t>(task.app->plan_index)].evict_overlapping;
  if (!task.evicts) return;
  // Its place may be wider than its route's: work that no partition can hold.
  flow.gate.WidenLanes(flow.lanes.EvictableLanes(place));
  EvictOverlapping(flow, place, Reason::kEvictForLc);
}

void TakeOff(Flow& flow, Task& task, const Part& part, Reason reason) {
  if (ClaimsBlockTasks(part.form)) task.counter_fresh = false;
  if (task.running_index < 0) {
    // In this order: a submitter that sees nothing unlaunched must see the lane that is in use.
    const LaneIndex order = part.carrier != kNoLane ? part.carrier : part.lane;
    task.queue->lane.store(order, std::memory_order_relaxed);
    task.queue->in_flight.fetch_add(1, std::memory_order_acq_rel);
    Unlink(flow, task);
  }
  if (task.state.load(std::memory_order_relaxed) == TaskState::kWaiting) {
    SetState(task, TaskState::kReady);  // an LC task right behind its head
  }
  SetState(task, TaskState::kRunning);
  if (task.record.launches++ == 0) {
    task.record.launch_ns = part.launched_ns;
    task.record.launch_reason = reason;
  }
  if (task.evicted_since_ns > 0) {
    task.record.evicted_ns += part.launched_ns - task.evicted_since_ns;
    task.evicted_since_ns = 0;
  }
  task.record.form = part.form;
  task.record.place = part.place;
  flow.lanes.lane(part.lane).in_flight.fetch_add(1, std::memory_order_relaxed);
  task.parts[static_cast<size_t>(task.part_count++)] = part;
  EnterRunning(flow, task, task.parts[static_cast<size_t>(task.part_count - 1)]);
  EmitLaunched(flow, task, part, reason, EventType::kLaunched);
}

bool LaunchOne(Flow& flow, Task& task, const PlannedLaunch& planned) {
  const bool lc = IsLc(task);
  const auto hold = [&](Reason reason) {
    Hold(flow, task, {task.record.ticket, reason, 0, 0});
    return false;
  };
  if (task.part_count == kMaxPartsPerTask) return hold(Reason::kHoldWindow);
  if (!lc && task.running_index < 0 && flow.running_be_count == kMaxRunning) {
    return hold(Reason::kHoldWindow);
  }
  Part part;
  part.lane = PickLane(flow, task, planned);
  if (part.lane == kNoLane) return hold(Reason::kHoldWindow);
  Lane& lane = flow.lanes.lane(part.lane);
  part.place = lane.spec.place;
  part.form = FormOf(task, planned.form, lane.spec.evictable);
  SizePart(flow, task, planned, part);
  if (part.form == Form::kWorkers && !HasCounter(flow, task)) return hold(Reason::kHoldWindow);
  part.launch = flow.launches.Take(&task);
  if (!part.launch) return hold(Reason::kHoldWindow);
  const bool evictable = lane.spec.evictable && part.form == Form::kWorkers;
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
    flow.deferred.push_back(request);  // it calls the application: after Tick, with no lock held
  } else if (const absl::Status status = LaunchInQuery(flow, request, task.explicit_query);
             !status.ok()) {
    if (evictable) lane.evictable.fetch_sub(1, std::memory_order_relaxed);
    flow.launches.Free(part.launch);
    Refused(flow, task, status);
    return false;
  }
  TakeOff(flow, task, part, planned.reason);
  return true;
}

}  // namespace gpushare::core
