// Checks, copies and posts what applications submit. See submit.h.

#include "src/core/flow/submit.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "src/core/base/ids.h"
#include "src/core/base/prefetch.h"
#include "src/core/flow/fast_path.h"

namespace gpushare::core {
namespace {

// Counts a thread inside a submit of the app, so that releasing the app can wait for it.
class InsideSubmit {
 public:
  explicit InsideSubmit(App& app) : app_(app) { app_.submitters.fetch_add(1); }
  ~InsideSubmit() { app_.submitters.fetch_sub(1, std::memory_order_release); }
  InsideSubmit(const InsideSubmit&) = delete;
  InsideSubmit& operator=(const InsideSubmit&) = delete;

 private:
  App& app_;
};

// Holds a queue against its release while a submit is under way; an accepted task keeps the hold.
class QueueHold {
 public:
  explicit QueueHold(Queue& queue) : queue_(&queue) { queue.tasks_open.fetch_add(1); }
  ~QueueHold() {
    if (queue_ != nullptr) queue_->tasks_open.fetch_sub(1);
  }
  QueueHold(const QueueHold&) = delete;
  QueueHold& operator=(const QueueHold&) = delete;
  void Keep() { queue_ = nullptr; }
  // Looked at after the hold: still the queue that the caller named.
  bool IsStill(QueueId id) const { return queue_->id.load() == id.value && queue_->open.load(); }

 private:
  Queue* queue_;
};

absl::Status Refusal(const Flow& flow) {
  if (flow.device_lost.load()) {
    return absl::UnavailableError("The device is lost and takes no more work.");
  }
  return absl::FailedPreconditionError("The runtime is shut down and takes no more work.");
}

absl::Status Released(QueueId id) {
  return absl::InvalidArgumentError(
      absl::StrCat("Queue ", id.value, " does not exist or is released."));
}

// CUDA's own limits of y and z; x is bounded by its type.
constexpr int32_t kMaxGridYz = 65535;

absl::Status CheckGrid(const TaskSpec& spec, const KernelDesc& kernel) {
  const auto [x, y, z] = spec.grid;
  if (x == 0 && y == 0 && z == 0) return absl::OkStatus();
  if (x < 1 || y < 1 || z < 1 || y > kMaxGridYz || z > kMaxGridYz) {
    return absl::InvalidArgumentError(
        absl::StrCat("A launch of kernel '", kernel.name, "' has the grid ", x, " x ", y, " x ", z,
                     ", and each dimension is at least 1, the second and third at most ",
                     kMaxGridYz, "; or all are 0."));
  }
  // Below 2^63: x < 2^31, y and z < 2^16.
  const int64_t product = int64_t{x} * y * z;
  if (product != spec.block_tasks) {
    return absl::InvalidArgumentError(absl::StrCat(
        "A launch of kernel '", kernel.name, "' has the grid ", x, " x ", y, " x ", z, " of ",
        product, " blocks and ", spec.block_tasks, " block tasks, and they must be equal."));
  }
  return absl::OkStatus();
}

absl::Status CheckBlocks(const TaskSpec& spec, const KernelDesc& kernel) {
  if (spec.block_tasks < 1 || spec.block_tasks > kMaxBlockTasks) {
    return absl::InvalidArgumentError(
        absl::StrCat("A launch of kernel '", kernel.name, "' has ", spec.block_tasks,
                     " block tasks, and it must have 1 to ", kMaxBlockTasks, "."));
  }
  return CheckGrid(spec, kernel);
}

// The operands of a library call are a struct: a caller that packs another one fails here, not on
// the device.
absl::Status CheckLibraryArguments(const TaskSpec& spec, const KernelDesc& kernel) {
  if (kernel.library_call.operation == LibraryOperation::kNone ||
      spec.arguments_bytes == sizeof(LibraryArguments)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("A task of library call '", kernel.name, "' has ", spec.arguments_bytes,
                   " bytes of arguments, and the operands of a library call have ",
                   sizeof(LibraryArguments), "."));
}

absl::Status CheckCopy(const CopyRequest& copy) {
  if (copy.direction == CopyDirection::kNone || copy.direction > CopyDirection::kPeer) {
    return absl::InvalidArgumentError("A copy has no direction.");
  }
  if (copy.bytes < 1 || copy.bytes > kMaxCopyBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "A copy has ", copy.bytes, " bytes, and it must have 1 to ", kMaxCopyBytes, "."));
  }
  return absl::OkStatus();
}

