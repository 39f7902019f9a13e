// What applications register, submit and ask: registration, tickets, statistics. See scheduler.h.

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "src/core/base/exhaustion.h"
#include "src/core/base/ids.h"
#include "src/core/base/saturating.h"
#include "src/core/base/tuning.h"
#include "src/core/checks/kernel_check.h"
#include "src/core/flow/deferred_calls.h"
#include "src/core/flow/driver.h"
#include "src/core/flow/entry/region.h"
#include "src/core/flow/entry/submit_check.h"
#include "src/core/flow/flow_check.h"
#include "src/core/flow/learn/learn.h"
#include "src/core/flow/places/partitioning.h"
#include "src/core/flow/places/place_orders.h"
#include "src/core/flow/scheduler.h"
#include "src/core/flow/submit.h"
#include "src/core/flow/verbs/accept.h"
#include "src/core/flow/verbs/evict.h"
#include "src/core/flow/verbs/finish.h"
#include "src/core/flow/verbs/queries/jobs.h"
#include "src/core/flow/verbs/request.h"
#include "src/core/log/events.h"
#include "src/core/log/open_metrics.h"
#include "src/core/queueing/queue_tail.h"
#include "src/core/state/backlog.h"
#include "src/core/state/hold_time.h"

namespace gpushare::core {
namespace {

absl::Status KeepsNoReservation(absl::string_view policy, const App& app, int32_t capsms) {
  const bool lc = app.options.app_class == AppClass::kLatencyCritical;
  return absl::FailedPreconditionError(
      absl::StrCat("The policy '", policy, "' keeps no reservations and quotas, and ",
                   lc ? "LC app '" : "BE app '", app.options.name, "' asks for ", capsms,
                   " CapSMs; adaptive, smguard and tacker keep them."));
}

absl::Status NoApp(AppId app) {
  return absl::InvalidArgumentError(
      absl::StrCat("App ", app.value, " does not exist or is released."));
}

absl::Status NoTicket(TicketId ticket) {
  return StatusOf(absl::StatusCode::kInvalidArgument, [&] {
    return absl::StrCat("Ticket ", ticket.value, " does not exist or is released.");
  });
}

absl::Status RefuseAfterShutdown(const Driver& driver) {
  if (!driver.shut_down.load()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "The runtime is shut down and takes no more apps, queues and kernels.");
}

// Whether the query has had no work since `since_ns`. Its begin may be in the ring yet; then it is
// new.
bool IsQuiet(const QuerySlot& slot, TimeNs since_ns) {
  const QueryState& query = slot.state;
  return query.began && query.tasks_finished == slot.tasks_submitted.load() &&
         query.quiet_since_ns <= since_ns;
}

void ViewTokens(const App& app, AppGuarantee& guarantee) {
  const RecentLatencies& first = app.evidence.first_tokens;
  const RecentLatencies& distances = app.evidence.token_distances;
  guarantee.token_streams = app.token_streams;
  guarantee.first_tokens = first.count();
  guarantee.ttft_p50_ns = static_cast<int64_t>(first.Quantile(0.5));
  guarantee.ttft_p99_ns = static_cast<int64_t>(first.Quantile(0.99));
  guarantee.token_distances = distances.count();
  guarantee.tbt_p50_ns = static_cast<int64_t>(distances.Quantile(0.5));
  guarantee.tbt_p99_ns = static_cast<int64_t>(distances.Quantile(0.99));
}

void ViewShare(const Flow& flow, const App& app, AppGuarantee& guarantee) {
  if (!flow.PlanInForce()) return;
  const RealTimeShare& share = app.real_time;
  guarantee.partition = share.partition;
  guarantee.response_bound_ns = share.response_ns;
  guarantee.response_ns_max = share.response_ns_max;
  guarantee.jobs = share.jobs;
  guarantee.deadlines_missed = share.deadlines_missed;
  guarantee.overruns = share.overruns;
  if (share.partition < 0) return;
  guarantee.partition_sms = flow.lanes.place(flow.partitions.partitions[share.partition].place).sms;
}

void EmitMarks(const Flow& flow, TicketId ticket, AppId app,
               absl::Span<const TokenStreamId> streams) {
  const TimeNs now_ns = flow.device->NowNs();
  for (size_t first = 0; first < streams.size(); first += TokensMarked::kStreams) {
    TokensMarked marked{.ticket = ticket, .app = app, .streams = {}};
    const auto some = streams.subspan(first, TokensMarked::kStreams);
    std::copy(some.begin(), some.end(), marked.streams.begin());
    flow.EmitAt(now_ns, marked);
  }
}

LatencySummary Summarise(const LatencyHistogram& histogram) {
  return {histogram.Count(), histogram.Quantile(0.5), histogram.Quantile(0.99), histogram.Max()};
}

}  // namespace

// --- registration ---

absl::StatusOr<AppId> Scheduler::CreateApp(const AppOptions& stated) {
  if (absl::Status status = RefuseAfterShutdown(*driver_); !status.ok()) return status;
  AppOptions options = stated;
  const bool periodic = options.real_time.IsPeriodic();
  if (periodic && options.promise.target_ns == 0) {
    options.promise.target_ns = options.real_time.Deadline();
  }
  Flow& flow = driver_->flow;
  const FlowChange change(*driver_);
  absl::StatusOr<App*> app = flow.tables.CreateApp(options);
  if (!app.ok()) return app.status();
  flow.ledger.AddApp(static_cast<int>((*app)->slot), options.app_class);
  LearnApp(**app, flow.device->NowNs());
  flow.dirty = true;
  const AppId id{(*app)->id.load()};
  if (options.app_class == AppClass::kLatencyCritical) {
    // Without memory for it, sizes of inputs tell nothing of the app's queries.
    CatchExhaustion([&] {
      flow.model->AddApp(id, options.name);
      return absl::OkStatus();
    }).IgnoreError();
  }
  flow.EmitAt(flow.device->NowNs(), AppCreated{.app = id,
                                               .app_class = options.app_class,
                                               .promise = options.promise,
                                               .idle_timeout_ns = options.idle_timeout_ns,
                                               .priority = static_cast<int8_t>(options.priority),
                                               .bounds_tokens = options.bounds_tokens});
  return id;
}

absl::Status Scheduler::UpdateApp(AppId id, const AppUpdate& update) {
  Flow& flow = driver_->flow;
  const FlowChange change(*driver_);
  App* const app = flow.tables.FindApp(id);
  if (app == nullptr) return NoApp(id);
  const Promise before = app->options.promise;
  if (absl::Status status = flow.tables.UpdateApp(*app, update); !status.ok()) return status;
  const TimeNs now_ns = flow.device->NowNs();
  LearnAppUpdated(*app, before, now_ns);
  flow.dirty = true;
  flow.EmitAt(now_ns, AppUpdated{.app = id,
                                 .app_class = app->options.app_class,
                                 .promise = app->options.promise,
                                 .weight = app->options.weight,
                                 .priority = static_cast<int8_t>(app->options.priority)});
  return absl::OkStatus();
}

absl::Status Scheduler::ReleaseApp(AppId id) {
  Flow& flow = driver_->flow;
  const FlowChange change(*driver_);
  App* app = flow.tables.FindApp(id);
  if (app == nullptr) return NoApp(id);
  if (absl::Status status = flow.tables.CloseApp(*app); !status.ok()) return status;
  const int64_t open = app->TasksOpen() + app->active_queries.load();
  if (open != 0) {
    flow.tables.ReopenApp(*app);
    return absl::FailedPreconditionError(absl::StrCat("App '", app->options.name, "' has ", open,
                                                      " tasks or queries that are not complete."));
  }
  if (const int awaited = flow.tables.SlotsAwaited(*app); awaited != 0) {
    flow.tables.ReopenApp(*app);
    return absl::FailedPreconditionError(
        absl::StrCat("App '", app->options.name, "' has ", awaited,
                     " tickets that tasks of other apps wait for, and the scheduler has not seen "
                     "these tasks yet. Try again later."));
  }
  flow.ledger.RemoveApp(static_cast<int>(app->slot));
  flow.lc_reserved_capsms = flow.ledger.ReservedCapSms();
  flow.token_streams.Drop(*app);
  flow.tables.FreeApp(*app);
  flow.dirty = true;
  return absl::OkStatus();
}

absl::StatusOr<QueueId> Scheduler::CreateQueue(AppId id) {
  if (absl::Status status = RefuseAfterShutdown(*driver_); !status.ok()) return status;
  MutexLock lock(&driver_->tick_mutex);
  App* app = driver_->flow.tables.FindApp(id);
  if (app == nullptr || !app->open.load()) return NoApp(id);
  absl::StatusOr<Queue*> queue = driver_->flow.tables.CreateQueue(*app);
  if (!queue.ok()) return queue.status();
  return QueueId{(*queue)->id.load()};
}

absl::Status Scheduler::ReleaseQueue(QueueId id) {
  MutexLock lock(&driver_->tick_mutex);
  Queue* queue = driver_->flow.tables.FindQueue(id);
  if (queue == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("Queue ", id.value, " does not exist or is released."));
  }
  return driver_->flow.tables.FreeQueue(*queue);
}

