// The snapshot of the flow and the call of the policy. See plan.h.

#include "src/core/flow/plan.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/core/base/application_call.h"
#include "src/core/base/ids.h"
#include "src/core/base/tuning.h"
#include "src/core/flow/learn/learn.h"
#include "src/core/flow/places/place_orders.h"
#include "src/core/flow/planning/head_views.h"
#include "src/core/flow/planning/partition_views.h"
#include "src/core/flow/planning/progress_plan.h"
#include "src/core/flow/planning/promote.h"
#include "src/core/flow/planning/yields.h"
#include "src/core/flow/verbs/late_queries.h"
#include "src/core/flow/verbs/launch_task.h"
#include "src/core/flow/verbs/predict_task.h"
#include "src/core/flow/verbs/running.h"
#include "src/core/queueing/headroom.h"
#include "src/core/state/backlog.h"
#include "src/core/state/fair_weight.h"
#include "src/core/state/query_waits.h"

namespace gpushare::core {
namespace {

// What the policy may know of each LC app; the evidence fills in the rest.
void ViewLcApps(Flow& flow) {
  flow.buffers.lc_apps.Clear();
  for (const App* const app : flow.lc_apps) {
    LcAppView& view = flow.buffers.lc_apps.Add();
    view.app = AppId{app->id.load(std::memory_order_relaxed)};
    view.promise = PromiseInForce(app->evidence, app->options.promise);
    view.reserved_capsms = app->reserved_capsms;
    view.packed = app->packed;
    view.priority = app->options.priority;
    view.active_queries = std::max(0, app->LoadingQueries() - app->queries_waiting);
    view.tasks_in_flight = app->tasks_in_flight;
  }
}

void UpdateFairWeights(Flow& flow) {
  bool any_quota = false;
  for (App* const app : flow.be_apps) {
    const BeAppView& view = flow.buffers.be_apps[app->plan_index];
    app->fair_weight = std::max(view.weight, kFairWeightMin);
    any_quota = any_quota || app->reserved_capsms.load(std::memory_order_relaxed) > 0;
  }
  if (!any_quota) return;
  std::array<int32_t, kMaxApps> quotas;
  std::array<double, kMaxApps> weights;
  const auto count = static_cast<size_t>(flow.be_apps.size());
  for (size_t a = 0; a < count; ++a) {
    const App& app = *flow.be_apps[static_cast<int>(a)];
    quotas[a] = app.reserved_capsms;
    weights[a] = app.fair_weight;
  }
  double capsms = flow.device->capabilities().profile.sm_count;
  for (const App* app : flow.lc_apps) capsms -= app->reserved_capsms;
  BoundByQuotas({quotas.data(), count}, capsms, {weights.data(), count});
  for (size_t a = 0; a < count; ++a) flow.be_apps[static_cast<int>(a)]->fair_weight = weights[a];
}

// Whether the app has work for the resource: on the device, at the head of a queue, or a region
// that could not begin.
bool HasWork(const Flow& flow, const App& app, size_t resource) {
  const ResourceUse& use = app.uses[resource];
  if (use.queues + use.tasks > 0) return true;
  return resource == kSmTime && app.region_wish.IsOpen(flow.now_ns);
}

// The largest weight of the apps that have work for the resource.
double HeaviestAtWork(const Flow& flow, size_t resource) {
  double heaviest = kFairWeightMin;
  for (const App* const app : flow.be_apps) {
    if (HasWork(flow, *app, resource)) heaviest = std::max(heaviest, app->fair_weight);
  }
  return heaviest;
}

// BE apps share each resource by their start tags on it. An app without work for it follows its
// virtual time, and gets no credit for its absence. One that has work, and was kept out, may catch
// up on at most kFairCreditNs of device time. All may lag by the same virtual time: where several
// are kept out for long, their order among each other stays that of their weights.
void BoundCredits(Flow& flow) {
  for (size_t resource = 0; resource < kSharedResources; ++resource) {
    const double now_ns = flow.virtual_time_ns[resource];
    if (now_ns <= 0) continue;  // nothing of BE apps ever used it
    const double credit_ns = kFairCreditNs / HeaviestAtWork(flow, resource);
    for (App* const app : flow.be_apps) {
      ResourceUse& use = app->uses[resource];
      if (use.attained_ns >= now_ns) continue;
      const double least_ns = HasWork(flow, *app, resource) ? now_ns - credit_ns : now_ns;
      use.attained_ns += std::max(0.0, least_ns - StartTag(*app, resource));
    }
  }
}

void ViewBeApps(Flow& flow) {
  UpdateFairWeights(flow);
  BoundCredits(flow);
  for (const App* const owner : flow.be_apps) {
    const App& app = *owner;
    BeAppView& view = flow.buffers.be_apps[app.plan_index];  // IndexApps wrote its beginning
    view.quota_capsms = app.reserved_capsms;
    view.fair_weight = app.fair_weight;
    for (size_t resource = 0; resource < kSharedResources; ++resource) {
      const ResourceUse& use = app.uses[resource];
      view.attained_ns[resource] =
          use.on_device_ns == 0 ? use.attained_ns : StartTag(app, resource);
      view.served_ns[resource] = use.tasks > 0 ? flow.now_ns : use.served_ns;
    }
    const auto used = flow.ledger.UsedBy(static_cast<int>(SmallSlot(view.app.value)));
    view.used_capsms = used == 0 ? 0 : CapSmsOf(used);
    view.packed = app.packed;
  }
}

void ViewQuery(const QueryState& query, QueryView& view) {
  view.query = query.id;
  view.lc_app = query.app->plan_index;
  view.arrival_ns = query.arrival_ns;
  view.deadline_ns = query.deadline_ns;
  // A prediction from the input size replaces the mean of the app's queries.
  const int64_t whole_ns = query.sized_ns > 0 ? query.sized_ns : query.app->evidence.query_solo_ns;
  view.solo_ns = std::max(query.solo_ns, whole_ns);
  view.issued_ns = query.issued_ns;
  view.done_ns = query.done_ns;
}

// The oldest queries of one app that a plan has not been shown yet.
struct QueriesLeft {
  QueryState* next = nullptr;  // null: none
  int32_t shown = 0;
};

// The first query from this one on that does not only wait; null: none.
QueryState* SkipWaiting(QueryState* query) {
  while (query != nullptr && OnlyWaits(*query)) query = query->next_of_app;
  return query;
}

// Merges the apps' lists by arrival. Each app shows as many as every other, where not all have
// room.
void ViewQueries(Flow& flow) {
  PlanBuffers& buffers = flow.buffers;
  buffers.queries.Clear();
  buffers.query_states.Clear();
  buffers.snapshot.queries_left_out = false;
  BoundedList<QueriesLeft, kMaxApps> apps;
  for (const App* const app : flow.lc_apps) {
    QueryState* const first = SkipWaiting(app->first_query);
    if (first != nullptr) apps.Add({.next = first});
  }
  if (apps.empty()) return;
  const int32_t most = std::min(kMaxActiveQueriesPerApp, kMaxActiveQueries / apps.size());
  for (;;) {
    QueriesLeft* first = nullptr;
    for (QueriesLeft& app : apps) {
      if (app.next == nullptr) continue;
      if (first == nullptr || app.next->arrival_ns < first->next->arrival_ns) first = &app;
    }
    if (first == nullptr) return;
    ViewQuery(*first->next, buffers.queries.Add());
    buffers.query_states.Add(first->next);
    first->next = SkipWaiting(first->next->next_of_app);
    if (first->next == nullptr || ++first->shown < most) continue;
    first->next = nullptr;
    buffers.snapshot.queries_left_out = true;
  }
}

void ViewPart(const Flow& flow, const Part& part, PartView& view) {
  view.place = part.place;
  view.lane = part.lane;
  view.workers = part.workers;
  view.form = part.form;
  view.launched_ns = part.launched_ns;
  view.evicting = IsLeaving(flow.gate, part);
}

void ViewRunning(Flow& flow, double tail_rate) {
  flow.buffers.running.Clear();
  for (Task* const task : flow.running_be) {
    RunningView& view = flow.buffers.running.Add();
    ViewBeTask(flow, *task, tail_rate, view.task);
    view.draining = task->progress.draining;
    int64_t spent_ns = 0;
    bool slice_counts = false;  // of slices behind each other one runs
    for (const Part& part : task->progress.parts) {
      PartView& out = view.parts.Add();
      ViewPart(flow, part, out);
      if (!out.evicting) view.places |= uint64_t{1} << part.place;
      TimeNs since_ns = part.launched_ns;
      if (part.form == Form::kSlice) {
        if (std::exchange(slice_counts, true)) continue;
        since_ns = std::max(since_ns, flow.lanes.lane(part.lane).progress_ns);
      }
      const int32_t sms = flow.lanes.place(part.place).sms;
      const double share =
          RoomSpeed(flow, *task, part) * sms / flow.device->capabilities().profile.sm_count;
      spent_ns += static_cast<int64_t>(static_cast<double>(flow.now_ns - since_ns) * share);
    }
    view.task.remaining.duration_ns =
        std::max<int64_t>(0, view.task.remaining.duration_ns - spent_ns);
  }
}

void BuildSnapshot(Flow& flow) {
  PlanBuffers& buffers = flow.buffers;
  Snapshot& snapshot = buffers.snapshot;
  const DeviceCapabilities& capabilities = flow.device->capabilities();
  snapshot.now_ns = flow.now_ns;
  ++snapshot.plan_sequence;
  snapshot.sm_count = capabilities.profile.sm_count;
  snapshot.eviction_write_ns = capabilities.profile.eviction_write_latency_ns;
  snapshot.cut_node_ns = capabilities.profile.cut_node_ns;
  snapshot.capsms_free = CapSmsOf(flow.ledger.FreeUnits());
  snapshot.quiesced = flow.quiesced.load();
  snapshot.return_hysteresis_ns = flow.options.be_return_hysteresis_ns;
  snapshot.partitions_available = capabilities.partitions && !flow.lanes.splits().empty();
  // With a blocked lane no plan counts on evictions, because the launch stage picks the lane after
  // the plan was made.
  snapshot.eviction_available = capabilities.eviction && flow.lanes.lanes_blocked() == 0;
  snapshot.queued_ns = flow.queued_ns - (snapshot.eviction_available ? flow.uncommitted_ns : 0);
  flow.lanes.named().ForgetRefusals(flow.now_ns);
  snapshot.places = flow.lanes.places();
  snapshot.splits = flow.lanes.splits();
  snapshot.copies = flow.copies;
  ViewLcApps(flow);
  ViewPartitions(flow);
  const EvidenceView evidence = ViewEvidence(flow);
  snapshot.in_force = evidence.in_force;
  snapshot.trials_open = evidence.trials_open;
  snapshot.be_paused_until_ns = evidence.be_paused_until_ns;
  snapshot.be_pauses_at_ns = evidence.be_pauses_at_ns;
  ViewBeApps(flow);
  ViewQueries(flow);
  ComputeHeadrooms(buffers.queries.span(), snapshot.queued_ns, flow.now_ns);
  ViewSerialHeadrooms(flow);
  ViewHeads(flow, evidence.tail_rate);
  ViewRunning(flow, evidence.tail_rate);
  NoteYields(flow);
  snapshot.lc_apps = buffers.lc_apps.span();
  snapshot.be_apps = buffers.be_apps.span();
  snapshot.queries = buffers.queries.span();
  snapshot.heads = HeadList(buffers.heads.span());
  snapshot.running = buffers.running.span();
}

// The policy's plan. If the policy threw, or leaves the device idle at a shutdown, the flow plans:
// the policy launches nothing, or none of its last launches could be done.
void AskPolicy(Flow& flow) {
  Plan& plan = flow.buffers.plan;
  const std::string thrown = ThrownBy([&] { flow.policy->MakePlan(flow.buffers.snapshot, plan); });
  if (!thrown.empty()) {
    plan.Clear();
    for (LcRoute& route : plan.routes) route.evict_overlapping = true;
    if (!std::exchange(flow.policy_threw, true)) {
      try {
        flow.reports.push_back(absl::StrCat(
            "The policy '", flow.policy->name(), "' threw ", thrown,
            ". The library plans without it where it throws; further exceptions are not logged."));
      } catch (const std::bad_alloc&) {  // for the sentence
      }
    }
  }
  if (flow.plan_stalled) plan.launches.Clear();
  const bool completes = !flow.accepting.load() && plan.launches.empty();
  if (!thrown.empty() || completes) PlanForProgress(flow);
}

}  // namespace

void MakePlan(Flow& flow) {
  flow.planned = false;
  // A caller may ask for a region again and again; plans for that alone have a distance.
  if (flow.regions_refused.exchange(0, std::memory_order_relaxed) > 0) {
    flow.replan_at_ns = std::min(flow.replan_at_ns, flow.planned_ns + kRegionPlanNs);
  }
  if (!flow.dirty && flow.now_ns < flow.replan_at_ns) return;
  flow.dirty = false;
  flow.planned_ns = flow.now_ns;
  // Both may finish tasks, and then ask for another plan.
  const TimeNs drop_at_ns = DropLateQueries(flow);
  PromoteHeads(flow);
  FindYielding(flow);
  const bool timed = !flow.device->capabilities().virtual_time;
  const auto begin =
      timed ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point();
  BuildSnapshot(flow);
  Plan& plan = flow.buffers.plan;
  plan.Clear();
  AskPolicy(flow);
  EvictYielding(flow);
  AskForPlaces(flow);
  LearnPlan(flow);
  // A wake-up time in the past would replan forever; the clock must advance.
  flow.replan_at_ns = std::max(std::min(plan.replan_at_ns, drop_at_ns), flow.now_ns + 1);
  flow.planned = true;
  if (plan.dropped > 0) {
    flow.counters.plan_entries_dropped.fetch_add(plan.dropped, std::memory_order_relaxed);
  }
  flow.counters.plans.fetch_add(1, std::memory_order_relaxed);
  if (timed) {
    flow.counters.plan_time.Add(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                    std::chrono::steady_clock::now() - begin)
                                    .count());
  }
}

}  // namespace gpushare::core