absl::Status CheckSpec(const TaskSpec& spec, const KernelDesc* kernel) {
  if (spec.arguments_bytes > kMaxArgumentBytes) {
    return absl::InvalidArgumentError(absl::StrCat("A task has ", spec.arguments_bytes,
                                                   " bytes of arguments, and the limit is ",
                                                   kMaxArgumentBytes, "."));
  }
  if (spec.arguments_bytes > 0 && spec.arguments == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("A task has ", spec.arguments_bytes,
                                                   " bytes of arguments and no pointer to them."));
  }
  if (spec.wait_tickets.size() > kMaxWaitsPerTask || spec.wait_events.size() > kMaxWaitsPerTask) {
    return absl::InvalidArgumentError(absl::StrCat(
        "A task waits for ", spec.wait_tickets.size(), " tickets and ", spec.wait_events.size(),
        " events, and the limit is ", kMaxWaitsPerTask, " of each."));
  }
  if (spec.declared_ns < 0 || spec.declared_ns > kMaxDurationNs) {
    return absl::InvalidArgumentError(
        absl::StrCat("A task declares a duration of ", spec.declared_ns,
                     " ns, and it must lie between 0 and ", kMaxDurationNs, " ns."));
  }
  if (spec.arrival_ns < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("A task arrives at ", spec.arrival_ns, " ns, before the clock began."));
  }
  switch (spec.kind) {
    case TaskKind::kKernel:
    case TaskKind::kGraph:
    case TaskKind::kLibrary:
      if (kernel == nullptr) {
        return absl::InvalidArgumentError(
            absl::StrCat("Kernel ", spec.kernel.value, " is not registered."));
      }
      if (kernel->kind != spec.kind) {
        return absl::InvalidArgumentError(absl::StrCat(
            "'", kernel->name, "' is registered as another kind of work than it is submitted as."));
      }
      if (spec.kind == TaskKind::kKernel) return CheckBlocks(spec, *kernel);
      return CheckLibraryArguments(spec, *kernel);
    case TaskKind::kMemcpy:
      return CheckCopy(spec.copy);
    case TaskKind::kOpaque:
      if (spec.host_function == nullptr) {
        return absl::InvalidArgumentError("Opaque work has no function to call.");
      }
      return absl::OkStatus();
  }
  return absl::InvalidArgumentError("A task is of an unknown kind.");
}

// OK and null: an implicit query, or BE work without one.
absl::StatusOr<QuerySlot*> FindSpecQuery(const Flow& flow, const TaskSpec& spec,
                                         const Queue& queue) {
  if (!spec.query) return nullptr;
  QuerySlot* slot = flow.tables.FindQuery(spec.query);
  if (slot == nullptr || !slot->open.load(std::memory_order_acquire)) {
    return absl::InvalidArgumentError("The task's query was not begun or is ended already.");
  }
  if (slot->queue != &queue) {
    return absl::InvalidArgumentError("The task's query was begun on another queue.");
  }
  return slot;
}

