// Fused launches. See fused_launch.h.

#include "src/core/flow/fused/fused_launch.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "src/core/base/tuning.h"
#include "src/core/flow/verbs/evict.h"
#include "src/core/flow/verbs/finish.h"
#include "src/core/flow/verbs/launch_task.h"
#include "src/core/flow/verbs/request.h"
#include "src/core/seams/native_code.h"
#include "src/core/seams/ordinary_form.h"

namespace gpushare::core {
namespace {

// Two tasks in one launch. It runs in the order of the first task's lane.
struct FusedPair {
  Task* first = nullptr;
  Task* second = nullptr;
  const FusedKernelDesc* kernel = nullptr;
  int64_t blocks = 0;    // fused blocks
  bool capped = false;   // by the plan: fewer than the place holds and the work fills
  bool limited = false;  // the second part, by the plan: fewer workers than its blocks have
  std::array<Part, 2> parts;
};

enum class FusedResult : uint8_t {
  kLaunched = 0,
  kNotNow = 1,      // nothing happened; it may work once something has ended
  kNoPair = 2,      // nothing happened; these two never go together
  kRefused = 3,     // by the device, for an unknown one of the two; nothing happened
  kDeviceLost = 4,  // every task has ended
};

// Whether the task is the head of its queue and may be launched now.
bool IsReadyHead(const Task& task) {
  return task.state.load(std::memory_order_relaxed) == TaskState::kReady &&
         task.queue->head == &task && !task.cancel_requested.load(std::memory_order_relaxed);
}

// Whether the task may be a part of a fused launch at all.
bool MayBePart(const Task& task) {
  if (task.work.kernel == nullptr || task.work.kind != TaskKind::kKernel) return false;
  // An event recorded after both parts would be late for this one.
  if (task.signal_event != nullptr || !task.progress.parts.empty()) return false;
  // Block tasks that slices have done are in no counter.
  return task.progress.blocks_done == 0 || task.progress.counter >= 0;
}

// Whether the second task leads the pair. The LC task leads, because its lane's priority is the
// pair's; without one, the task that cannot be evicted leads.
bool SecondLeads(const Task& task, const Task& other) {
  if (IsLc(task) || IsLc(other)) return IsLc(other) && !IsLc(task);
  return !other.IsEvictable() && task.IsEvictable();
}

// The two tasks that the plan names, in the order of the launch. False: they are no pair.
bool FindPair(const Flow& flow, Task& task, const PlannedLaunch& planned, FusedPair& pair) {
  Task* const other = flow.tables.FindTask(planned.fused_with);
  if (other == nullptr || other == &task || !IsReadyHead(*other)) return false;
  if (!MayBePart(task) || !MayBePart(*other)) return false;
  const bool swapped = SecondLeads(task, *other);
  pair.first = swapped ? other : &task;
  pair.second = swapped ? &task : other;
  // The launch waits only for the first task's native events, and before both parts.
  if (!pair.second->wait_events.empty()) return false;
  pair.kernel = flow.tables.FindFused(*task.work.kernel, *other->work.kernel, planned.fused_kernel);
  return pair.kernel != nullptr;
}

// The picked lane, or a plain one: a task that cannot be evicted must not be on an evictable lane.
LaneIndex StayingLane(const Flow& flow, const Task& task, PlaceIndex place, LaneIndex lane) {
  if (task.IsEvictable() || !flow.lanes.lane(lane).spec.evictable) return lane;
  return flow.lanes.Pick(place, LaneClass::kPlain, task.app->slot);
}

// Whether the task would start after its queue's work in flight. An LC queue is ordered by its
// lane. A BE queue has one task at a time on the device.
bool KeepsOrder(const Task& task, LaneIndex lane) {
  const Queue& queue = *task.queue;
  if (queue.in_flight.load(std::memory_order_acquire) == 0) return true;
  return IsLc(task) && queue.lane.load(std::memory_order_relaxed) == lane;
}

// What prevents the launch of a pair. None: nothing does.
using Obstacle = std::optional<FusedResult>;

// The lanes of both parts. kNotNow: one is not free. kNoPair: there is none.
Obstacle TakeLanes(const Flow& flow, const PlannedLaunch& planned, FusedPair& pair) {
  Part& first = pair.parts[0];
  Part& second = pair.parts[1];
  PlannedLaunch in_order = planned;
  if (IsLc(*pair.first) && planned.lane_class == LaneClass::kBe) {
    in_order.lane_class = LaneClass::kLc;
  }
  const LaneIndex picked = PickLane(flow, *pair.first, in_order).lane;
  if (picked == kNoLane) return FusedResult::kNotNow;
  first.lane = StayingLane(flow, *pair.first, planned.place, picked);
  if (first.lane == kNoLane) return FusedResult::kNoPair;
  for (const Task* task : {pair.first, pair.second}) {
    if (!KeepsOrder(*task, first.lane)) return FusedResult::kNotNow;
  }
  first.place = second.place = flow.lanes.lane(first.lane).spec.place;
  second.order_lane = first.lane;
  if (IsLc(*pair.second) || !pair.second->IsEvictable()) {
    // It cannot be evicted, so it may not share an evictable lane.
    if (flow.lanes.lane(first.lane).spec.evictable) return FusedResult::kNoPair;
    second.lane = first.lane;
    return std::nullopt;
  }
  // A lane of its own has an eviction word of its own. Without one it is not fused, because nothing
  // could evict it alone.
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
  const int64_t holds =
      int64_t{flow.lanes.place(pair.parts[0].place).sms} * std::max(1, pair.kernel->blocks_per_sm);
  const bool first_is_tensor = pair.kernel->tensor_part == pair.first->work.kernel->id;
  int64_t useful = 1;
  std::array<int64_t, 2> blocks_of = {pair.kernel->tensor_blocks, pair.kernel->cuda_blocks};
  if (!first_is_tensor) std::swap(blocks_of[0], blocks_of[1]);
  const std::array<const Task*, 2> tasks = {pair.first, pair.second};
  for (size_t i = 0; i < tasks.size(); ++i) {
    const int64_t left =
        std::max<int64_t>(1, tasks[i]->work.block_tasks - tasks[i]->progress.blocks_done);
    pair.parts[i].blocks_asked = left;
    useful = std::max(useful, (left + blocks_of[i] - 1) / blocks_of[i]);
  }
  pair.blocks = std::min({planned.workers > 0 ? planned.workers : holds, holds, useful});
  pair.capped = pair.blocks < std::min(holds, useful);
  for (size_t i = 0; i < tasks.size(); ++i) {
    Part& part = pair.parts[i];
    part.workers_per_sm = tasks[i]->work.kernel->resources.workers_per_sm_max;
    const int64_t place_holds = int64_t{flow.lanes.place(part.place).sms} * part.workers_per_sm;
    part.workers = static_cast<int32_t>(
        std::min({pair.blocks * blocks_of[i], place_holds, part.blocks_asked}));
  }
}

// For each evictable part: count it, read the epoch, check the gate, in this order (lanes.h,
// lc_gate.h). The launch's own LC tasks, `own` in number, are inside the gate already and do not
// close it. False: the gate is closed.
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

// The workers that the plan leaves the second part: it names the part in a partial eviction. 0:
// all.
int32_t WorkersToKeep(const Flow& flow, const Task& partner) {
  for (const PlannedEviction& eviction : flow.buffers.plan.evictions) {
    if (eviction.task == partner.record.ticket) return eviction.workers_to_keep;
  }
  return 0;
}

// Writes the second part's eviction word before the launch, so that no worker starts beyond what
// the plan leaves it. False: the word could not be written, or LC work that came since closed the
// gate.
bool LimitPartner(Flow& flow, FusedPair& pair, int64_t own) {
  Part& part = pair.parts[1];
  const int32_t keep = WorkersToKeep(flow, *pair.second);
  if (keep <= 0 || part.epoch == 0 || keep >= part.workers) return true;
  const Eviction limited =
      EvictLane(flow, part.lane, keep, pair.second->record.ticket, Reason::kEvictForQuota, own);
  part.workers = keep;
  part.leave_epoch = flow.gate.Epoch(part.lane) + 1;
  pair.limited = true;
  return limited == Eviction::kWritten && flow.gate.IsOpen(part.lane, own);
}

// Gives back what TakePair and ReadEpochs took.
void ReleasePair(Flow& flow, const FusedPair& pair) {
  for (const auto& [task, part] :
       {std::pair{pair.first, &pair.parts[0]}, std::pair{pair.second, &pair.parts[1]}}) {
    if (part->epoch != 0) {
      flow.lanes.lane(part->lane).evictable.fetch_sub(1, std::memory_order_relaxed);
    }
    if (part->launch) flow.launches.Free(part->launch);
    // A task that has done nothing may still take another form.
    if (task->progress.counter >= 0 && task->progress.counter_fresh) {
      flow.free_counters.Add(task->progress.counter);
      task->progress.counter = -1;
    }
    if (task->progress.entered_gate) {
      flow.gate.LeaveLc();
      task->progress.entered_gate = false;
    }
  }
}

LaunchRequest MakeFusedRequest(const FusedPair& pair) {
  LaunchRequest request = MakeRequest(*pair.first, pair.parts[0]);
  FillLaunchPart(*pair.second, pair.parts[1], request.parts.Add());
  request.fused = pair.kernel;
  request.workers = static_cast<int32_t>(pair.blocks);
  return request;
}

// For the cost model. Whatever else is on the device runs beside the pair.
void FollowRun(Flow& flow, const FusedPair& pair) {
  const int tensor = pair.kernel->tensor_part == pair.first->work.kernel->id ? 0 : 1;
  const Part& first = pair.parts[0];
  const Part& second = pair.parts[1];
  FusedRun run;
  run.features = {pair.kernel, pair.parts[tensor].blocks_asked,
                  pair.parts[1 - tensor].blocks_asked};
  run.launches = {first.launch, second.launch};
  run.order_lane = first.lane;
  run.useful =
      !pair.capped && !pair.limited && flow.lanes_busy <= (second.lane == first.lane ? 1 : 2);
  flow.fused_runs.Begin(run);
}

// Hands the pair to the device. Both lanes are marked before, so that no launch slips in between.
FusedResult Enqueue(Flow& flow, FusedPair& pair, Reason reason) {
  Lane& first_lane = flow.lanes.lane(pair.parts[0].lane);
  Lane& second_lane = flow.lanes.lane(pair.parts[1].lane);
  first_lane.fused_partners_pending.fetch_add(1, std::memory_order_acq_rel);
  if (&second_lane != &first_lane)
    second_lane.holds_fused_partner.store(true, std::memory_order_relaxed);
  pair.parts[0].launched_ns = pair.parts[1].launched_ns = flow.device->NowNs();
  const LaunchRequest request = MakeFusedRequest(pair);
  const absl::Status status = LaunchInQuery(flow, request, pair.first->explicit_query);
  if (status.ok()) {
    RecordLaunched(flow, *pair.first, pair.parts[0], reason);
    RecordLaunched(flow, *pair.second, pair.parts[1], reason);
    FollowRun(flow, pair);
    return FusedResult::kLaunched;
  }
  first_lane.fused_partners_pending.fetch_sub(1, std::memory_order_acq_rel);
  second_lane.holds_fused_partner.store(false, std::memory_order_relaxed);
  ReleasePair(flow, pair);
  if (!IsDeviceLost(status)) return FusedResult::kRefused;
  LoseDevice(flow, NativeCodeOf(status));
  return FusedResult::kDeviceLost;
}

FusedResult LaunchFused(Flow& flow, const PlannedLaunch& planned, FusedPair& pair) {
  if (flow.running_be.size() + 2 > kMaxRunning) return FusedResult::kNotNow;
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
  if (!ReadEpochs(flow, pair, own) || !LimitPartner(flow, pair, own)) {
    ReleasePair(flow, pair);
    return FusedResult::kNotNow;
  }
  return Enqueue(flow, pair, planned.reason);
}

// Launches the task as a plan without pairs would.
bool LaunchAlone(Flow& flow, Task& task, const PlannedLaunch& planned) {
  PlannedLaunch alone = planned;
  alone.task = task.record.ticket;
  alone.fused_with = TicketId{};
  alone.fused_kernel = KernelId{};
  alone.workers = 0;
  alone.blocks_max = 0;
  const bool leaves = !IsLc(task) && task.IsEvictable();
  alone.form = leaves ? EvictableForm(task.work.kind) : OrdinaryForm(task.work.kind);
  if (IsLc(task) && alone.lane_class == LaneClass::kBe) alone.lane_class = LaneClass::kLc;
  if (task.work.kernel != nullptr && !task.work.kernel->confinable) alone.place = kWholeDevice;
  return LaunchTask(flow, task, alone);
}

// Whether a pair of BE tasks may still wait for what it lacks. A plan is made when the wait is
// over.
bool MayWait(Flow& flow, const FusedPair& pair) {
  const TimeNs until =
      std::min(pair.first->progress.ready_ns, pair.second->progress.ready_ns) + kFusedWaitNs;
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
    Hold(flow, task, {task.record.ticket, Reason::kHoldLane, 0, 0});
    return false;
  }
  // With an LC task in the pair, the BE task waits for the next plan. Two BE tasks are both
  // launched.
  const bool launched = IsLc(task) == any_lc && LaunchAlone(flow, task, planned);
  if (other != nullptr && IsLc(*other) == any_lc && !flow.device_lost.load()) {
    LaunchAlone(flow, *other, planned);
  }
  return launched;
}

}  // namespace gpushare::core