namespace {

// Prepares the staged kernel, and takes over what the device made of a graph and measured of it.
absl::Status Prepare(Device& device, KernelDesc& kernel) {
  absl::Status status = device.PrepareKernel(kernel);
  if (PtxCode* const ptx = kernel.ptx(); ptx != nullptr) ptx->DropTexts();
  GraphCode* const graph = kernel.graph();
  if (!status.ok() || graph == nullptr) return status;
  graph->function_images.clear();
  graph->cut = device.CutOf(kernel);
  kernel.evictable = kernel.segments() > 1;
  if (graph->measure_places && kernel.simulation.speed.empty()) {
    const absl::Span<const SpeedPoint> speeds = device.SpeedsOf(kernel.id);
    kernel.simulation.speed.assign(speeds.begin(), speeds.end());
  }
  return status;
}

// Whether a task may be the node. Its submit checks nothing any more.
bool IsLaunchable(const Flow& flow, const GraphPiece& node) {
  TaskSpec spec;
  spec.work.block_tasks = node.block_tasks;
  spec.work.grid = node.grid;
  spec.work.arguments = node.arguments.data();
  spec.work.arguments_bytes = node.arguments.size();
  // Larger arguments have a bounded pool of slots, which a burst of queries would empty.
  return node.arguments.size() <= kInlineArgumentBytes &&
         CheckSpec(spec, flow.tables.FindKernel(node.kernel),
                   flow.device->capabilities().block_tasks_max)
             .ok();
}

// The kernels at whose nodes a graph may be cut: those of the fused kernels that may be launched.
std::vector<NodeKernel> NodeKernelsOf(const Flow& flow) {
  const Tables& tables = flow.tables;
  const int64_t cut_node_ns = flow.device->capabilities().profile.cut_node_ns;
  std::vector<NodeKernel> kernels;
  for (int i = 0; i < tables.fused_count(); ++i) {
    const FusedKernelDesc& fused = tables.fused(i);
    if (!tables.HasItsParts(fused)) continue;
    for (const KernelId part : {fused.tensor_part, fused.cuda_part}) {
      AddNodeKernel(fused, part, tables.FindKernel(part)->name, cut_node_ns, kernels);
    }
  }
  return kernels;
}

// Whether its registration needs every place: the application's callback runs in each place then
// and never later, and so does a measurement.
bool NeedsEveryPlace(const Flow& flow, const KernelDesc& kernel) {
  const GraphCode* const graph = kernel.graph();
  return graph != nullptr && kernel.confinable && !flow.lanes.named().at_once() &&
         (graph->capture != nullptr || graph->measure_places);
}

// The kernel in its slot. The place of a released kernel is taken only where no launch was ever
// given up: such a one may still run it.
absl::StatusOr<KernelDesc*> Stage(Driver& driver, KernelDesc desc) {
  Flow& flow = driver.flow;
  MutexLock lock(&driver.tick_mutex);
  const bool reuse = flow.counters.hung.load() == 0 && !flow.device_lost.load();
  absl::StatusOr<KernelDesc*> kernel = flow.tables.StageKernel(std::move(desc), reuse);
  if (!kernel.ok() || flow.tables.StagedOver() == nullptr) return kernel;
  flow.device->ReleaseKernel((*kernel)->id);
  return kernel;
}

// As Stage: a launch that was given up may still run the fused kernel whose place it would be. The
// device may prepare the new one at once, because nobody launches the old one any more.
absl::StatusOr<KernelId> FusedPlaceFor(Driver& driver, const std::string& name) {
  Flow& flow = driver.flow;
  const FlowChange change(driver);
  flow.fused_version = kNoFusedVersion;
  return flow.tables.TakeFusedPlace(name,
                                    flow.counters.hung.load() == 0 && !flow.device_lost.load());
}

void ReleaseRetiredGraphs(Driver& driver) {
  Flow& flow = driver.flow;
  if (flow.device_lost.load()) return;
  for (uint32_t id = 1; id <= static_cast<uint32_t>(flow.tables.kernels()); ++id) {
    if (flow.tables.IsRetired(KernelId{id}) &&
        flow.tables.FindKernel(KernelId{id})->ptx() != nullptr) {
      flow.device->RetireKernel(KernelId{id});
    }
    if (!flow.tables.UseOf(KernelId{id}).TakeIdle()) continue;
    flow.device->ReleaseKernel(KernelId{id});
    if (!NeedsEveryPlace(flow, *flow.tables.FindKernel(KernelId{id}))) continue;
    const MutexLock lock(&driver.tick_mutex);
    flow.lanes.named().KeepAll(false);
  }
}

// Holds every place from before the graph is prepared until Keep, or for good.
class EveryPlace {
 public:
  EveryPlace(Driver& driver, const KernelDesc& kernel)
      : driver_(driver), holds_(NeedsEveryPlace(driver.flow, kernel)) {
    if (!holds_) return;
    KeepAll(true);
    MakeEveryPlace(driver_.flow, driver_.tick_mutex);
  }
  ~EveryPlace() {
    if (holds_) KeepAll(false);
  }
  EveryPlace(const EveryPlace&) = delete;
  EveryPlace& operator=(const EveryPlace&) = delete;
  // The kernel is registered: the places stay until it is released.
  void Keep() { holds_ = false; }