bool CopyArguments(App& app, Task& task, const TaskSpec& spec) {
  task.arguments_bytes = static_cast<uint32_t>(spec.arguments_bytes);
  task.large_arguments = -1;
  if (spec.arguments_bytes == 0) return true;
  if (spec.arguments_bytes <= kInlineArgumentBytes) {
    std::memcpy(task.arguments.data(), spec.arguments, spec.arguments_bytes);
    return true;
  }
  uint32_t slot = 0;
  if (!app.free_large->TryPop(slot)) return false;
  task.large_arguments = static_cast<int32_t>(slot - 1);
  std::memcpy(app.large[slot - 1].bytes.data(), spec.arguments, spec.arguments_bytes);
  return true;
}

// Back to what a new task is; the slot's identity stays.
void Fill(Task& task, Queue& queue, const TaskSpec& spec, const KernelDesc* kernel, TimeNs now_ns) {
  task.complete.store(false, std::memory_order_relaxed);
  task.cancel_requested.store(false, std::memory_order_relaxed);
  task.region.store(RegionPhase::kNone, std::memory_order_relaxed);
  task.queue = &queue;
  task.query = nullptr;
  task.explicit_query = nullptr;
  task.kernel = kernel;
  task.kind = spec.kind;
  task.copy = spec.copy;
  task.blocks = spec.kind == TaskKind::kMemcpy   ? spec.copy.bytes
                : spec.kind == TaskKind::kKernel ? spec.block_tasks
                                                 : 1;
  task.grid = spec.grid;
  task.host_function = spec.host_function;
  task.host_user = spec.host_user;
  task.declared_ns = spec.declared_ns;
  task.wait_ticket_count = static_cast<int32_t>(spec.wait_tickets.size());
  std::copy(spec.wait_tickets.begin(), spec.wait_tickets.end(), task.wait_tickets.begin());
  task.wait_event_count = static_cast<int32_t>(spec.wait_events.size());
  std::copy(spec.wait_events.begin(), spec.wait_events.end(), task.wait_events.begin());
  task.signal_event = spec.signal_event;
  task.callback = spec.callback;
  task.callback_user = spec.callback_user;
  task.is_region = false;
  task.adopted = task.started_early = task.entered_gate = task.evicts = task.had_company = false;
  task.beside_sms = 0;
  task.beside_overlaps = false;
  task.counter = -1;
  task.counter_fresh = true;
  task.running_index = -1;
  task.kernel_row = -1;
  task.sequence = 0;
  task.ready_ns = 0;
  task.blocks_done = 0;
  task.issued_ns = 0;
  task.evicted_since_ns = 0;
  task.part_count = 0;
  task.predicted = Prediction();
  task.eviction_p99_ns = task.blocking_ns = kNever;
  task.next = nullptr;
  task.record = CompletionRecord();
  task.record.ticket = Tables::TicketOf(task);
  task.record.app = AppId{task.app->id.load(std::memory_order_relaxed)};
  task.record.queue = QueueId{queue.id.load(std::memory_order_relaxed)};
  task.record.kernel = kernel == nullptr ? KernelId{} : kernel->id;
  task.record.kind = spec.kind;
  task.record.submit_ns = now_ns;
}

// The query that the task belongs to. BE work has none.
void JoinQuery(Task& task, QuerySlot* slot, TimeNs arrival_ns) {
  if (slot != nullptr) {
    slot->tasks_submitted.fetch_add(1, std::memory_order_acq_rel);
    task.explicit_query = slot;
    task.query = &slot->state;
  } else if (task.app->options.app_class == AppClass::kLatencyCritical) {
    task.own_query = QueryState();
    task.own_query.id = QueryId{task.record.ticket.value | kImplicitQueryBit};
    task.own_query.app = task.app;
    task.own_query.arrival_ns = arrival_ns;
    task.query = &task.own_query;
    task.app->active_queries.fetch_add(1, std::memory_order_acq_rel);
  } else {
    return;
  }
  task.record.query = task.query->id;
}

