// From a plan to device calls. See launch.h.

#include "src/core/flow/launch.h"

#include <algorithm>
#include <bit>

#include "src/core/flow/fast_path.h"
#include "src/core/flow/fused/fused_launch.h"
#include "src/core/flow/predict.h"
#include "src/core/flow/verbs/launch_one.h"
#include "src/core/seams/headroom.h"
#include "src/core/seams/launch_claims.h"
#include "src/core/seams/ordinary_form.h"
#include "src/core/state/state_change.h"

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
  const int count = IsLc(*task) ? planned.count : 1;
  for (int i = 0; i < count && queue.head != nullptr; ++i) {
    if (i > 0 && queue.head->wait_ticket_count != 0) return;
    PlannedLaunch each = planned;
    if (i > 0) {
      each.form = OrdinaryForm(queue.head->kind);
      if (planned.form == Form::kFused) {  // these were the pair's
        each.workers = 0;
        each.blocks_max = 0;
      }
    }
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
  const bool claims = ClaimsBlockTasks(part.form);
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

namespace {

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

}  // namespace

void EnterRunning(Flow& flow, Task& task, Part& part) {
  const bool first = task.running_index < 0;
  if (first) {
    const bool lc = IsLc(task) || task.started_early;
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