 private:
  void KeepAll(bool keep) {
    const MutexLock lock(&driver_.tick_mutex);
    driver_.flow.lanes.named().KeepAll(keep);
  }

  Driver& driver_;
  bool holds_;
};

}  // namespace

void Scheduler::RetireKernel(KernelId id) {
  const KernelDesc* const kernel = FindKernel(id);
  if (kernel == nullptr) return;
  if (kernel->graph() != nullptr) {
    driver_->flow.tables.UseOf(id).Retire();
    RetireParts(kernel->graph()->pieces);
  }
  driver_->flow.tables.RetireKernel(id);
}

void Scheduler::RetireFusedKernel(KernelId id) { driver_->flow.tables.RetireFusedKernel(id); }

absl::StatusOr<KernelId> Scheduler::RegisterKernel(KernelDesc desc) {
  if (absl::Status status = RefuseAfterShutdown(*driver_); !status.ok()) return status;
  Flow& flow = driver_->flow;
  // Checked before the device sees it, and again with what the device says (StageKernel).
  KernelDesc as_given = desc;
  FillUnknown(as_given);
  if (absl::Status status = CheckKernel(as_given); !status.ok()) return status;
  MutexLock one_at_a_time(&driver_->registration_mutex);
  if (absl::Status status = flow.device->DescribeKernel(desc); !status.ok()) return status;
  const bool graph = desc.kind() == TaskKind::kGraph;
  ReleaseRetiredGraphs(*driver_);
  if (graph && desc.solo_hint_ns == 0) {
    // How long the graph took in earlier runs says how many of its nodes are a segment.
    MutexLock lock(&driver_->tick_mutex);
    desc.solo_hint_ns = flow.model->durations().LearnedSoloNs(desc.name);
  }
  FillUnknown(desc);
  const bool may_be_cut = graph && desc.graph()->MayBeCutAtNodes();
  absl::StatusOr<KernelId> id = AddKernel(std::move(desc));
  if (!id.ok() || !may_be_cut) return id;
  const absl::Status cut = CatchExhaustion([&] { return CutAtNodes(*id); });
  // The cut is optional. But a device that is lost, or that still runs the graph's nodes, cannot
  // have the graph either.
  if (IsDeviceLost(cut) || absl::IsDeadlineExceeded(cut)) {
    RetireKernel(*id);
    return cut;
  }
  return id;
}