// Four tickets a record, right behind the submission that waits for them.
void EmitWaits(const Flow& flow, const Task& task) {
  for (int32_t i = 0; i < task.wait_ticket_count; i += 4) {
    const auto ticket = [&](int32_t offset) {
      const int32_t at = i + offset;
      return at < task.wait_ticket_count
                 ? static_cast<int64_t>(task.wait_tickets[static_cast<size_t>(at)].value)
                 : 0;
    };
    EventRecord event;
    event.type = static_cast<uint8_t>(EventType::kWaits);
    event.time_ns = task.record.submit_ns;
    event.id = task.record.ticket.value;
    event.app = task.record.app.value;
    event.a = ticket(0);
    event.b = ticket(1);
    event.c = ticket(2);
    event.d = ticket(3);
    flow.Emit(event);
  }
}

void EmitQueryCall(const Flow& flow, EventType type, QueryId query, uint32_t app, uint32_t queue,
                   TimeNs arrival_ns) {
  if (flow.options.events == nullptr) return;  // spares a look at the clock
  EventRecord event;
  event.type = static_cast<uint8_t>(type);
  event.time_ns = flow.device->NowNs();
  event.id = query.value;
  event.app = app;
  event.a = queue;
  event.b = arrival_ns;
  flow.Emit(event);
}

void EmitSubmitted(const Flow& flow, const Task& task) {
  if (flow.options.events == nullptr) return;  // the query's state is the flow's: a cold line
  EventRecord event;
  event.type = static_cast<uint8_t>(EventType::kSubmitted);
  event.time_ns = task.record.submit_ns;
  event.id = task.record.ticket.value;
  event.app = task.record.app.value;
  event.app_class = static_cast<uint8_t>(task.app->options.app_class);
  event.kernel = task.record.kernel.value;
  event.a = static_cast<int64_t>(task.record.queue.value);
  event.b = task.blocks;
  event.c = static_cast<int64_t>(task.record.query.value);
  event.d = task.query == nullptr ? 0 : task.query->arrival_ns;
  event.detail = static_cast<uint8_t>(task.kind);
  if (task.kind == TaskKind::kMemcpy) {
    event.reserved = static_cast<uint16_t>(static_cast<unsigned>(task.copy.direction) |
                                           static_cast<unsigned>(task.copy.pinned) << 2);
  }
  if (task.kind == TaskKind::kLibrary || task.kind == TaskKind::kOpaque) event.b = task.declared_ns;
  flow.Emit(event);
  EmitWaits(flow, task);
}

absl::StatusOr<Queue*> FindOpenQueue(const Flow& flow, QueueId id, AppClass app_class) {
  Queue* queue = flow.tables.FindQueue(id);
  if (queue == nullptr || !queue->open.load(std::memory_order_acquire)) return Released(id);
  if (queue->app->options.app_class != app_class) {
    return absl::InvalidArgumentError(absl::StrCat("App '", queue->app->options.name, "' is ",
                                                   app_class == AppClass::kLatencyCritical
                                                       ? "best-effort; use submit_be."
                                                       : "latency-critical; use submit_lc."));
  }
  return queue;
}

// What an LC submit is about to write and the flow wrote last, all at once (prefetch.h).
void PrefetchSubmit(const Flow& flow, const Queue& queue, const QuerySlot* query) {
  const App& app = *queue.app;
  PrefetchForWrite(&queue);
  PrefetchForWrite(&app.submitters);
  PrefetchForWrite(&flow.gate);
  PrefetchForWrite(&flow.counters);
  if (query != nullptr) PrefetchForWrite(query);
  const LaneIndex lane = queue.lane.load(std::memory_order_relaxed);
  if (lane != kNoLane) PrefetchForWrite(&flow.lanes.lane(lane).in_flight);
}

// The same for the task's slot, a guess: another submitter may take it first. Inside the submit,
// since a released app may move its slots.
void PrefetchTask(const App& app) {
  const uint32_t slot = app.free_tasks->Top();
  if (slot == 0) return;
  const Task& task = app.tasks[slot - 1];
  PrefetchForWrite(&task, sizeof(Task) - sizeof(task.arguments) + kCacheLineBytes);
}

