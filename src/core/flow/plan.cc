// The snapshot of the flow and the call of the policy. See plan.h.

#include "src/core/flow/plan.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "src/core/base/tuning.h"
#include "src/core/flow/admit.h"
#include "src/core/flow/predict.h"
#include "src/core/seams/headroom.h"
#include "src/core/state/active_queries.h"

namespace gpushare::core {
namespace {

int ViewLcApps(Flow& flow) {
  for (int i = 0; i < flow.lc_app_count; ++i) {
    App& app = *flow.buffers.lc_owner[static_cast<size_t>(i)];
    LcAppView& view = flow.buffers.lc_apps[static_cast<size_t>(i)];
    view.app = AppId{app.id.load(std::memory_order_relaxed)};
    view.target_ns = app.options.target_ns;
    view.p99_bound = app.options.p99_bound;
    view.solo_ns = app.query_solo_ns;
    view.p99_alone_ns = app.options.p99_alone_ns;
    view.load = LoadOf(app, flow.now_ns);
    view.blocking_budget_ns = BlockingBudget(app.options.target_ns, app.options.p99_bound,
                                             app.options.p99_alone_ns, app.query_solo_ns);
    view.reserved_capsms = app.reserved_capsms;
    const int32_t active = app.active_queries.load(std::memory_order_acquire);
    view.active_queries =
        app.tasks_in_flight > 0 ? active : std::max(0, active - app.heads_waiting);
    view.tasks_in_flight = app.tasks_in_flight;
    view.idle_since_ns = app.idle_since_ns;
    view.main_kernel = app.main_kernel == nullptr ? KernelId{} : app.main_kernel->id;
  }
  return flow.lc_app_count;
}

// BE apps share by what they have had since they asked: who was not there has no claim to the time
// that others had meanwhile.
void BoundCredit(Flow& flow) {
  for (int i = 0; i < flow.be_app_count; ++i) {
    App& app = *flow.buffers.be_owner[static_cast<size_t>(i)];
    app.attained_ns = std::max(app.attained_ns, flow.attained_floor_ns - kFairCreditNs);
  }
}

int ViewBeApps(Flow& flow) {
  for (int i = 0; i < flow.be_app_count; ++i) {
    const App& app = *flow.buffers.be_owner[static_cast<size_t>(i)];
    BeAppView& view = flow.buffers.be_apps[static_cast<size_t>(i)];
    view.app = AppId{app.id.load(std::memory_order_relaxed)};
    view.quota_capsms = app.reserved_capsms;
    view.weight = app.options.weight;
    view.attained_ns = app.attained_ns;
    view.used_capsms = CapSmsOf(flow.ledger.UsedBy(static_cast<int>(app.slot)));
    view.packed = app.packed;
  }
  return flow.be_app_count;
}

int ViewQueries(Flow& flow) {
  int count = 0;
  for (const QueryState* query = flow.first_query; query != nullptr && count < kMaxActiveQueries;
       query = query->next) {
    QueryView& view = flow.buffers.queries[static_cast<size_t>(count++)];
    view.query = query->id;
    view.lc_app = query->app->plan_index;
    view.arrival_ns = query->arrival_ns;
    view.deadline_ns = query->deadline_ns;
    view.solo_ns = std::max(query->solo_ns, query->app->query_solo_ns);
    view.issued_ns = query->issued_ns;
    view.done_ns = query->done_ns;
  }
  return count;
}

void ViewTask(const Task& task, HeadView& view) {
  view.task = task.record.ticket;
  view.app_class = task.app->options.app_class;
  view.app = task.app->plan_index;
  view.queue = task.record.queue;
  view.query = task.record.query;
  view.kind = task.kind;
  view.kernel = task.kernel;
  view.kernel_index = task.kernel_row;
  view.sequence = task.sequence;
  view.ready_ns = task.ready_ns;
  view.ready_count = 1;
  view.blocks_left = task.blocks - task.blocks_done;
  view.resumed = task.record.launches > 0;
  view.evictable = task.eviction_p99_ns != kNever;
  // Opaque work and copies run on the stream they are given, wherever that is.
  view.confinable = task.kernel == nullptr || task.kernel->confinable;
  view.direction = task.kind == TaskKind::kMemcpy ? task.copy.direction : CopyDirection::kNone;
  view.pinned = task.copy.pinned;
  view.remaining = RemainingOf(task);
  view.eviction_ns = task.blocking_ns;
}

// LC tasks behind the head that may be launched in the same breath: no tickets to wait for, and the
// queue's window has room.
int32_t ReadyCount(const Queue& queue) {
  const int32_t room = kLcWindow - queue.in_flight.load(std::memory_order_acquire);
  int32_t count = 1;
  for (const Task* task = queue.head->next; task != nullptr && count < room; task = task->next) {
    if (task->wait_ticket_count != 0) break;
    ++count;
  }
  return count;
}

// Whether the planner may see the queue's head now.
bool Offered(const Queue& queue, bool latency_critical) {
  if (queue.head->state.load(std::memory_order_relaxed) != TaskState::kReady) return false;
  const int32_t in_flight = queue.in_flight.load(std::memory_order_acquire);
  // BE: stream order, one after another, since an eviction may leave a rest of the first.
  if (!latency_critical) return in_flight == 0;
  return in_flight < kLcWindow;
}

// The oldest heads of one class; insertion into a short sorted array.
using OldestHeads = std::array<const Queue*, kMaxHeads>;

int InsertHead(OldestHeads& oldest, int count, const Queue& queue) {
  int at = count;
  if (count == kMaxHeads) {
    if (oldest[kMaxHeads - 1]->head->sequence < queue.head->sequence) return count;
    at = kMaxHeads - 1;
  }
  for (; at > 0 && oldest[static_cast<size_t>(at - 1)]->head->sequence > queue.head->sequence;
       --at) {
    oldest[static_cast<size_t>(at)] = oldest[static_cast<size_t>(at - 1)];
  }
  oldest[static_cast<size_t>(at)] = &queue;
  return std::min(count + 1, kMaxHeads);
}

// LC first: held BE heads, however many and old, do not hide a query's head.
int ViewHeads(Flow& flow) {
  OldestHeads lc;  // entries behind the counts are never read
  OldestHeads be;
  int lc_count = 0;
  int be_count = 0;
  for (int i = 0; i < flow.backlog_count; ++i) {
    const Queue& queue = *flow.backlog[static_cast<size_t>(i)];
    const bool latency_critical = queue.app->options.app_class == AppClass::kLatencyCritical;
    if (!Offered(queue, latency_critical)) continue;
    if (latency_critical) {
      lc_count = InsertHead(lc, lc_count, queue);
    } else {
      be_count = InsertHead(be, be_count, queue);
    }
  }
  for (int i = 0; i < lc_count; ++i) {
    const Queue& queue = *lc[static_cast<size_t>(i)];
    HeadView& view = flow.buffers.heads[static_cast<size_t>(i)];
    ViewTask(*queue.head, view);
    view.ready_count = ReadyCount(queue);
  }
  const int count = std::min(lc_count + be_count, kMaxHeads);
  for (int i = lc_count; i < count; ++i) {
    ViewTask(*be[static_cast<size_t>(i - lc_count)]->head,
             flow.buffers.heads[static_cast<size_t>(i)]);
  }
  return count;
}

int ViewRunning(Flow& flow) {
  for (int i = 0; i < flow.running_be_count; ++i) {
    const Task& task = *flow.running_be[static_cast<size_t>(i)];
    RunningView& view = flow.buffers.running[static_cast<size_t>(i)];
    ViewTask(task, view.task);
    view.part_count = task.part_count;
    view.places = 0;
    int64_t spent_ns = 0;
    for (int p = 0; p < task.part_count; ++p) {
      const Part& part = task.parts[static_cast<size_t>(p)];
      PartView& out = view.parts[static_cast<size_t>(p)];
      out.place = part.place;
      out.lane = part.lane;
      out.workers = part.workers;
      out.form = part.form;
      out.launched_ns = part.launched_ns;
      out.evicting = WasTold(flow.gate, part);
      if (!out.evicting) view.places |= uint64_t{1} << part.place;
      const double share =
          static_cast<double>(flow.lanes.places()[static_cast<size_t>(part.place)].sms) /
          flow.device->capabilities().profile.sm_count;
      spent_ns += static_cast<int64_t>(static_cast<double>(flow.now_ns - part.launched_ns) * share);
    }
    view.task.remaining.duration_ns =
        std::max<int64_t>(0, view.task.remaining.duration_ns - spent_ns);
  }
  return flow.running_be_count;
}

void BuildSnapshot(Flow& flow) {
  PlanBuffers& buffers = flow.buffers;
  Snapshot& snapshot = buffers.snapshot;
  const DeviceCapabilities& capabilities = flow.device->capabilities();
  snapshot.now_ns = flow.now_ns;
  ++snapshot.plan_sequence;
  snapshot.sm_count = capabilities.profile.sm_count;
  snapshot.capsms_free = CapSmsOf(flow.ledger.FreeUnits());
  snapshot.queued_ns = flow.queued_ns;
  snapshot.quiesced = flow.quiesced.load();
  snapshot.return_hysteresis_ns = flow.options.be_return_hysteresis_ns;
  snapshot.partitions_available = capabilities.partitions && !flow.lanes.splits().empty();
  // Where a lane was found blocked, no plan counts on evicting: which lane a launch gets, and so
  // whether it can be evicted, is known after the plan.
  snapshot.eviction_available = capabilities.eviction && flow.lanes.lanes_blocked() == 0;
  snapshot.places = flow.lanes.places();
  snapshot.splits = flow.lanes.splits();
  snapshot.copies = flow.copies;
  snapshot.lc_apps =
      absl::MakeConstSpan(buffers.lc_apps.data(), static_cast<size_t>(ViewLcApps(flow)));
  BoundCredit(flow);
  snapshot.be_apps =
      absl::MakeConstSpan(buffers.be_apps.data(), static_cast<size_t>(ViewBeApps(flow)));
  const auto queries =
      absl::MakeSpan(buffers.queries.data(), static_cast<size_t>(ViewQueries(flow)));
  ComputeHeadrooms(queries, flow.queued_ns, flow.now_ns);
  snapshot.queries = queries;
  snapshot.heads = absl::MakeConstSpan(buffers.heads.data(), static_cast<size_t>(ViewHeads(flow)));
  snapshot.running =
      absl::MakeConstSpan(buffers.running.data(), static_cast<size_t>(ViewRunning(flow)));
}

}  // namespace

void MakePlan(Flow& flow) {
  flow.planned = false;
  if (!flow.dirty && flow.now_ns < flow.replan_at_ns) return;
  flow.dirty = false;
  PromoteHeads(flow);  // may finish tasks, and then asks for another plan
  const bool timed = !flow.device->capabilities().virtual_time;
  const auto begin =
      timed ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point();
  BuildSnapshot(flow);
  Plan& plan = flow.buffers.plan;
  plan.Clear();
  flow.policy->MakePlan(flow.buffers.snapshot, plan);
  // A time that has passed would ask again and again without any passing.
  flow.replan_at_ns = std::max(plan.replan_at_ns, flow.now_ns + 1);
  flow.planned = true;
  flow.counters.plans.fetch_add(1, std::memory_order_relaxed);
  if (timed) {
    flow.counters.plan_time.Add(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                    std::chrono::steady_clock::now() - begin)
                                    .count());
  }
}

}  // namespace gpushare::core
