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

// Both tasks in one request; its kernel is the TC part, whichever of them the plan named first.
void FuseRequest(const Flow& flow, const Task& task, const Task& partner, LaunchRequest& request) {
  request.fused = flow.tables.FindFused(*task.kernel, *partner.kernel);
  const bool swapped = request.fused->tensor_part != task.kernel->id;
  const Task& tensor = swapped ? partner : task;
  const Task& cuda = swapped ? task : partner;
  request.kernel = tensor.kernel;
  request.block_count = tensor.blocks;
  request.arguments = ArgumentsOf(tensor);
  request.arguments_bytes = tensor.arguments_bytes;
  request.fused_partner = cuda.kernel;
  request.partner_block_count = cuda.blocks;
  request.partner_arguments = ArgumentsOf(cuda);
  request.partner_arguments_bytes = cuda.arguments_bytes;
}

// Adds the part to the device. False: nothing happened, the task stays where it was.
bool LaunchOne(Flow& flow, Task& task, const PlannedLaunch& planned) {
  const bool lc = task.app->options.app_class == AppClass::kLatencyCritical;
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
  Task* partner = nullptr;
  if (part.form == Form::kFused) {
    partner = flow.tables.FindTask(planned.fused_with);
    // A fused launch ends as one: neither part leaves before the other (no eviction word).
    const bool ready = partner != nullptr && partner != &task && task.kernel != nullptr &&
                       partner->kernel != nullptr && !lane.spec.evictable &&
                       partner->state.load(std::memory_order_relaxed) == TaskState::kReady;
    if (!ready || flow.tables.FindFused(*task.kernel, *partner->kernel) == nullptr) {
      return hold(Reason::kHoldWindow);
    }
  }
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
  if (lc) {
    flow.gate.EnterLc();
    task.entered_gate = true;
    task.evicts =
        flow.buffers.plan.routes[static_cast<size_t>(task.app->plan_index)].evict_overlapping;
    if (task.evicts) {
      // Its place may be wider than its route's: work that no partition can hold.
      flow.gate.WidenLanes(flow.lanes.EvictableLanes(part.place));
      EvictOverlapping(flow, part.place, Reason::kEvictForLc);
    }
  }
  part.launched_ns = flow.device->NowNs();
  LaunchRequest request = MakeRequest(task, part);
  if (partner != nullptr) FuseRequest(flow, task, *partner, request);
  if (part.form == Form::kOpaque) {
    flow.deferred.push_back(request);  // it calls the application: after Tick, with no lock held
  } else if (const absl::Status status = LaunchInQuery(flow, request, task.explicit_query);
             !status.ok()) {
    if (evictable) lane.evictable.fetch_sub(1, std::memory_order_relaxed);
    flow.launches.Free(part.launch);
    task.record.error_code = static_cast<int32_t>(status.code());
    if (IsDeviceLost(status)) {
      LoseDevice(flow, static_cast<int32_t>(status.code()));
    } else if (task.part_count == 0) {
      if (task.running_index < 0) Unlink(flow, task);
      FinishTask(flow, task, Verdict::kFailed);
    }
    return false;
  }
  if (part.form == Form::kWorkers) task.counter_fresh = false;
  if (partner != nullptr) {
    partner->queue->lane.store(part.lane, std::memory_order_relaxed);
    partner->queue->in_flight.fetch_add(1, std::memory_order_acq_rel);
    Unlink(flow, *partner);
    SetState(*partner, TaskState::kRunning);
    if (!partner->entered_gate && partner->query != nullptr) {
      flow.gate.EnterLc();
      partner->entered_gate = true;
    }
    partner->record.launch_ns = part.launched_ns;
    partner->record.launch_reason = planned.reason;
    partner->record.form = Form::kFused;
    partner->record.launches = 1;
    task.fused_partner = partner;
  }
  if (task.running_index < 0) {
    // In this order: a submitter that sees nothing unlaunched must see the lane that is in use.
    task.queue->lane.store(part.lane, std::memory_order_relaxed);
    task.queue->in_flight.fetch_add(1, std::memory_order_acq_rel);
    Unlink(flow, task);
  }
  if (task.state.load(std::memory_order_relaxed) == TaskState::kWaiting) {
    SetState(task, TaskState::kReady);  // an LC task right behind its head
  }
  SetState(task, TaskState::kRunning);
  if (task.record.launches++ == 0) {
    task.record.launch_ns = part.launched_ns;
    task.record.launch_reason = planned.reason;
  }
  if (task.evicted_since_ns > 0) {
    task.record.evicted_ns += part.launched_ns - task.evicted_since_ns;
    task.evicted_since_ns = 0;
  }
  task.record.form = part.form;
  task.record.place = part.place;
  lane.in_flight.fetch_add(1, std::memory_order_relaxed);
  task.parts[static_cast<size_t>(task.part_count++)] = part;
  EnterRunning(flow, task, task.parts[static_cast<size_t>(task.part_count - 1)]);
  EmitLaunched(flow, task, part, planned.reason, EventType::kLaunched);
  return true;
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
    if (!LaunchOne(flow, *queue.head, each)) return;
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
  request.block_count = part.form == Form::kWorkers ? task.blocks : part.blocks_asked;
  request.workers = part.form == Form::kWorkers || part.form == Form::kFused ? part.workers : 0;
  request.counter = part.form == Form::kWorkers ? task.counter : -1;
  request.reset_counter = part.form == Form::kWorkers && task.counter_fresh;
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