// A filled task of the flow's, holders set: from here on it completes exactly once.
absl::StatusOr<Task*> Accept(Flow& flow, Queue& queue, const TaskSpec& spec,
                             const KernelDesc* kernel, QuerySlot* query) {
  App& app = *queue.app;
  Task* task = flow.tables.AllocateTask(app);
  if (task == nullptr) {
    app.rejected.fetch_add(1, std::memory_order_relaxed);
    return absl::ResourceExhaustedError(
        absl::StrCat("App '", app.options.name, "' has ", app.options.tasks_max,
                     " tasks that are not complete or not released."));
  }
  if (!CopyArguments(app, *task, spec)) {
    app.free_tasks->Push(task->slot + 1);
    app.rejected.fetch_add(1, std::memory_order_relaxed);
    return absl::ResourceExhaustedError(absl::StrCat("App '", app.options.name, "' has ",
                                                     kLargeArgumentSlotsPerApp,
                                                     " tasks with large arguments in flight."));
  }
  const TimeNs now = flow.device->NowNs();
  Fill(*task, queue, spec, kernel, now);
  JoinQuery(*task, query, spec.arrival_ns == 0 ? now : spec.arrival_ns);
  task->holders.store(spec.detached ? kHeldByFlow : kHeldByCaller | kHeldByFlow,
                      std::memory_order_release);
  task->state.store(TaskState::kSubmitted, std::memory_order_relaxed);
  app.submitted.fetch_add(1, std::memory_order_relaxed);
  flow.counters.pending.fetch_add(1, std::memory_order_acq_rel);
  EmitSubmitted(flow, *task);
  return task;
}

}  // namespace

absl::StatusOr<TicketId> SubmitTask(Flow& flow, const TaskSpec& spec, AppClass app_class) {
  absl::StatusOr<Queue*> found = FindOpenQueue(flow, spec.queue, app_class);
  if (!found.ok()) return found.status();
  Queue& queue = **found;
  App& app = *queue.app;
  if (app_class == AppClass::kLatencyCritical) {
    PrefetchSubmit(flow, queue, flow.tables.FindQuery(spec.query));
  }
  InsideSubmit inside(app);
  QueueHold hold(queue);
  if (!app.open.load() || !hold.IsStill(spec.queue)) return Released(spec.queue);
  if (app_class == AppClass::kLatencyCritical) PrefetchTask(app);
  if (!flow.accepting.load()) return Refusal(flow);
  const KernelDesc* kernel = flow.tables.FindKernel(spec.kernel);
  if (absl::Status status = CheckSpec(spec, kernel); !status.ok()) {
    app.rejected.fetch_add(1, std::memory_order_relaxed);
    return status;
  }
  absl::StatusOr<QuerySlot*> query = FindSpecQuery(flow, spec, queue);
  if (!query.ok()) return query.status();
  for (TicketId ticket : spec.wait_tickets) {
    if (flow.tables.FindTask(ticket) == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("The task waits for ticket ", ticket.value,
                                                     ", which does not exist or is released."));
    }
  }
  absl::StatusOr<Task*> accepted = Accept(flow, queue, spec, kernel, *query);
  if (!accepted.ok()) return accepted.status();
  hold.Keep();
  Task& task = **accepted;
  const TicketId ticket = task.record.ticket;
  FastPathResult result = FastPathResult::kNotTaken;
  if (app_class == AppClass::kLatencyCritical) result = TryFastPath(flow, task);
  const RingTag tag = result == FastPathResult::kLaunched ? RingTag::kStarted
                      : result == FastPathResult::kFailed ? RingTag::kStartFailed
                                                          : RingTag::kSubmitted;
  if (tag == RingTag::kSubmitted) queue.unlaunched.fetch_add(1, std::memory_order_acq_rel);
  flow.ring.Push(PackRing(tag, ticket.value));
  return ticket;
}