absl::StatusOr<KernelId> Scheduler::AddKernel(KernelDesc desc) {
  Flow& flow = driver_->flow;
  EveryPlace places(*driver_, desc);
  absl::StatusOr<KernelDesc*> kernel = Stage(*driver_, std::move(desc));
  if (!kernel.ok()) return kernel.status();
  const KernelId id = (*kernel)->id;
  // Modules and graphs take tens of milliseconds: plans are made meanwhile.
  absl::Status status = CatchExhaustion([&] { return Prepare(*flow.device, **kernel); });
  if (status.ok()) status = PublishStaged(**kernel);
  if (!status.ok()) {
    flow.tables.DropStagedKernel();
    return status;
  }
  places.Keep();
  return id;
}

absl::Status Scheduler::CutAtNodes(KernelId graph) {
  Flow& flow = driver_->flow;
  const KernelDesc& kernel = *FindKernel(graph);
  absl::StatusOr<std::vector<NodePiece>> made =
      flow.device->CutAtNodes(kernel, NodeKernelsOf(flow));
  if (!made.ok()) return made.status();
  const auto parts = std::count_if(made->begin(), made->end(),
                                   [](const NodePiece& piece) { return piece.part.has_value(); });
  if (made->size() > size_t{kMaxPieces}) return absl::OkStatus();
  if (flow.tables.KernelSlotsLeft() - parts < kKernelSlotsKept) return absl::OkStatus();
  std::vector<GraphPiece> pieces;
  pieces.reserve(made->size());  // a part that is registered has its place
  absl::Cleanup retire = [&] { RetireParts(pieces); };
  for (NodePiece& piece : *made) {
    if (piece.piece.is_node && !IsLaunchable(flow, piece.piece)) return absl::OkStatus();
    if (piece.part.has_value()) {
      const absl::StatusOr<KernelId> part = AddKernel(*std::move(piece.part));
      if (!part.ok()) {
        return IsDeviceLost(part.status()) ? part.status() : absl::OkStatus();
      }
      piece.piece.kernel = *part;
    }
    pieces.push_back(std::move(piece.piece));
  }
  std::move(retire).Cancel();
  flow.tables.SetPieces(graph, std::move(pieces));
  return absl::OkStatus();
}

void Scheduler::RetireParts(absl::Span<const GraphPiece> pieces) {
  for (const GraphPiece& piece : pieces) {
    if (!piece.is_node) RetireKernel(piece.kernel);
  }
}

