// Checks, copies and posts what applications submit. See submit.h.

#include "src/core/flow/submit.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "src/core/base/ids.h"
#include "src/core/base/prefetch.h"
#include "src/core/flow/entry/fast_path.h"
#include "src/core/flow/entry/pieces.h"
#include "src/core/flow/entry/quota_check.h"
#include "src/core/flow/entry/submit_check.h"
#include "src/core/flow/verbs/accept.h"
#include "src/core/flow/verbs/waits.h"
#include "src/core/log/events.h"

namespace gpushare::core {
namespace {

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

absl::StatusOr<Queue*> FindOpenQueue(const Flow& flow, QueueId id, AppClass app_class,
                                     bool for_query = false) {
  Queue* queue = flow.tables.FindQueue(id);
  if (queue == nullptr || !queue->open.load(std::memory_order_acquire)) return QueueReleased(id);
  if (queue->app->options.app_class != app_class && for_query) {
    return absl::InvalidArgumentError(absl::StrCat("App '", queue->app->options.name,
                                                   "' is best-effort and has no queries; its "
                                                   "tasks go to submit_be without one."));
  }
  if (queue->app->options.app_class != app_class) {
    return absl::InvalidArgumentError(absl::StrCat("App '", queue->app->options.name, "' is ",
                                                   app_class == AppClass::kLatencyCritical
                                                       ? "best-effort; use submit_be."
                                                       : "latency-critical; use submit_lc."));
  }
  return queue;
}

// A time that early is not far ahead of any clock; then nobody reads it.
absl::Status CheckArrivalNow(const Flow& flow, absl::string_view what, TimeNs arrival_ns) {
  const bool early = arrival_ns >= 0 && arrival_ns <= kMaxArrivalAheadNs;
  return early ? absl::OkStatus() : CheckArrival(what, arrival_ns, flow.device->NowNs());
}

// Prefetches the cache lines that an LC submit writes next and the flow wrote last (prefetch.h).
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

// Prefetches the task's slot. It is a guess: another submitter may take the slot first. Call it
// inside the submit, because releasing an app may move its slots.
void PrefetchTask(const App& app) {
  const uint32_t slot = app.free_tasks->Top();
  if (slot == 0) return;
  const Task& task = app.TaskAt(slot - 1);
  // All of it but the waits, which a submit leaves alone, and the arguments behind their first
  // line.
  const auto before_waits =
      reinterpret_cast<const std::byte*>(&task.waits) - reinterpret_cast<const std::byte*>(&task);
  PrefetchForWrite(&task, static_cast<size_t>(before_waits));
  PrefetchForWrite(&task.arguments);
}

absl::StatusOr<TicketId> SubmitChecked(Flow& flow, const TaskSpec& spec, AppClass app_class) {
  absl::StatusOr<Queue*> found = FindOpenQueue(flow, spec.queue, app_class);
  if (!found.ok()) return found.status();
  Queue& queue = **found;
  App& app = *queue.app;
  if (app_class == AppClass::kLatencyCritical) {
    PrefetchSubmit(flow, queue, flow.tables.FindQuery(spec.query));
  }
  InsideSubmit inside(app);
  QueueHold hold(queue);
  if (!app.open.load() || !hold.IsStill(spec.queue)) return QueueReleased(spec.queue);
  if (app_class == AppClass::kLatencyCritical) PrefetchTask(app);
  if (!flow.accepting.load()) return RefusalOf(flow);
  const KernelDesc* kernel = flow.tables.FindKernel(spec.kernel);
  const int64_t block_tasks_max = flow.device->capabilities().block_tasks_max;
  if (absl::Status status = CheckSpec(spec, kernel, block_tasks_max); !status.ok()) return status;
  if (absl::Status status = CheckArrivalNow(flow, "A task", spec.arrival_ns); !status.ok()) {
    return status;
  }
  if (absl::Status status = CheckNext(spec, app_class); !status.ok()) return status;
  if (absl::Status status = CheckOwnInput(spec, app_class); !status.ok()) return status;
  if (app_class == AppClass::kBestEffort) {
    if (absl::Status status = CheckQuota(flow, app, spec.work.kind, kernel); !status.ok())
      return status;
  }
  absl::StatusOr<QuerySlot*> query = FindSpecQuery(flow, spec, queue);
  if (!query.ok()) return query.status();
  WaitHolds waits(flow.tables);
  if (absl::Status status = waits.Take(spec.wait_tickets); !status.ok()) return status;
  if (app_class == AppClass::kLatencyCritical) {
    if (const TicketId ticket = SubmitPieces(flow, queue, spec, kernel, *query)) {
      hold.Keep();
      waits.Keep();
      return ticket;
    }
  }
  absl::StatusOr<Task*> accepted = AcceptTask(flow, queue, spec, kernel, *query);
  if (!accepted.ok()) return accepted.status();
  hold.Keep();
  waits.Keep();
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

absl::Status CheckQueryBegin(const Flow& flow, const QueryBegin& begin) {
  if (absl::Status status = CheckArrivalNow(flow, "A query", begin.arrival_ns); !status.ok()) {
    return status;
  }
  return CheckInput("A query", begin.input_size);
}

}  // namespace

absl::StatusOr<TicketId> SubmitTask(Flow& flow, const TaskSpec& spec, AppClass app_class) {
  absl::StatusOr<TicketId> ticket = SubmitChecked(flow, spec, app_class);
  if (!ticket.ok()) CountRejected(flow, spec.queue);
  return ticket;
}

void CountRejected(Flow& flow, QueueId id) {
  Queue* const queue = flow.tables.FindQueue(id);
  if (queue == nullptr) return;
  InsideSubmit inside(*queue->app);
  const QueueHold hold(*queue);
  if (hold.IsStill(id)) queue->app->rejected.fetch_add(1, std::memory_order_relaxed);
}

absl::StatusOr<QueryId> SubmitQueryBegin(Flow& flow, QueueId id, const QueryBegin& begin) {
  absl::StatusOr<Queue*> found = FindOpenQueue(flow, id, AppClass::kLatencyCritical, true);
  if (!found.ok()) return found.status();
  App& app = *(*found)->app;
  InsideSubmit inside(app);
  const QueueHold hold(**found);
  if (!app.open.load() || !hold.IsStill(id)) return QueueReleased(id);
  if (!flow.accepting.load()) return RefusalOf(flow);
  if (absl::Status status = CheckQueryBegin(flow, begin); !status.ok()) return status;
  const TimeNs arrival = begin.arrival_ns == 0 ? flow.device->NowNs() : begin.arrival_ns;
  absl::StatusOr<QueryId> query = flow.tables.AllocateQuery(**found, arrival, begin.input_size);
  if (!query.ok()) return query.status();
  app.active_queries.fetch_add(1, std::memory_order_acq_rel);
  if (flow.HasEvents()) {  // saves reading the clock
    flow.EmitAt(flow.device->NowNs(), QueryBeginCalled{.query = *query,
                                                       .app = AppId{app.id.load()},
                                                       .queue = id,
                                                       .arrival_ns = arrival,
                                                       .input_size = begin.input_size});
  }
  flow.ring.Push(PackRing(RingTag::kQueryBegun, query->value));
  return *query;
}

absl::Status SubmitQueryEnd(Flow& flow, QueryId query) {
  QuerySlot* slot = flow.tables.FindQuery(query);
  if (slot == nullptr || !slot->open.exchange(false)) {
    return absl::InvalidArgumentError("The query was not begun or is ended already.");
  }
  if (flow.HasEvents()) {
    flow.EmitAt(flow.device->NowNs(), QueryEndCalled{.query = query,
                                                     .app = AppId{slot->state.app->id.load()},
                                                     .queue = QueueId{slot->queue->id.load()}});
  }
  const LaneIndex lane = slot->queue->lane.load(std::memory_order_relaxed);
  flow.ring.Push(PackRing(RingTag::kQueryEnded, query.value));
  if (lane != kNoLane) flow.device->FlushLane(lane);
  return absl::OkStatus();
}

void Collect(Flow& flow) {
  flow.inbox.Clear();
  uint64_t word = 0;
  while (!flow.inbox.full() && flow.ring.TryPop(word)) flow.inbox.Add(word);
}

}  // namespace gpushare::core