absl::StatusOr<QueryId> SubmitQueryBegin(Flow& flow, QueueId id, TimeNs arrival_ns) {
  absl::StatusOr<Queue*> found = FindOpenQueue(flow, id, AppClass::kLatencyCritical);
  if (!found.ok()) return found.status();
  App& app = *(*found)->app;
  InsideSubmit inside(app);
  const QueueHold hold(**found);
  if (!app.open.load() || !hold.IsStill(id)) return Released(id);
  if (!flow.accepting.load()) return Refusal(flow);
  if (arrival_ns < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("A query arrives at ", arrival_ns, " ns, before the clock began."));
  }
  const TimeNs arrival = arrival_ns == 0 ? flow.device->NowNs() : arrival_ns;
  absl::StatusOr<QueryId> query = flow.tables.AllocateQuery(**found, arrival);
  if (!query.ok()) return query.status();
  app.active_queries.fetch_add(1, std::memory_order_acq_rel);
  EmitQueryCall(flow, EventType::kQueryBeginCalled, *query, app.id.load(), id.value, arrival);
  flow.ring.Push(PackRing(RingTag::kQueryBegun, query->value));
  return *query;
}

absl::Status SubmitQueryEnd(Flow& flow, QueryId query) {
  QuerySlot* slot = flow.tables.FindQuery(query);
  if (slot == nullptr || !slot->open.exchange(false)) {
    return absl::InvalidArgumentError("The query was not begun or is ended already.");
  }
  EmitQueryCall(flow, EventType::kQueryEndCalled, query, slot->state.app->id.load(),
                slot->queue->id.load(), 0);
  const LaneIndex lane = slot->queue->lane.load(std::memory_order_relaxed);
  flow.ring.Push(PackRing(RingTag::kQueryEnded, query.value));
  if (lane != kNoLane) flow.device->FlushLane(lane);
  return absl::OkStatus();
}

namespace {

// Whether a region of the queue may begin now. The caller has counted it in open_regions, so that
// quiesce, which sets its flag first, either is seen here or waits for the region.
absl::Status MayBegin(const Flow& flow, const Queue& queue, int64_t bound_ns) {
  if (bound_ns < 1 || bound_ns > kMaxDurationNs) {
    return absl::InvalidArgumentError(absl::StrCat("A region declares a bound of ", bound_ns,
                                                   " ns, and it must lie between 1 and ",
                                                   kMaxDurationNs, " ns."));
  }
  if (flow.quiesced.load()) {
    return absl::UnavailableError("The runtime is quiesced; begin the region again after resume.");
  }
  if (const int waiting = queue.unlaunched.load(); waiting > 0) {
    return absl::UnavailableError(absl::StrCat(
        "The queue has ", waiting, " tasks that are not launched yet. Try again later."));
  }
  if (queue.app->options.app_class == AppClass::kLatencyCritical) return absl::OkStatus();
  const int64_t allowed = flow.gate.InFlight() == 0 ? flow.be_region_bound_ns.load() : 0;
  if (bound_ns > allowed || queue.in_flight.load() > 0) {
    return absl::UnavailableError(
        absl::StrCat("A best-effort region of ", bound_ns, " ns does not fit now: the bound is ",
                     allowed, " ns and the queue must be empty. Try again later."));
  }
  return absl::OkStatus();
}

// Lane and place of a region; LC regions evict what is in their way.
void PlaceRegion(Flow& flow, Task& task) {
  App& app = *task.app;
  Queue& queue = *task.queue;
  const bool latency_critical = app.options.app_class == AppClass::kLatencyCritical;
  // Enter before the route is read (lc_gate.h): a route read outside may be stale.
  if (latency_critical) {
    flow.gate.EnterLc();
    task.entered_gate = true;
  }
  const LcRoute route = UnpackRoute(app.route.load(std::memory_order_seq_cst));
  Part& part = task.parts[0];
  part = Part();
  part.form = Form::kOpaque;
  part.blocks_asked = 1;
  const bool in_order = queue.in_flight.load(std::memory_order_acquire) > 0;
  part.lane = in_order ? queue.lane.load(std::memory_order_relaxed)
              : latency_critical && route.place >= 0
                  ? flow.lanes.Pick(route.place, route.lane_class, app.slot)
                  : flow.lanes.Pick(kWholeDevice, LaneClass::kPlain, app.slot);
  part.place = part.lane == kNoLane ? kWholeDevice : flow.lanes.lane(part.lane).spec.place;
  queue.lane.store(part.lane, std::memory_order_relaxed);
  queue.in_flight.fetch_add(1, std::memory_order_acq_rel);
  task.is_region = true;
  task.evicts = latency_critical && route.evict_overlapping;
  task.region.store(RegionPhase::kOpen);
  if (task.evicts) EvictOverlapping(flow, part.place, Reason::kEvictForLc);
}

}  // namespace