absl::Status Scheduler::PublishStaged(const KernelDesc& kernel) {
  const FlowChange change(*driver_);
  absl::Status status = CatchExhaustion([&] {
    driver_->flow.model->AddKernel(kernel);
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  Tables& tables = driver_->flow.tables;
  const KernelId id = kernel.id;
  const bool replaces = tables.StagedOver() != nullptr;
  tables.PublishKernel();
  if (replaces) LearnKernelReplaced(driver_->flow, id);
  return status;
}

const KernelDesc* Scheduler::FindKernel(KernelId id) const {
  return driver_->flow.tables.FindKernel(id);
}

absl::StatusOr<KernelId> Scheduler::RegisterFusedKernel(FusedKernelDesc desc) {
  if (absl::Status status = RefuseAfterShutdown(*driver_); !status.ok()) return status;
  Flow& flow = driver_->flow;
  if (absl::Status status = flow.tables.CheckFusedKernel(desc); !status.ok()) return status;
  MutexLock one_at_a_time(&driver_->registration_mutex);
  const absl::StatusOr<KernelId> id = FusedPlaceFor(*driver_, desc.name);
  if (!id.ok()) return id.status();
  desc.id = *id;
  if (absl::Status status = flow.device->PrepareFusedKernel(desc); !status.ok()) return status;
  desc.blocks_per_sm = std::max(1, desc.blocks_per_sm);
  const FlowChange change(*driver_);
  absl::Status known = CatchExhaustion([&] {
    flow.model->AddFusedKernel(desc);
    return absl::OkStatus();
  });
  if (!known.ok()) return known;
  absl::StatusOr<FusedKernelDesc*> fused = flow.tables.AddFusedKernel(std::move(desc));
  if (!fused.ok()) return fused.status();
  flow.fused_version = kNoFusedVersion;
  flow.dirty = true;
  return (*fused)->id;
}

uint64_t Scheduler::BlockedLanes() const {
  MutexLock lock(&driver_->tick_mutex);
  return driver_->flow.lanes.blocked_lanes();
}

absl::Status Scheduler::ReserveCapSm(const ReservationOptions& options) {
  Flow& flow = driver_->flow;
  const FlowChange change(*driver_);
  App* app = flow.tables.FindApp(options.app);
  if (app == nullptr) return NoApp(options.app);
  if (options.capsms > 0 && !flow.policy->properties().keeps_reservations) {
    return KeepsNoReservation(flow.policy->name(), *app, options.capsms);
  }
  const int slot = static_cast<int>(app->slot);
  absl::Status status =
      flow.ledger.Reserve(slot, app->options.name, options.capsms, options.packed);
  if (!status.ok()) return status;
  app->reserved_capsms = flow.ledger.ReservationOf(slot);
  app->packed = options.packed;
  flow.lc_reserved_capsms = flow.ledger.ReservedCapSms();
  flow.dirty = true;
  flow.EmitAt(flow.device->NowNs(), QuotaChanged{.app = options.app,
                                                 .app_class = app->options.app_class,
                                                 .capsms = app->reserved_capsms,
                                                 .packed = options.packed});
  return absl::OkStatus();
}

absl::StatusOr<PartitionSummary> Scheduler::PlanPartitions(const PartitionPlanner& planner,
                                                           const PartitionOptions& options) {
  if (absl::Status status = RefuseAfterShutdown(*driver_); !status.ok()) return status;
  Flow& flow = driver_->flow;
  MutexLock one_at_a_time(&driver_->registration_mutex);
  absl::StatusOr<PartitionQuestion> question;
  {
    const MutexLock lock(&driver_->tick_mutex);
    if (!flow.policy->properties().uses_partitions) {
      return absl::FailedPreconditionError(
          absl::StrCat("The policy '", flow.policy->name(),
                       "' uses no partitions; set the policy 'partitioned' first."));
    }
    question = RequestOf(flow, options);
  }
  if (!question.ok()) return question.status();
  PartitionLayout layout;
  NamedPartitions named;
  if (!question->request.jobs.empty()) {
    absl::StatusOr<PartitionLayout> planned = planner.Plan(question->request);
    if (!planned.ok()) return planned.status();
    if (!planned->admitted) return absl::ResourceExhaustedError(planned->reason);
    layout = *std::move(planned);
    {
      const MutexLock lock(&driver_->tick_mutex);
      absl::StatusOr<NamedPartitions> places = NamePartitions(flow, layout);
      if (!places.ok()) return places.status();
      named = *places;
    }
    if (absl::Status status = MakePartitions(flow, driver_->tick_mutex, named); !status.ok()) {
      return status;
    }
  }
  const FlowChange change(*driver_);
  return Publish(flow, *question, layout, named, options);
}

absl::Status Scheduler::SetPolicy(std::unique_ptr<Policy> policy) {
  if (policy == nullptr) return absl::InvalidArgumentError("There is no policy to set.");
  const FlowChange change(*driver_);
  if (!policy->properties().keeps_reservations) {
    Tables& tables = driver_->flow.tables;
    for (int slot = 0; slot < tables.app_slots(); ++slot) {
      const App& app = tables.app_slot(slot);
      const int32_t capsms = app.reserved_capsms.load();
      if (app.id.load() != 0 && capsms > 0) return KeepsNoReservation(policy->name(), app, capsms);
    }
  }
  driver_->flow.policy.swap(policy);
  driver_->flow.policy_threw = false;
  FollowPolicy(driver_->flow);
  FollowPlan(driver_->flow);
  driver_->flow.dirty = true;
  return absl::OkStatus();
}

void Scheduler::ChangeModel(absl::FunctionRef<void()> change) {
  const FlowChange lock(*driver_);
  change();
  driver_->flow.dirty = true;
}

void Scheduler::ReadModel(
    absl::FunctionRef<void(const CostModel&, absl::Span<const SplitView>)> read) {
  const MutexLock lock(&driver_->tick_mutex);
  read(*driver_->flow.model, driver_->flow.lanes.splits());
}

// --- submit ---

absl::StatusOr<QueryId> Scheduler::BeginQuery(QueueId queue, TimeNs arrival_ns, double input_size) {
  absl::StatusOr<QueryId> query = SubmitQueryBegin(driver_->flow, queue, {arrival_ns, input_size});
  driver_->Wake();
  return query;
}

absl::Status Scheduler::EndQuery(QueryId query) {
  absl::Status status = SubmitQueryEnd(driver_->flow, query);
  driver_->Wake();
  return status;
}

absl::StatusOr<int32_t> Scheduler::AbandonQueries(AppId id, int64_t idle_ns) {
  Flow& flow = driver_->flow;
  const FlowChange change(*driver_);  // no query ends meanwhile but by its caller
  flow.now_ns = flow.device->NowNs();
  App* const app = flow.tables.FindApp(id);
  if (app == nullptr) return NoApp(id);
  int32_t abandoned = flow.token_streams.Abandon(*app, idle_ns, flow.now_ns);
  for (int i = 0; i < flow.tables.query_slots_used(); ++i) {
    QuerySlot& slot = flow.tables.query_slot(i);
    if (!slot.open.load(std::memory_order_acquire) || slot.state.app != app) continue;
    if (idle_ns > 0 && !IsQuiet(slot, flow.now_ns - idle_ns)) continue;
    if (!slot.open.exchange(false)) continue;  // its caller ends it now
    slot.state.abandoned = true;
    flow.ring.Push(PackRing(RingTag::kQueryEnded, slot.state.id.value));
    ++abandoned;
  }
  return abandoned;
}

absl::StatusOr<TokenStreamId> Scheduler::BeginTokenStream(AppId id, TimeNs arrival_ns) {
  Flow& flow = driver_->flow;
  const TimeNs now_ns = flow.device->NowNs();
  if (absl::Status status = CheckArrival("A token stream", arrival_ns, now_ns); !status.ok()) {
    return status;
  }
  auto slots = flow.token_streams.MakeSlots();  // before the lock
  MutexLock lock(&driver_->tick_mutex);
  flow.token_streams.Use(slots);
  App* const app = flow.tables.FindApp(id);
  if (app == nullptr) return NoApp(id);
  if (app->options.app_class != AppClass::kLatencyCritical) {
    return absl::InvalidArgumentError(
        absl::StrCat("App '", app->options.name, "' is best-effort and has no token streams."));
  }
  const TimeNs arrives_ns = arrival_ns == 0 ? now_ns : arrival_ns;
  absl::StatusOr<TokenStreamId> stream = flow.token_streams.Begin(*app, arrives_ns, now_ns);
  if (stream.ok() && flow.HasEvents()) {
    flow.EmitAt(flow.device->NowNs(),
                TokenStreamBegun{.stream = *stream, .app = id, .arrival_ns = arrives_ns});
  }
  return stream;
}

absl::Status Scheduler::MarkTokens(absl::Span<const TokenStreamId> streams, TicketId ticket) {
  Flow& flow = driver_->flow;
  MutexLock lock(&driver_->tick_mutex);
  Task* const task = flow.tables.FindTicket(ticket);
  if (task == nullptr) return NoTicket(ticket);
  const AppId app = task->record.app;
  absl::Status status = flow.token_streams.Mark(streams, *task);
  if (status.ok() && flow.HasEvents()) EmitMarks(flow, ticket, app, streams);
  return status;
}

absl::Status Scheduler::EndTokenStream(TokenStreamId stream) {
  Flow& flow = driver_->flow;
  MutexLock lock(&driver_->tick_mutex);
  const App* const app = flow.token_streams.AppOf(stream);
  absl::Status status = flow.token_streams.End(stream);
  if (status.ok() && flow.HasEvents()) {
    flow.EmitAt(flow.device->NowNs(),
                TokenStreamEnded{.stream = stream, .app = AppId{app->id.load()}});
  }
  return status;
}

absl::StatusOr<TicketId> Scheduler::SubmitLc(const TaskSpec& spec) {
  absl::StatusOr<TicketId> ticket = SubmitTask(driver_->flow, spec, AppClass::kLatencyCritical);
  driver_->Wake();
  return ticket;
}

absl::StatusOr<TicketId> Scheduler::SubmitBe(const TaskSpec& spec) {
  absl::StatusOr<TicketId> ticket = SubmitTask(driver_->flow, spec, AppClass::kBestEffort);
  driver_->Wake();
  return ticket;
}

absl::StatusOr<TicketId> Scheduler::RegionBegin(QueueId queue, const RegionSpec& spec,
                                                void** stream, int64_t wait_ns) {
  const Flow& flow = driver_->flow;
  RegionSpec asked = spec;
  asked.called_ns = flow.device->NowNs();
  const TimeNs deadline_ns = SaturatingAdd(asked.called_ns, wait_ns);
  for (;;) {
    absl::StatusOr<TicketId> region = SubmitRegionBegin(driver_->flow, queue, asked, stream);
    // A region that may not begin yet is asked for again; that is no refusal.
    if (!region.ok() && !absl::IsUnavailable(region.status())) CountRejected(queue);
    // The thread has to know when it is overdue; and a Tick beside a quiesce may have counted one
    // that is refused as open.
    const bool asks_for_plan = flow.regions_refused.load(std::memory_order_relaxed) > 0;
    if (region.ok() || asks_for_plan || driver_->waiters.AnyFor(Awaited::kQuiet)) driver_->Wake();
    if (region.ok() || !absl::IsUnavailable(region.status())) return region;
    const TimeNs now_ns = flow.device->NowNs();
    if (flow.device_lost.load() || now_ns >= deadline_ns) return region;
    const TimeNs look_ns = std::min(deadline_ns, now_ns + kRegionLookNs);
    const absl::Status passed =
        driver_->DriveUntil([] { return false; }, look_ns, "region begin", Awaited::kTime);
    if (!absl::IsDeadlineExceeded(passed)) return passed;
  }
}

void Scheduler::CountRejected(QueueId queue) { core::CountRejected(driver_->flow, queue); }

absl::StatusOr<int64_t> Scheduler::RegionRoomNs() const {
  const Flow& flow = driver_->flow;
  if (flow.device_lost.load() || !flow.accepting.load()) return RefusalOf(flow);
  return core::RegionRoomNs(flow);
}

absl::Status Scheduler::RegionEnd(TicketId region) {
  absl::Status status = SubmitRegionEnd(driver_->flow, region);
  driver_->Wake();
  return status;
}

// --- tickets ---

absl::Status Scheduler::Wait(TicketId ticket, TimeNs deadline_ns) {
  Task* const task = driver_->flow.tables.FindTicket(ticket);
  if (task == nullptr) return NoTicket(ticket);
  // If another thread releases the ticket now, this one waits on, and the slot may be reused.
  const auto done = [&] {
    return task->complete.load(std::memory_order_acquire) || !Tables::IsSlotOf(*task, ticket);
  };
  return driver_->DriveUntil(done, deadline_ns, "ticket wait", Awaited::kTask, task);
}

absl::StatusOr<bool> Scheduler::IsComplete(TicketId ticket) const {
  const Task* task = driver_->flow.tables.FindTicket(ticket);
  if (task == nullptr) return NoTicket(ticket);
  return task->complete.load(std::memory_order_acquire);
}

namespace {

absl::StatusOr<const Task*> FindComplete(const Flow& flow, TicketId ticket) {
  const Task* const task = flow.tables.FindTicket(ticket);
  if (task == nullptr) return NoTicket(ticket);
  if (!task->complete.load(std::memory_order_acquire)) {
    return absl::FailedPreconditionError(
        absl::StrCat("Ticket ", ticket.value, " is not complete and has no record yet."));
  }
  return task;
}

}  // namespace

absl::StatusOr<CompletionRecord> Scheduler::Record(TicketId ticket) const {
  const absl::StatusOr<const Task*> task = FindComplete(driver_->flow, ticket);
  if (!task.ok()) return task.status();
  return (*task)->record;
}

absl::StatusOr<Verdict> Scheduler::VerdictOf(TicketId ticket) const {
  const absl::StatusOr<const Task*> task = FindComplete(driver_->flow, ticket);
  if (!task.ok()) return task.status();
  return (*task)->record.verdict;
}

namespace {

bool IsListed(const Task& task) {
  const TaskState state = task.state.load(std::memory_order_acquire);
  return state == TaskState::kWaiting || state == TaskState::kReady;
}

// The first piece of the task's graph that is not launched; a task by itself is its only one.
Task& FirstListed(Task& task) {
  Task* first = &task;
  while (first->piece.before != nullptr && IsListed(*first->piece.before)) {
    first = first->piece.before;
  }
  return *first;
}

}  // namespace

absl::Status Scheduler::Cancel(TicketId ticket) {
  Flow& flow = driver_->flow;
  absl::Status status;
  const FlowChange change(*driver_);
  flow.now_ns = flow.device->NowNs();
  Task* task = flow.tables.FindTicket(ticket);
  if (task == nullptr) return NoTicket(ticket);
  switch (task->state.load(std::memory_order_acquire)) {
    case TaskState::kSubmitted:
      if (task->region.load() == RegionPhase::kNone) {
        // Admission completes it, and the pieces before it.
        for (Task* piece = task; piece != nullptr; piece = piece->piece.before) {
          piece->cancel_requested.store(true);
        }
      } else {
        status = absl::FailedPreconditionError("A region cannot be cancelled; end it.");
      }
      break;
    case TaskState::kWaiting:
    case TaskState::kReady: {
      Task& first = FirstListed(*task);
      Unlink(flow, first);
      FinishTask(flow, first, Verdict::kCancelled);  // and the pieces behind it
      break;
    }
    case TaskState::kRunning:
    case TaskState::kEvicting: {
      bool evictable = task->progress.adopted && !task->progress.parts.empty();
      for (const Part& part : task->progress.parts) evictable = evictable && part.epoch != 0;
      if (!evictable) {
        status = absl::FailedPreconditionError(absl::StrCat(
            "Ticket ", ticket.value, " is on the device and its work cannot leave it."));
        break;
      }
      task->cancel_requested.store(true);
      for (const Part& part : task->progress.parts) {
        EvictLane(flow, part.lane, 0, ticket, Reason::kNone);
      }
      break;
    }
    default:
      status = absl::FailedPreconditionError(
          task->complete.load(std::memory_order_acquire)
              ? absl::StrCat("Ticket ", ticket.value, " is complete already.")
              : absl::StrCat("Ticket ", ticket.value,
                             " has ended, and completes when the earlier pieces of its graph have "
                             "left the device."));
  }
  return status;
}

absl::Status Scheduler::SetCallback(TicketId ticket, CompletionCallback callback, void* user) {
  CompletionRecord record;
  {
    MutexLock lock(&driver_->tick_mutex);  // tasks complete under it
    Task* task = driver_->flow.tables.FindTicket(ticket);
    if (task == nullptr) return NoTicket(ticket);
    if (task->callback != nullptr) {
      return StatusOf(absl::StatusCode::kFailedPrecondition, [&] {
        return absl::StrCat("Ticket ", ticket.value, " has a callback already.");
      });
    }
    task->callback = callback;
    task->callback_user = user;
    if (!task->complete.load(std::memory_order_acquire)) return absl::OkStatus();
    record = task->record;
  }
  const std::string thrown = RunCallback(callback, user, record);
  if (!thrown.empty()) driver_->flow.Report(thrown);
  return absl::OkStatus();
}

absl::Status Scheduler::ReleaseTicket(TicketId ticket) {
  const Task* task = driver_->flow.tables.FindTicket(ticket);
  if (task != nullptr && task->region.load() == RegionPhase::kOpen) {
    return absl::FailedPreconditionError(absl::StrCat(
        "Ticket ", ticket.value, " is of an open region. End the region before its release."));
  }
  return driver_->flow.tables.ReleaseTicket(ticket) ? absl::OkStatus() : NoTicket(ticket);
}

// --- observation ---

TimeNs Scheduler::NowNs() const { return driver_->flow.device->NowNs(); }

const DeviceCapabilities& Scheduler::capabilities() const {
  return driver_->flow.device->capabilities();
}

SchedulerStats Scheduler::Stats() const {
  const Flow& flow = driver_->flow;
  SchedulerStats stats;
  stats.ticks = flow.counters.ticks.load();
  stats.plans = flow.counters.plans.load();
  stats.launches = flow.counters.launches.load();
  stats.fast_path_launches = flow.counters.fast_path_launches.load();
  stats.evictions = flow.counters.evictions.load();
  stats.evictions_blocked = flow.counters.evictions_blocked.load();
  stats.hung = flow.counters.hung.load();
  stats.busy_sm_ns = flow.device->BusySmNs();
  stats.eviction_latency = Summarise(flow.counters.eviction_latency);
  stats.plan_time = Summarise(flow.counters.plan_time);
  stats.tasks_pending = flow.counters.pending.load();
  stats.device_lost = flow.device_lost.load();
  stats.plan_entries_dropped = flow.counters.plan_entries_dropped.load();
  stats.stray_completions = flow.counters.strays.load();
  MutexLock lock(&driver_->tick_mutex);
  stats.capsms_used = CapSmsOf(flow.ledger.UsedUnits());
  stats.capsms_reserved = flow.ledger.ReservedCapSms();
  stats.predictions_refused = flow.model->AnswersRefused();
  stats.prediction_error = flow.model->MeanRelativeError(&stats.prediction_samples);
  return stats;
}

absl::StatusOr<AppStats> Scheduler::StatsOf(AppId id) const {
  MutexLock lock(&driver_->tick_mutex);  // the app is not replaced meanwhile
  const App* app = driver_->flow.tables.FindApp(id);
  if (app == nullptr) return NoApp(id);
  AppStats stats;
  stats.app = id;
  stats.name = app->options.name;
  stats.app_class = app->options.app_class;
  stats.submitted = app->submitted.load();
  stats.completed = app->completed.load();
  stats.failed = app->failed.load();
  stats.dropped = app->dropped.load();
  stats.cancelled = app->cancelled.load();
  stats.rejected = app->rejected.load();
  stats.evictions = app->evictions.load();
  stats.queue_depth = app->TasksOpen();
  stats.device_ns = app->device_ns.load();
  stats.work_ns = app->work_ns.load();
  stats.block_tasks = app->block_tasks.load();
  stats.latency = Summarise(app->latency);
  stats.queries_open = app->queries_open.load();
  // The query of an overdue LC region counts as idle too.
  const bool lc = app->options.app_class == AppClass::kLatencyCritical;
  stats.queries_idle = app->queries_idle - (lc ? app->regions_overdue : 0);
  stats.regions_open = driver_->flow.tables.RegionsOpen(*app);
  stats.regions_overdue = app->regions_overdue;
  return stats;
}

absl::StatusOr<AppGuarantee> Scheduler::GuaranteeOf(AppId id) const {
  const Flow& flow = driver_->flow;
  MutexLock lock(&driver_->tick_mutex);
  const App* app = flow.tables.FindApp(id);
  if (app == nullptr) return NoApp(id);
  AppGuarantee guarantee;
  guarantee.app = id;
  guarantee.app_class = app->options.app_class;
  guarantee.promise = app->options.promise;
  const RecentLatencies& delivered = app->evidence.delivered;
  guarantee.queries = delivered.count();
  guarantee.p50_ns = static_cast<int64_t>(delivered.Quantile(0.5));
  guarantee.p99_ns = static_cast<int64_t>(delivered.Quantile(0.99));
  ViewTokens(*app, guarantee);
  const RecentLatencies& bounded =
      app->options.bounds_tokens ? app->evidence.token_distances : delivered;
  if (app->options.promise.p99_alone_ns > 0 && bounded.count() > 0) {
    guarantee.p99_over_alone =
        std::floor(bounded.Quantile(0.99)) / static_cast<double>(app->options.promise.p99_alone_ns);
  }
  if (app->evidence.query_solo_ns > 0) {
    guarantee.p50_over_solo =
        static_cast<double>(guarantee.p50_ns) / static_cast<double>(app->evidence.query_solo_ns);
  }
  if (bounded.count() > 0 && app->options.promise.LatencyLimit() != kNever) {
    guarantee.late_share = static_cast<double>(bounded.late()) / bounded.count();
  }
  guarantee.tail_credit = app->evidence.account.credit;
  guarantee.queries_late_for_be = app->evidence.account.late_for_be;
  guarantee.held_ns = app->held_ns;
  const TimeNs now_ns = flow.device->NowNs();
  guarantee.lag_ns = app->evidence.shadow.LagNs(now_ns - YieldedNs(app->evidence, now_ns));
  const Shadow::Estimate alone =
      app->evidence.shadow.EstimateNow(TailSpread(LoadSeen(app->evidence.load)));
  guarantee.shadow_p99_ns = alone.p99_ns;
  guarantee.shadow_p99_error = alone.error;
  guarantee.bound_lost = app->evidence.bound_lost;
  guarantee.target_lost = app->evidence.target_lost;
  guarantee.yielded_ns = YieldedNs(app->evidence, now_ns);
  guarantee.queries_late_not_alone = app->evidence.late_not_alone;
  guarantee.next_lapsed = app->evidence.steps.lapses();
  ViewShare(flow, *app, guarantee);
  for (const Queue* queue : flow.backlog) {  // and what is held now
    if (queue->app != app || queue->head->progress.held_since_ns == 0) continue;
    const size_t row = HoldRow(queue->head->record.hold_reason);
    if (row >= kHoldReasons) continue;
    guarantee.held_ns[row] += std::max<int64_t>(0, now_ns - queue->head->progress.held_since_ns);
  }
  return guarantee;
}

std::vector<AppId> Scheduler::Apps() const {
  std::vector<AppId> apps;
  for (int slot = 0; slot < driver_->flow.tables.app_slots(); ++slot) {
    const uint32_t id = driver_->flow.tables.app_slot(slot).id.load();
    if (id != 0) apps.push_back(AppId{id});
  }
  return apps;
}

int Scheduler::AppCount() const { return static_cast<int>(Apps().size()); }

std::string Scheduler::OpenMetrics() const {
  std::vector<AppStats> apps;
  std::vector<AppGuarantee> guarantees;
  for (AppId id : Apps()) {
    absl::StatusOr<AppStats> stats = StatsOf(id);
    const absl::StatusOr<AppGuarantee> guarantee = GuaranteeOf(id);
    if (!stats.ok() || !guarantee.ok()) continue;  // released meanwhile
    apps.push_back(*std::move(stats));
    guarantees.push_back(*guarantee);
  }
  MetricsSource source;
  source.device_name = capabilities().profile.name;
  source.simulated = capabilities().simulated;
  source.scheduler = Stats();
  source.apps = apps;
  source.guarantees = guarantees;
  MutexLock lock(&driver_->tick_mutex);
  source.policy_name = driver_->flow.policy->name();
  return FormatOpenMetrics(source);
}

absl::Status Scheduler::CheckInvariants() const {
  MutexLock lock(&driver_->tick_mutex);
  return CheckFlow(driver_->flow);
}

std::string Scheduler::SaveModel() const {
  MutexLock lock(&driver_->tick_mutex);
  return driver_->flow.model->Save();
}

absl::Status Scheduler::LoadModel(const std::string& text) {
  const FlowChange change(*driver_);
  return driver_->flow.model->Load(text);
}

}  // namespace gpushare::core
