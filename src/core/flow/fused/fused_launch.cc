// Fused launches. See fused_launch.h.

#include "src/core/flow/fused/fused_launch.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "src/core/base/tuning.h"
#include "src/core/flow/complete.h"
#include "src/core/flow/launch.h"
#include "src/core/flow/verbs/launch_one.h"
#include "src/core/seams/ordinary_form.h"

namespace gpushare::core {
namespace {

// Two tasks in one launch, whose order is that of the first one's lane.
struct FusedPair {
  Task* first = nullptr;
  Task* second = nullptr;
  const FusedKernelDesc* kernel = nullptr;
  int64_t blocks = 0;  // fused blocks
  std::array<Part, 2> parts;
};

enum class FusedResult : uint8_t {
  kLaunched = 0,
  kNotNow = 1,      // nothing happened; it may work once something has ended
  kNoPair = 2,      // nothing happened; these two never go together
  kRefused = 3,     // by the device, for whichever task's sake; nothing happened
  kDeviceLost = 4,  // every task has ended
};

// The head of its queue that may be launched now.
bool IsReadyHead(const Task& task) {
  return task.state.load(std::memory_order_relaxed) == TaskState::kReady &&
         task.queue->head == &task && !task.cancel_requested.load(std::memory_order_relaxed);
}

// Whether the task may be a part of a fused launch at all.
bool MayBePart(const Task& task) {
  if (task.kernel == nullptr || task.kind != TaskKind::kKernel) return false;
  // An event behind both parts would tell of this one too late.
  if (task.signal_event != nullptr || task.part_count > 0) return false;
  // What slices have done, no counter knows.
  return task.blocks_done == 0 || task.counter >= 0;
}

// Whether the plan's second task has to carry its first: an LC task does, whose lane's priority is
// theirs, and of BE tasks one that cannot leave, since it may not be on a lane that is told to.
bool CarriesOther(const Task& task, const Task& other) {
  if (IsLc(task) || IsLc(other)) return IsLc(other) && !IsLc(task);
  return !other.IsEvictable() && task.IsEvictable();
}

// The two tasks that the plan names, in the order of the launch. False: they are no pair.
bool FindPair(const Flow& flow, Task& task, const PlannedLaunch& planned, FusedPair& pair) {
  Task* const other = flow.tables.FindTask(planned.fused_with);
  if (other == nullptr || other == &task || !IsReadyHead(*other)) return false;
  if (!MayBePart(task) || !MayBePart(*other)) return false;
  const bool swapped = CarriesOther(task, *other);
  pair.first = swapped ? other : &task;
  pair.second = swapped ? &task : other;
  // The launch waits for native events before both parts: a partner's are not the first one's.
  if (pair.second->wait_event_count > 0) return false;
  pair.kernel = flow.tables.FindFused(*task.kernel, *other->kernel);
  return pair.kernel != nullptr;
}

// The part of a task that cannot leave must not be on a lane that is told to.
LaneIndex StayingLane(const Flow& flow, const Task& task, PlaceIndex place, LaneIndex lane) {
  if (task.IsEvictable() || !flow.lanes.lane(lane).spec.evictable) return lane;
  return flow.lanes.Pick(place, LaneClass::kPlain, task.app->slot);
}

// Whether the task comes behind what is in flight of its queue. An LC queue's order is its lane's;
// of a BE queue one task at a time is on the device.
bool KeepsOrder(const Task& task, LaneIndex lane) {
  const Queue& queue = *task.queue;
  if (queue.in_flight.load(std::memory_order_acquire) == 0) return true;
  return IsLc(task) && queue.lane.load(std::memory_order_relaxed) == lane;
}

// What keeps a pair from being launched; nothing: it may be.
using Obstacle = std::optional<FusedResult>;

// The lanes of both parts. kNotNow: one is not free. kNoPair: there is none.
Obstacle TakeLanes(const Flow& flow, const PlannedLaunch& planned, FusedPair& pair) {
  Part& first = pair.parts[0];
  Part& second = pair.parts[1];
  PlannedLaunch in_order = planned;
  if (IsLc(*pair.first) && planned.lane_class == LaneClass::kBe) {
    in_order.lane_class = LaneClass::kLc;
  }
  const LaneIndex picked = PickLane(flow, *pair.first, in_order);
  if (picked == kNoLane) return FusedResult::kNotNow;
  first.lane = StayingLane(flow, *pair.first, planned.place, picked);
  if (first.lane == kNoLane) return FusedResult::kNoPair;
  for (const Task* task : {pair.first, pair.second}) {
    if (!KeepsOrder(*task, first.lane)) return FusedResult::kNotNow;
  }
  first.place = second.place = flow.lanes.lane(first.lane).spec.place;
  second.carrier = first.lane;
  if (IsLc(*pair.second) || !pair.second->IsEvictable()) {
    // Nobody tells it to leave, so it may not be where somebody is told.
    if (flow.lanes.lane(first.lane).spec.evictable) return FusedResult::kNoPair;
    second.lane = first.lane;
    return std::nullopt;
  }
  // A lane of its own, so that it can be told to leave by itself: without one it does not come
  // along, since nothing could send it away.
  second.lane = flow.lanes.PickIdleEvictable(first.place, first.lane);
  if (second.lane != kNoLane) return std::nullopt;
  return flow.lanes.HasOtherEvictable(first.place, first.lane) ? FusedResult::kNotNow
                                                               : FusedResult::kNoPair;
}

// Lanes, identifiers and claim counters of both parts. With an obstacle, what was taken stays in
// the pair for ReleasePair.
Obstacle TakePair(Flow& flow, const PlannedLaunch& planned, FusedPair& pair) {
  if (const Obstacle lanes = TakeLanes(flow, planned, pair); lanes) return lanes;
  for (const auto& [task, part] :
       {std::pair{pair.first, &pair.parts[0]}, std::pair{pair.second, &pair.parts[1]}}) {
    part->form = Form::kFused;
    part->launch = flow.launches.Take(task);
    if (!part->launch || !HasCounter(flow, *task)) return FusedResult::kNotNow;
  }
  return std::nullopt;
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

// Hands the pair to the device. A lane that carries, and one that is ridden, are told before.
FusedResult Enqueue(Flow& flow, FusedPair& pair, Reason reason) {
  Lane& carrier = flow.lanes.lane(pair.parts[0].lane);
  Lane& ridden = flow.lanes.lane(pair.parts[1].lane);
  carrier.carried.fetch_add(1, std::memory_order_acq_rel);
  if (&ridden != &carrier) ridden.ridden.store(true, std::memory_order_relaxed);
  pair.parts[0].launched_ns = pair.parts[1].launched_ns = flow.device->NowNs();
  const LaunchRequest request = MakeFusedRequest(pair);
  const absl::Status status = LaunchInQuery(flow, request, pair.first->explicit_query);
  if (status.ok()) {
    TakeOff(flow, *pair.first, pair.parts[0], reason);
    TakeOff(flow, *pair.second, pair.parts[1], reason);
    return FusedResult::kLaunched;
  }
  carrier.carried.fetch_sub(1, std::memory_order_acq_rel);
  if (&ridden != &carrier) ridden.ridden.store(false, std::memory_order_relaxed);
  ReleasePair(flow, pair);
  if (!IsDeviceLost(status)) return FusedResult::kRefused;
  LoseDevice(flow, static_cast<int32_t>(status.code()));
  return FusedResult::kDeviceLost;
}

FusedResult LaunchFused(Flow& flow, const PlannedLaunch& planned, FusedPair& pair) {
  if (flow.running_be_count + 2 > kMaxRunning) return FusedResult::kNotNow;
  if (const Obstacle obstacle = TakePair(flow, planned, pair); obstacle) {
    ReleasePair(flow, pair);
    return *obstacle;
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
  return Enqueue(flow, pair, planned.reason);
}

// As a plan would that knows of no pair.
bool LaunchAlone(Flow& flow, Task& task, const PlannedLaunch& planned) {
  PlannedLaunch alone = planned;
  alone.task = task.record.ticket;
  alone.fused_with = TicketId{};
  alone.workers = 0;
  alone.blocks_max = 0;
  const bool leaves = !IsLc(task) && task.IsEvictable();
  alone.form = leaves ? Form::kWorkers : OrdinaryForm(task.kind);
  if (IsLc(task) && alone.lane_class == LaneClass::kBe) alone.lane_class = LaneClass::kLc;
  if (task.kernel != nullptr && !task.kernel->confinable) alone.place = kWholeDevice;
  return LaunchOne(flow, task, alone);
}

// Whether the pair, two BE tasks, waits for something to end. When its wait is over it is planned
// again, whatever happens.
bool MayWait(Flow& flow, const FusedPair& pair) {
  const TimeNs until = std::min(pair.first->ready_ns, pair.second->ready_ns) + kFusedWaitNs;
  if (flow.now_ns >= until) return false;
  flow.replan_at_ns = std::min(flow.replan_at_ns, until);
  return true;
}

}  // namespace

bool LaunchFusedOrAlone(Flow& flow, Task& task, const PlannedLaunch& planned) {
  FusedPair pair;
  FusedResult result = FusedResult::kNoPair;
  if (FindPair(flow, task, planned, pair)) result = LaunchFused(flow, planned, pair);
  if (result == FusedResult::kLaunched) return true;
  if (result == FusedResult::kDeviceLost) return false;
  Task* const named = flow.tables.FindTask(planned.fused_with);
  Task* const other = named != nullptr && named != &task && IsReadyHead(*named) ? named : nullptr;
  const bool any_lc = IsLc(task) || (named != nullptr && IsLc(*named));
  if (!any_lc && result == FusedResult::kNotNow && MayWait(flow, pair)) {
    Hold(flow, task, {task.record.ticket, Reason::kHoldWindow, 0, 0});
    return false;
  }
  // Where one is LC work, the other goes when the policy says so; two BE tasks were both to go.
  const bool launched = IsLc(task) == any_lc && LaunchAlone(flow, task, planned);
  if (other != nullptr && IsLc(*other) == any_lc && !flow.device_lost.load()) {
    LaunchAlone(flow, *other, planned);
  }
  return launched;
}

}  // namespace gpushare::core