absl::StatusOr<TicketId> SubmitRegionBegin(Flow& flow, QueueId id, int64_t bound_ns,
                                           void** stream) {
  Queue* queue = flow.tables.FindQueue(id);
  if (queue == nullptr) return Released(id);
  App& app = *queue->app;
  InsideSubmit inside(app);
  QueueHold hold(*queue);
  if (!app.open.load() || !hold.IsStill(id)) return Released(id);
  // A launch of a submitter may have found the loss, which the flow has not handled yet: 'later'
  // would be the wrong answer from now on.
  if (flow.device_lost.load() || !flow.accepting.load()) return Refusal(flow);
  flow.open_regions.fetch_add(1);
  if (absl::Status status = MayBegin(flow, *queue, bound_ns); !status.ok()) {
    flow.open_regions.fetch_sub(1);
    return status;
  }
  TaskSpec spec;
  spec.kind = TaskKind::kOpaque;
  spec.declared_ns = bound_ns;
  absl::StatusOr<Task*> accepted = Accept(flow, *queue, spec, nullptr, nullptr);
  if (!accepted.ok()) {
    flow.open_regions.fetch_sub(1);
    return accepted.status();
  }
  hold.Keep();
  Task& task = **accepted;
  PlaceRegion(flow, task);
  const LaneIndex lane = task.parts[0].lane;
  if (stream != nullptr) *stream = lane == kNoLane ? nullptr : flow.device->LaneStream(lane);
  return task.record.ticket;
}

absl::Status SubmitRegionEnd(Flow& flow, TicketId region) {
  Task* task = flow.tables.FindTask(region);
  RegionPhase open = RegionPhase::kOpen;
  if (task == nullptr || !task->region.compare_exchange_strong(open, RegionPhase::kEnded)) {
    return absl::InvalidArgumentError("The ticket is no open region.");
  }
  // The end of the region is a launch on the same lane: it completes when the stream gets there.
  const FastPathResult result = LaunchPart(flow, *task);
  if (result == FastPathResult::kNotTaken) {
    task->region.store(RegionPhase::kOpen);
    return absl::ResourceExhaustedError(absl::StrCat("The device has ", kMaxInFlightLaunches,
                                                     " launches in flight. End the region again."));
  }
  const bool launched = result == FastPathResult::kLaunched;
  flow.ring.Push(PackRing(launched ? RingTag::kStarted : RingTag::kStartFailed, region.value));
  return absl::OkStatus();
}

void Collect(Flow& flow) {
  flow.inbox_count = 0;
  uint64_t word = 0;
  while (flow.inbox_count < kBatch && flow.ring.TryPop(word)) {
    flow.inbox[static_cast<size_t>(flow.inbox_count++)] = word;
  }
}

}  // namespace gpushare::core
