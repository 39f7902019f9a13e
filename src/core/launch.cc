// From a plan to device calls. See launch.h.

#include "src/core/launch.h"

#include <algorithm>
#include <bit>

#include "src/core/admit.h"
#include "src/core/complete.h"
#include "src/core/fast_path.h"
#include "src/core/headroom.h"
#include "src/core/ordinary_form.h"
#include "src/core/predict.h"
#include "src/core/state_change.h"

namespace gpushare::core {
namespace {

const void* ArgumentsOf(const Task& task) {
  if (task.arguments_bytes == 0) return nullptr;
  if (task.large_arguments < 0) return task.arguments.data();
  return task.app->large[static_cast<size_t>(task.large_arguments)].bytes.data();
}

// Widen the gate, publish the routes, narrow the gate: an LC caller never acts on a route whose
// lanes the gate does not close.
void PublishRoutes(Flow& flow) {
  const Plan& plan = flow.buffers.plan;
  uint64_t lanes = 0;
  for (int i = 0; i < flow.lc_app_count; ++i) {
    const LcRoute& route = plan.routes[static_cast<size_t>(i)];
    if (route.evict_overlapping && flow.lanes.HasPlace(route.place)) {
      lanes |= flow.lanes.EvictableLanes(route.place);
    }
  }
  flow.gate.WidenLanes(lanes);
  for (int i = 0; i < flow.lc_app_count; ++i) {
    const LcRoute& route = plan.routes[static_cast<size_t>(i)];
    if (!flow.lanes.HasPlace(route.place)) continue;
    std::atomic<uint32_t>& word = flow.buffers.lc_owner[static_cast<size_t>(i)]->route;
    const uint32_t packed = PackRoute(route);
    if (word.load(std::memory_order_relaxed) != packed)
      word.store(packed, std::memory_order_seq_cst);
  }
  if (flow.gate.ClosedLanes() != lanes) flow.gate.NarrowLanes(lanes);
}

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

// What is left of a task that was on the device goes on in the form that knows what is done:
// workers by the task's counter, an ordinary grid by a slice.
Form FormOf(const Task& task, Form planned, bool evictable_lane) {
  if (task.kind != TaskKind::kKernel || planned == Form::kFused) return planned;
  if (task.counter >= 0) return Form::kWorkers;
  if (task.blocks_done > 0) return Form::kSlice;
  return planned == Form::kWorkers && !evictable_lane ? Form::kOriginal : planned;
}

// Workers to ask for, and how many the ledger is charged: an ordinary grid fills what it can.
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
  if (task.app->options.app_class == AppClass::kLatencyCritical &&
      queue.in_flight.load(std::memory_order_acquire) > 0) {
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

bool IsLc(const Task& task) { return task.app->options.app_class == AppClass::kLatencyCritical; }

// The LC task is inside the gate from here on, and what may not stay beside it is told to leave.
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

// The device has accepted the part: from the queue to the tables.
void TakeOff(Flow& flow, Task& task, const Part& part, Reason reason) {
  if (part.form == Form::kWorkers || part.form == Form::kFused) task.counter_fresh = false;
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

// Adds the part to the device. False: nothing happened, the task stays where it was.
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
// --- fused launches ------------------------------------------------------------------------------

// Two tasks in one launch, whose order is that of the first one's lane.
struct FusedPair {
  Task* first = nullptr;
  Task* second = nullptr;
  const FusedKernelDesc* kernel = nullptr;
  int64_t blocks = 0;  // fused blocks
  std::array<Part, 2> parts;
};

// The two tasks that the plan names, an LC one first, so that its lane's priority is theirs. False:
// they cannot go together now.
bool FindPair(const Flow& flow, Task& task, const PlannedLaunch& planned, FusedPair& pair) {
  Task* const other = flow.tables.FindTask(planned.fused_with);
  if (other == nullptr || other == &task || task.kernel == nullptr || other->kernel == nullptr) {
    return false;
  }
  const bool ready = other->state.load(std::memory_order_relaxed) == TaskState::kReady &&
                     other->queue->head == other &&
                     !other->cancel_requested.load(std::memory_order_relaxed);
  // Only the first one's native events are waited for and recorded.
  const bool has_events = other->wait_event_count > 0 || other->signal_event != nullptr;
  if (!ready || has_events || task.part_count > 0 || task.kind != TaskKind::kKernel ||
      other->kind != TaskKind::kKernel) {
    return false;
  }
  // What slices have done, no counter knows.
  for (const Task* each : {&task, other}) {
    if (each->blocks_done > 0 && each->counter < 0) return false;
  }
  const bool swapped = IsLc(*other) && !IsLc(task);
  if (swapped && (task.wait_event_count > 0 || task.signal_event != nullptr)) return false;
  pair.first = swapped ? other : &task;
  pair.second = swapped ? &task : other;
  pair.kernel = flow.tables.FindFused(*task.kernel, *other->kernel);
  return pair.kernel != nullptr;
}

// The part of a task that cannot leave must not be on a lane that is told to.
LaneIndex StayingLane(const Flow& flow, const Task& task, PlaceIndex place, LaneIndex lane) {
  if (lane == kNoLane || task.IsEvictable() || !flow.lanes.lane(lane).spec.evictable) return lane;
  return flow.lanes.Pick(place, LaneClass::kPlain, task.app->slot);
}

// Lanes, identifiers and claim counters of both parts. False: one is missing, and what was taken
// stays in the pair for ReleasePair.
bool TakePair(Flow& flow, const PlannedLaunch& planned, FusedPair& pair) {
  Part& first = pair.parts[0];
  Part& second = pair.parts[1];
  PlannedLaunch in_order = planned;
  if (IsLc(*pair.first) && planned.lane_class == LaneClass::kBe) {
    in_order.lane_class = LaneClass::kLc;
  }
  const LaneIndex picked = PickLane(flow, *pair.first, in_order);
  first.lane = StayingLane(flow, *pair.first, planned.place, picked);
  if (first.lane == kNoLane) return false;
  first.place = second.place = flow.lanes.lane(first.lane).spec.place;
  // A lane of its own, so that it can be told to leave by itself; else one where nobody is.
  if (!IsLc(*pair.second) && pair.second->IsEvictable()) {
    second.lane = flow.lanes.PickIdle(first.place, LaneClass::kBe);
    // The first one is about to be there.
    if (second.lane == first.lane) second.lane = kNoLane;
  }
  if (second.lane == kNoLane || !flow.lanes.lane(second.lane).spec.evictable) {
    if (flow.lanes.lane(first.lane).spec.evictable) return false;
    second.lane = first.lane;
  }
  second.carrier = first.lane;
  for (const auto& [task, part] :
       {std::pair{pair.first, &first}, std::pair{pair.second, &second}}) {
    part->form = Form::kFused;
    part->launch = flow.launches.Take(task);
    if (!part->launch || !HasCounter(flow, *task)) return false;
  }
  return true;
}

// Fused blocks, and how many workers of each part the ledger is charged.
void SizePair(const Flow& flow, const PlannedLaunch& planned, FusedPair& pair) {
  const int64_t holds = int64_t{flow.lanes.places()[static_cast<size_t>(pair.parts[0].place)].sms} *
                        std::max(1, pair.kernel->blocks_per_sm);
  const bool first_is_tensor = pair.kernel->tensor_part == pair.first->kernel->id;
  int64_t useful = 1;
  std::array<int64_t, 2> blocks_of = {pair.kernel->tensor_blocks, pair.kernel->cuda_blocks};
  if (!first_is_tensor) std::swap(blocks_of[0], blocks_of[1]);
  const std::array<const Task*, 2> tasks = {pair.first, pair.second};
  for (size_t i = 0; i < tasks.size(); ++i) {
    const int64_t left = std::max<int64_t>(1, tasks[i]->blocks - tasks[i]->blocks_done);
    pair.parts[i].blocks_asked = left;
    useful = std::max(useful, (left + blocks_of[i] - 1) / blocks_of[i]);
  }
  pair.blocks = std::min({planned.workers > 0 ? planned.workers : holds, holds, useful});
  for (size_t i = 0; i < tasks.size(); ++i) {
    Part& part = pair.parts[i];
    part.workers_per_sm = tasks[i]->kernel->workers_per_sm_max;
    const int64_t place_holds =
        int64_t{flow.lanes.places()[static_cast<size_t>(part.place)].sms} * part.workers_per_sm;
    part.workers = static_cast<int32_t>(
        std::min({pair.blocks * blocks_of[i], place_holds, part.blocks_asked}));
  }
}

// Counted, then the epoch, then the gate (lanes.h, lc_gate.h), for each part that can leave. LC
// work that this launch brings along is inside the gate already, and did not mean its partner.
// False: the gate is closed.
bool ReadEpochs(Flow& flow, FusedPair& pair, int64_t own) {
  for (Part& part : pair.parts) {
    Lane& lane = flow.lanes.lane(part.lane);
    if (!lane.spec.evictable) continue;
    lane.evictable.fetch_add(1, std::memory_order_seq_cst);
    part.epoch = part.leave_epoch = flow.gate.ReadLaunchEpoch(part.lane);
    if (!flow.gate.IsOpen(part.lane, own)) return false;
  }
  return true;
}

// Gives back what TakePair and ReadEpochs took.
void ReleasePair(Flow& flow, const FusedPair& pair) {
  for (const auto& [task, part] :
       {std::pair{pair.first, &pair.parts[0]}, std::pair{pair.second, &pair.parts[1]}}) {
    if (part->epoch != 0) {
      flow.lanes.lane(part->lane).evictable.fetch_sub(1, std::memory_order_relaxed);
    }
    if (part->launch) flow.launches.Free(part->launch);
    // A task that is not begun is free to take another form.
    if (task->counter >= 0 && task->counter_fresh) {
      flow.free_counters[static_cast<size_t>(flow.free_counter_count++)] = task->counter;
      task->counter = -1;
    }
    if (task->entered_gate) {
      flow.gate.LeaveLc();
      task->entered_gate = false;
    }
  }
}

LaunchRequest MakeFusedRequest(const FusedPair& pair) {
  LaunchRequest request = MakeRequest(*pair.first, pair.parts[0]);
  const LaunchRequest second = MakeRequest(*pair.second, pair.parts[1]);
  request.fused = pair.kernel;
  request.workers = static_cast<int32_t>(pair.blocks);
  FusedPartner& partner = request.partner;
  partner.launch = second.launch;
  partner.lane = second.lane;
  partner.kernel = second.kernel;
  partner.grid_x = second.grid_x;
  partner.grid_y = second.grid_y;
  partner.grid_z = second.grid_z;
  partner.block_count = second.block_count;
  partner.counter = second.counter;
  partner.reset_counter = second.reset_counter;
  partner.epoch = second.epoch;
  partner.arguments = second.arguments;
  partner.arguments_bytes = second.arguments_bytes;
  return request;
}

enum class FusedResult : uint8_t {
  kLaunched = 0,
  kNotNow = 1,   // nothing happened
  kRefused = 2,  // by the device: the first task has failed
};

FusedResult LaunchFused(Flow& flow, const PlannedLaunch& planned, FusedPair& pair) {
  if (flow.running_be_count + 2 > kMaxRunning) return FusedResult::kNotNow;
  if (!TakePair(flow, planned, pair)) {
    ReleasePair(flow, pair);
    return FusedResult::kNotNow;
  }
  SizePair(flow, planned, pair);
  int64_t own = 0;
  for (Task* task : {pair.first, pair.second}) {
    if (!IsLc(*task)) continue;
    EnterGate(flow, *task, pair.parts[0].place);
    ++own;
  }
  if (!ReadEpochs(flow, pair, own)) {
    ReleasePair(flow, pair);
    return FusedResult::kNotNow;
  }
  Lane& carrier = flow.lanes.lane(pair.parts[0].lane);
  carrier.carried.fetch_add(1, std::memory_order_acq_rel);
  pair.parts[0].launched_ns = pair.parts[1].launched_ns = flow.device->NowNs();
  if (pair.parts[1].lane != pair.parts[0].lane) {
    flow.lanes.lane(pair.parts[1].lane).ridden.store(true, std::memory_order_relaxed);
  }
  const LaunchRequest request = MakeFusedRequest(pair);
  const absl::Status status = LaunchInQuery(flow, request, pair.first->explicit_query);
  if (!status.ok()) {
    carrier.carried.fetch_sub(1, std::memory_order_acq_rel);
    flow.lanes.lane(pair.parts[1].lane).ridden.store(false, std::memory_order_relaxed);
    ReleasePair(flow, pair);
    Refused(flow, *pair.first, status);
    return FusedResult::kRefused;
  }
  TakeOff(flow, *pair.first, pair.parts[0], planned.reason);
  TakeOff(flow, *pair.second, pair.parts[1], planned.reason);
  return FusedResult::kLaunched;
}

// LC work does not wait for a partner that cannot come along: it is launched alone. BE work waits
// for the next plan.
bool LaunchFusedOrAlone(Flow& flow, Task& task, const PlannedLaunch& planned) {
  FusedPair pair;
  FusedResult result = FusedResult::kNotNow;
  if (FindPair(flow, task, planned, pair)) result = LaunchFused(flow, planned, pair);
  if (result != FusedResult::kNotNow) return result == FusedResult::kLaunched;
  Task* const other = flow.tables.FindTask(planned.fused_with);
  const bool other_is_lc = other != nullptr && IsLc(*other) && other->queue->head == other &&
                           other->state.load(std::memory_order_relaxed) == TaskState::kReady &&
                           !other->cancel_requested.load(std::memory_order_relaxed);
  if (!IsLc(task) && !other_is_lc) {
    Hold(flow, task, {task.record.ticket, Reason::kHoldWindow, 0, 0});
    return false;
  }
  Task& lc = IsLc(task) ? task : *other;
  PlannedLaunch alone = planned;
  alone.form = OrdinaryForm(lc.kind);
  if (alone.lane_class == LaneClass::kBe) alone.lane_class = LaneClass::kLc;
  alone.workers = 0;
  return LaunchOne(flow, lc, alone);
}

void LaunchPlanned(Flow& flow, const PlannedLaunch& planned) {
  if (flow.device_lost.load() || !flow.lanes.HasPlace(planned.place)) return;
  Task* task = flow.tables.FindTask(planned.task);
  if (task == nullptr || task->cancel_requested.load(std::memory_order_relaxed)) return;
  const TaskState state = task->state.load(std::memory_order_relaxed);
  if (state == TaskState::kRunning || state == TaskState::kEvicting) {
    if (task->counter >= 0 && planned.form == Form::kWorkers) LaunchOne(flow, *task, planned);
    return;
  }
  Queue& queue = *task->queue;
  if (state != TaskState::kReady || queue.head != task) return;
  // BE tasks of a queue go one by one; an LC task behind the head only if it waits for nothing.
  const bool lc = task->app->options.app_class == AppClass::kLatencyCritical;
  const int count = lc ? planned.count : 1;
  for (int i = 0; i < count && queue.head != nullptr; ++i) {
    if (i > 0 && queue.head->wait_ticket_count != 0) return;
    PlannedLaunch each = planned;
    each.form = i == 0 ? planned.form : OrdinaryForm(queue.head->kind);
    const bool launched = each.form == Form::kFused ? LaunchFusedOrAlone(flow, *queue.head, each)
                                                    : LaunchOne(flow, *queue.head, each);
    if (!launched) return;
  }
}

// The workers that stay after a partial eviction are what the ledger goes on to charge, and the
// launch is not leaving: only a later word makes the rest go.
void KeepWorkers(Flow& flow, const Task& task, Part& part, int32_t workers_to_keep) {
  if (workers_to_keep <= 0 || workers_to_keep >= part.workers) return;
  flow.ledger.Release(static_cast<int>(task.app->slot), part.workers - workers_to_keep,
                      part.workers_per_sm);
  part.workers = workers_to_keep;
  part.leave_epoch = flow.gate.Epoch(part.lane) + 1;
}

void EvictPlanned(Flow& flow, const PlannedEviction& planned) {
  Task* task = flow.tables.FindTask(planned.task);
  if (task == nullptr) return;
  bool all_leave = task->part_count > 0;
  for (int i = 0; i < task->part_count; ++i) {
    Part& part = task->parts[static_cast<size_t>(i)];
    if (part.epoch != 0 && part.place == planned.place) {
      EvictLane(flow, part.lane, planned.workers_to_keep, task->record.ticket, planned.reason);
      KeepWorkers(flow, *task, part, planned.workers_to_keep);
    }
    all_leave = all_leave && WasTold(flow.gate, part);
  }
  if (all_leave && task->state.load() == TaskState::kRunning) SetState(*task, TaskState::kEvicting);
}

// The longest BE region that fits now: every LC app's blocking budget, and nothing while one is
// active.
int64_t RegionBound(const Snapshot& snapshot) {
  int64_t bound = kMaxDurationNs;
  for (const LcAppView& app : snapshot.lc_apps) {
    if (app.active_queries > 0) return 0;
    bound = std::min(bound, app.blocking_budget_ns);
  }
  return bound;
}

// Depth, CapSMs and least headroom of each app, when its depth changed: a trace's counters.
void EmitDepths(Flow& flow) {
  if (flow.options.events == nullptr) return;
  const int64_t headroom = LeastHeadroom(flow.buffers.snapshot.queries);
  const auto emit = [&](App& app) {
    const int64_t depth = app.TasksOpen();
    if (depth == app.depth_told) return;
    app.depth_told = depth;
    EventRecord event;
    event.type = static_cast<uint8_t>(EventType::kQueueDepth);
    event.time_ns = flow.now_ns;
    event.id = event.app = app.id.load(std::memory_order_relaxed);
    event.app_class = static_cast<uint8_t>(app.options.app_class);
    event.a = depth;
    event.b = static_cast<int64_t>(CapSmsOf(flow.ledger.UsedBy(static_cast<int>(app.slot))) * 1000);
    event.c = headroom;
    flow.Emit(event);
  };
  for (int i = 0; i < flow.lc_app_count; ++i) emit(*flow.buffers.lc_owner[static_cast<size_t>(i)]);
  for (int i = 0; i < flow.be_app_count; ++i) emit(*flow.buffers.be_owner[static_cast<size_t>(i)]);
}

}  // namespace

bool IsDeviceLost(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDataLoss(status);
}

LaunchRequest MakeRequest(const Task& task, const Part& part) {
  LaunchRequest request;
  request.launch = part.launch;
  request.lane = part.lane;
  request.form = part.form;
  request.kernel = task.kernel;
  request.grid_x = task.grid[0];
  request.grid_y = task.grid[1];
  request.grid_z = task.grid[2];
  request.block_begin = part.form == Form::kSlice ? task.blocks_done : 0;
  const bool claims = part.form == Form::kWorkers || part.form == Form::kFused;
  request.block_count = claims ? task.blocks : part.blocks_asked;
  request.workers = part.form == Form::kWorkers ? part.workers : 0;
  request.counter = claims ? task.counter : -1;
  request.reset_counter = claims && task.counter_fresh;
  request.epoch = part.epoch;
  request.arguments_bytes = task.arguments_bytes;
  request.arguments = ArgumentsOf(task);
  if (task.kind == TaskKind::kMemcpy) {
    request.copy = task.copy;
    request.copy.offset = task.copy.offset + task.blocks_done;
    request.copy.bytes = part.blocks_asked;
  }
  request.host_function = task.host_function;
  request.host_user = task.host_user;
  request.declared_ns = task.declared_ns;
  request.wait_events =
      absl::MakeConstSpan(task.wait_events.data(), static_cast<size_t>(task.wait_event_count));
  request.signal_event = task.signal_event;
  // Opaque launches are made later, with no lock held: their query may have ended by then.
  request.more_follows = part.form != Form::kOpaque && task.explicit_query != nullptr &&
                         task.explicit_query->open.load(std::memory_order_acquire);
  return request;
}

absl::Status LaunchInQuery(Flow& flow, const LaunchRequest& request, const QuerySlot* query) {
  absl::Status status = flow.device->Launch(request);
  if (request.more_follows && !query->open.load(std::memory_order_acquire)) {
    flow.device->FlushLane(request.lane);
  }
  return status;
}

// `other` was there first.
void Meet(Task& task, Task& other) {
  task.had_company = other.had_company = true;
  if (!task.record.beside) task.record.beside = other.record.kernel;
  if (!other.record.beside) other.record.beside = task.record.kernel;
}

void MarkCompany(Flow& flow, Task& task, const Part& part) {
  if (flow.lanes_busy <= 1) return;
  const uint64_t own = flow.lanes.places()[static_cast<size_t>(part.place)].overlaps;
  bool alike = true;
  for (int i = 0; i < flow.running_be_count; ++i) {
    Task& other = *flow.running_be[static_cast<size_t>(i)];
    if (&other == &task) continue;
    for (int p = 0; p < other.part_count; ++p) {
      const Part& its = other.parts[static_cast<size_t>(p)];
      if (its.lane == part.lane) continue;
      Meet(task, other);
      alike = alike && other.record.kernel && task.record.beside == other.record.kernel;
      if ((own >> its.place & 1) != 0) {
        task.beside_overlaps = true;
      } else {
        task.beside_sms = flow.lanes.places()[static_cast<size_t>(its.place)].sms;
      }
    }
  }
  for (int i = 0; i < flow.running_lc_count; ++i) {
    Task& other = *flow.running_lc[static_cast<size_t>(i)];
    if (&other == &task || other.part_count == 0) continue;
    const bool before_us = other.parts[0].lane == part.lane;
    if (!before_us) Meet(task, other);
    // What waits for two things does not tell how long for which.
    alike = alike && before_us && !task.beside_overlaps;
  }
  if (!alike) {
    task.beside_sms = 0;
    task.beside_overlaps = false;
  }
}

void EnterRunning(Flow& flow, Task& task, Part& part) {
  const bool first = task.running_index < 0;
  if (first) {
    const bool lc = task.app->options.app_class == AppClass::kLatencyCritical || task.started_early;
    if (lc) {
      task.running_index = flow.running_lc_count;
      flow.running_lc[static_cast<size_t>(flow.running_lc_count++)] = &task;
    } else {
      task.running_index = flow.running_be_count;
      flow.running_be[static_cast<size_t>(flow.running_be_count++)] = &task;
    }
    ++task.app->tasks_in_flight;
    if (task.app->options.app_class == AppClass::kBestEffort) {
      flow.attained_floor_ns = std::max(flow.attained_floor_ns, task.app->attained_ns);
    }
    task.issued_ns = RemainingOf(task).duration_ns;
    flow.queued_ns += task.issued_ns;
    if (task.query != nullptr) task.query->issued_ns += task.issued_ns;
    if (task.kind == TaskKind::kMemcpy) {
      CopyState& copies = flow.copies[static_cast<size_t>(task.copy.direction)];
      ++(lc ? copies.lc_active : copies.be_active);
      copies.lc_uses = copies.lc_uses || lc;
    }
  }
  if (task.started_early) SizePart(flow, task, PlannedLaunch(), part);
  if (flow.lanes.lane(part.lane).parts++ == 0) ++flow.lanes_busy;
  MarkCompany(flow, task, part);
  flow.ledger.Charge(static_cast<int>(task.app->slot), part.workers, part.workers_per_sm);
  part.hang_limit_ns =
      std::max(flow.options.hang_floor_ns,
               static_cast<int64_t>(flow.options.hang_factor *
                                    static_cast<double>(task.predicted.duration_ns)));
  flow.hang_check_ns = std::min(flow.hang_check_ns, flow.now_ns + part.hang_limit_ns);
  flow.counters.launches.fetch_add(1, std::memory_order_relaxed);
  if (task.started_early) {
    EmitLaunched(flow, task, part, Reason::kFastPath, EventType::kFastPathLaunched);
  }
}

void Launch(Flow& flow) {
  if (!flow.planned || flow.device_lost.load()) return;
  const Plan& plan = flow.buffers.plan;
  PublishRoutes(flow);
  EmitDepths(flow);
  flow.be_region_bound_ns.store(RegionBound(flow.buffers.snapshot), std::memory_order_relaxed);
  if (flow.quiesced.load()) return;
  for (int i = 0; i < plan.eviction_count; ++i) {
    EvictPlanned(flow, plan.evictions[static_cast<size_t>(i)]);
  }
  for (int i = 0; i < plan.launch_count; ++i) {
    LaunchPlanned(flow, plan.launches[static_cast<size_t>(i)]);
  }
  for (int i = 0; i < plan.hold_count; ++i) {
    const PlannedHold& hold = plan.holds[static_cast<size_t>(i)];
    if (Task* task = flow.tables.FindTask(hold.task); task != nullptr) Hold(flow, *task, hold);
  }
}

}  // namespace gpushare::core
