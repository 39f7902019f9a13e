// Hand-built snapshots (snapshot_builder.h).

#include "tests/core/policies/snapshot_builder.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "src/core/evidence/tuning.h"
#include "src/core/policies/registry.h"

namespace gpushare::core::testing {
namespace {

constexpr int32_t kSms = 132;

void SetBlockNs(HeadView& task) {
  if (task.whole_ns == 0) task.whole_ns = task.remaining.duration_ns;
  if (task.block_ns > 0 || task.blocks_left <= 0) return;
  task.block_ns =
      static_cast<double>(task.remaining.duration_ns) / static_cast<double>(task.blocks_left);
}

// Place p covers [begin, end); overlap is interval overlap.
struct Range {
  int32_t begin;
  int32_t end;
};

template <class T>
bool Fits(const std::optional<T>& expected, const T& actual) {
  return !expected.has_value() || *expected == actual;
}

::testing::AssertionResult As(bool expected, const Plan& plan, const HeadView& task) {
  if (expected) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "task " << task.task.value << " in the plan:\n"
                                       << Describe(plan);
}

}  // namespace

SnapshotBuilder::SnapshotBuilder(const std::vector<int32_t>& lc_sms) {
  std::vector<Range> ranges = {{0, kSms}};
  for (int32_t sms : lc_sms) {
    SplitView split;
    split.lc_place = static_cast<PlaceIndex>(ranges.size());
    split.be_place = split.lc_place + 1;
    split.lc_sms = sms;
    split.be_sms = kSms - sms;
    splits.push_back(split);
    ranges.push_back({0, sms});
    ranges.push_back({sms, kSms});
  }
  for (const Range& a : ranges) {
    PlaceView place;
    place.sms = a.end - a.begin;
    for (size_t i = 0; i < ranges.size(); ++i) {
      if (a.begin < ranges[i].end && ranges[i].begin < a.end) place.overlaps |= uint64_t{1} << i;
    }
    places.push_back(place);
  }
  snapshot.now_ns = 10 * kMs;
  snapshot.sm_count = kSms;
  snapshot.capsms_free = kSms;
  snapshot.partitions_available = !splits.empty();
  snapshot.eviction_available = true;
  snapshot.pairs.version = 1;
}

int32_t SnapshotBuilder::Split(int32_t lc_sms) const {
  for (size_t s = 0; s < splits.size(); ++s) {
    if (splits[s].lc_sms == lc_sms) return static_cast<int32_t>(s);
  }
  std::abort();
}

PlaceIndex SnapshotBuilder::LcPlace(int32_t lc_sms) const {
  return splits[static_cast<size_t>(Split(lc_sms))].lc_place;
}

PlaceIndex SnapshotBuilder::BePlace(int32_t lc_sms) const {
  return splits[static_cast<size_t>(Split(lc_sms))].be_place;
}

int32_t SnapshotBuilder::AddLcApp(double load, int64_t solo_ns, int64_t p99_alone_ns,
                                  double p99_bound) {
  LcAppView app;
  app.app = {static_cast<uint32_t>(lc_apps.size() + 1)};
  app.load = load;
  app.solo_ns = solo_ns;
  app.promise.p99_alone_ns = p99_alone_ns;
  app.promise.p99_bound = p99_bound;
  if (p99_bound > 0) {
    app.blocking_budget_ns =
        static_cast<int64_t>((p99_bound - 1) * static_cast<double>(p99_alone_ns));
  }
  lc_apps.push_back(app);
  return static_cast<int32_t>(lc_apps.size()) - 1;
}

int32_t SnapshotBuilder::AddLcAppWithTarget(double load, int64_t solo_ns, int64_t target_ns) {
  const int32_t app = AddLcApp(load, solo_ns, 0, 0);
  lc_apps.back().promise.target_ns = target_ns;
  lc_apps.back().blocking_budget_ns = target_ns - solo_ns;
  return app;
}

int32_t SnapshotBuilder::AddBeApp(int64_t attained_ns, double weight) {
  BeAppView app;
  app.app = {static_cast<uint32_t>(100 + be_apps.size())};
  app.attained_ns[kSmTime] = static_cast<double>(attained_ns);
  app.weight = app.fair_weight = weight;
  be_apps.push_back(app);
  return static_cast<int32_t>(be_apps.size()) - 1;
}

int32_t SnapshotBuilder::AddKernel(int64_t eviction_ns) {
  KernelDesc kernel;
  kernel.id = {static_cast<uint32_t>(kernels_.size() + 1)};
  kernel.evictable = eviction_ns != kNever;
  kernels_.push_back(kernel);
  eviction_ns_.push_back(eviction_ns);
  return static_cast<int32_t>(kernels_.size()) - 1;
}

int32_t SnapshotBuilder::AddOverlapRow(int32_t kernel) {
  rows_.push_back(&kernels_[static_cast<size_t>(kernel)]);
  co_schedules_.resize(CoScheduleTable::IndexOf(static_cast<int32_t>(rows_.size()), 0));
  sliced_.resize(co_schedules_.size());
  return static_cast<int32_t>(rows_.size()) - 1;
}

CoScheduleOption& SnapshotBuilder::CoSchedule(int32_t row, int32_t column, int32_t ratio) {
  return co_schedules_[CoScheduleTable::IndexOf(row, column) + static_cast<size_t>(ratio)];
}

SlicedPair& SnapshotBuilder::Sliced(int32_t row, int32_t column, int32_t ratio) {
  return sliced_[CoScheduleTable::IndexOf(row, column) + static_cast<size_t>(ratio)];
}

FusedView& SnapshotBuilder::Fuse(int32_t tensor, int32_t cuda, double r0, double t0) {
  FusedKernelDesc& kernel = fused_kernels_.emplace_back();
  kernel.id = {static_cast<uint32_t>(fused_kernels_.size())};
  kernel.tensor_part = kernels_[static_cast<size_t>(tensor)].id;
  kernel.cuda_part = kernels_[static_cast<size_t>(cuda)].id;
  FusedView& view = fused.emplace_back();
  view.kernel = &kernel;
  view.curve = {1, (t0 - 1) / r0, 1 - (t0 - 1) / r0, r0, 0, true};
  return view;
}

int32_t SnapshotBuilder::AddQuery(int32_t lc_app, int64_t headroom_ns) {
  QueryView query = {.query = {queries.size() + 1}, .lc_app = lc_app};
  query.headroom_ns = query.serial_headroom_ns = headroom_ns;
  queries.push_back(query);
  ++lc_apps[static_cast<size_t>(lc_app)].active_queries;
  return static_cast<int32_t>(queries.size()) - 1;
}

HeadView SnapshotBuilder::MakeBeTask(int32_t be_app, int32_t kernel, int64_t duration_ns) {
  HeadView head;
  head.task = {next_task_++};
  head.queue = {next_queue_++};
  head.sequence = head.task.value;
  head.app = be_app;
  head.remaining.duration_ns = duration_ns;
  head.blocks_left = 100'000;
  head.confinable = true;
  head.eviction_ns = head.eviction_p99_ns = kNever;
  if (kernel >= 0) {
    head.kernel = &kernels_[static_cast<size_t>(kernel)];
    head.kernel_index = kernel;
    head.evictable = head.kernel->evictable;
    head.eviction_ns = eviction_ns_[static_cast<size_t>(kernel)];
    head.eviction_p99_ns = head.eviction_ns;
    head.eviction_known = true;
  }
  return head;
}

HeadView& SnapshotBuilder::AddLcHead(int32_t lc_app, int32_t ready_count) {
  HeadView head = MakeBeTask(lc_app, -1, 100 * kUs);
  head.app_class = AppClass::kLatencyCritical;
  head.kind = TaskKind::kGraph;
  head.ready_count = ready_count;
  heads.push_back(head);
  LcAppView& app = lc_apps[static_cast<size_t>(lc_app)];
  if (app.active_queries == 0) app.active_queries = 1;
  return heads.back();
}

HeadView& SnapshotBuilder::AddLcKernelHead(int32_t query, int32_t kernel, int64_t duration_ns,
                                           int32_t ready_count) {
  const QueryView& of = queries[static_cast<size_t>(query)];
  HeadView head = MakeBeTask(of.lc_app, kernel, duration_ns);
  head.app_class = AppClass::kLatencyCritical;
  head.query = of.query;
  head.ready_count = ready_count;
  heads.push_back(head);
  return heads.back();
}

HeadView& SnapshotBuilder::AddBeHead(int32_t be_app, int32_t kernel, int64_t duration_ns) {
  heads.push_back(MakeBeTask(be_app, kernel, duration_ns));
  return heads.back();
}

HeadView& SnapshotBuilder::AddBeTask(int32_t be_app, TaskKind kind, int64_t duration_ns) {
  heads.push_back(MakeBeTask(be_app, -1, duration_ns));
  heads.back().kind = kind;
  return heads.back();
}

HeadView& SnapshotBuilder::AddBeCopy(int32_t be_app, CopyDirection direction, int64_t bytes,
                                     int64_t duration_ns) {
  HeadView& head = AddBeTask(be_app, TaskKind::kMemcpy, duration_ns);
  head.direction = direction;
  head.pinned = true;
  head.blocks_left = bytes;
  return head;
}

RunningView& SnapshotBuilder::AddRunningBe(int32_t be_app, int32_t kernel, int64_t duration_ns,
                                           const std::vector<BePart>& parts) {
  RunningView view;
  view.task = MakeBeTask(be_app, kernel, duration_ns);
  if (kernel < 0) view.task.kind = TaskKind::kOpaque;
  for (const BePart& part : parts) {
    PartView& to = view.parts.Add();
    to.place = part.place;
    to.form = part.form;
    to.evicting = part.evicting;
    to.workers = part.workers;
    to.launched_ns = snapshot.now_ns;
    if (!part.evicting) view.places |= uint64_t{1} << part.place;
  }
  running.push_back(view);
  return running.back();
}

HeadView& SnapshotBuilder::AddBeGraph(int32_t be_app, int32_t kernel, int64_t duration_ns) {
  HeadView& graph = AddBeHead(be_app, kernel, duration_ns);
  graph.kind = TaskKind::kGraph;
  graph.segment_gain = kSegmentGain;
  return graph;
}

RunningView& SnapshotBuilder::AddRunningGraph(int32_t be_app, int32_t kernel, int64_t duration_ns,
                                              const BePart& part) {
  RunningView& graph = AddRunningBe(be_app, kernel, duration_ns, {part});
  graph.task.kind = TaskKind::kGraph;
  graph.task.segment_gain = kSegmentGain;
  return graph;
}

RunningView& SnapshotBuilder::AddRunningLc(int32_t lc_app, PlaceIndex place) {
  RunningView& view = AddRunningBe(lc_app, -1, 100 * kUs, {{place, Form::kGraph, false, 0}});
  view.task.app_class = AppClass::kLatencyCritical;
  view.task.kind = TaskKind::kGraph;
  LcAppView& app = lc_apps[static_cast<size_t>(lc_app)];
  ++app.tasks_in_flight;
  if (app.active_queries == 0) app.active_queries = 1;
  return view;
}

PairOption SnapshotBuilder::DefaultPair(int32_t split) const {
  const SplitView& view = splits[static_cast<size_t>(split)];
  const float lc = static_cast<float>(view.lc_sms) / kSms;
  const float be = static_cast<float>(view.be_sms) / kSms;
  return {lc, lc, be, lc};
}

PairOption& SnapshotBuilder::Pair(int32_t app, int32_t kernel, int32_t lc_sms) {
  const int32_t split = Split(lc_sms);
  for (PairAt& pair : pairs_) {
    if (pair.app == app && pair.kernel == kernel && pair.split == split) return pair.option;
  }
  pairs_.push_back({app, kernel, split, DefaultPair(split)});
  return pairs_.back().option;
}

const Snapshot& SnapshotBuilder::Get() {
  for (HeadView& head : heads) SetBlockNs(head);
  for (RunningView& view : running) SetBlockNs(view.task);
  const size_t kernels = kernels_.size();
  options_.clear();
  for (size_t i = 0; i < lc_apps.size() * kernels; ++i) {
    for (size_t s = 0; s < splits.size(); ++s) {
      options_.push_back(DefaultPair(static_cast<int32_t>(s)));
    }
  }
  snapshot.pairs.kernels = static_cast<int32_t>(kernels);
  snapshot.pairs.splits = static_cast<int32_t>(splits.size());
  for (const PairAt& pair : pairs_) {
    const size_t row = static_cast<size_t>(pair.app) * kernels + static_cast<size_t>(pair.kernel);
    options_[row * splits.size() + static_cast<size_t>(pair.split)] = pair.option;
  }
  head_list_.clear();
  for (const AppClass listed : {AppClass::kLatencyCritical, AppClass::kBestEffort}) {
    for (const HeadView& head : heads) {
      if (head.app_class == listed) head_list_.push_back(&head);
    }
  }
  running_list_.assign(running.begin(), running.end());
  snapshot.places = places;
  snapshot.splits = splits;
  snapshot.lc_apps = lc_apps;
  snapshot.be_apps = be_apps;
  snapshot.queries = queries;
  snapshot.heads = HeadList(head_list_);
  snapshot.running = running_list_;
  snapshot.pairs.options = options_;
  snapshot.fused = fused;
  snapshot.co_schedules.options = co_schedules_;
  snapshot.co_schedules.sliced = sliced_;
  snapshot.co_schedules.rows = rows_;
  snapshot.co_schedules.kernels = static_cast<int32_t>(rows_.size());
  return snapshot;
}

std::string Describe(const Plan& plan) {
  std::ostringstream out;
  for (const PlannedLaunch& launch : plan.launches) {
    out << "launch task " << launch.task.value << " x" << launch.count << " form "
        << int{static_cast<uint8_t>(launch.form)} << " place " << launch.place << " lane "
        << int{static_cast<uint8_t>(launch.lane_class)} << " workers " << launch.workers
        << " blocks " << launch.blocks_max << " with " << launch.fused_with.value << " reason "
        << int{static_cast<uint8_t>(launch.reason)} << "\n";
  }
  for (const PlannedEviction& eviction : plan.evictions) {
    out << "evict task " << eviction.task.value << " place " << eviction.place << " keep "
        << eviction.workers_to_keep << " reason " << int{static_cast<uint8_t>(eviction.reason)}
        << "\n";
  }
  for (const PlannedHold& hold : plan.holds) {
    out << "hold task " << hold.task.value << " reason " << int{static_cast<uint8_t>(hold.reason)}
        << " value " << hold.value_ns << " limit " << hold.limit_ns << "\n";
  }
  for (size_t a = 0; a < plan.routes.size(); ++a) {
    const LcRoute& route = plan.routes[a];
    const LcRoute none;
    if (route.place == none.place && route.lane_class == none.lane_class &&
        route.fast_path == none.fast_path && route.evict_overlapping == none.evict_overlapping) {
      continue;
    }
    out << "route of LC app " << a << " place " << route.place << " lane "
        << int{static_cast<uint8_t>(route.lane_class)} << " fast " << route.fast_path << " evict "
        << route.evict_overlapping << "\n";
  }
  if (plan.replan_at_ns != kNever) out << "replan at " << plan.replan_at_ns << "\n";
  return out.str();
}

std::unique_ptr<Policy> NewPolicy(const char* name) {
  absl::StatusOr<std::unique_ptr<Policy>> policy = MakePolicy(name);
  if (!policy.ok()) std::abort();
  return *std::move(policy);
}

Plan PlanOf(const char* policy, SnapshotBuilder& builder) {
  Plan plan;
  plan.Clear();
  NewPolicy(policy)->MakePlan(builder.Get(), plan);
  return plan;
}

const PlannedLaunch* FindLaunch(const Plan& plan, const HeadView& task, PlaceIndex place) {
  for (const PlannedLaunch& launch : plan.launches) {
    if ((launch.task == task.task || launch.fused_with == task.task) &&
        (place == kNoPlace || launch.place == place))
      return &launch;
  }
  return nullptr;
}

const PlannedHold* FindHold(const Plan& plan, const HeadView& task) {
  for (const PlannedHold& hold : plan.holds) {
    if (hold.task == task.task) return &hold;
  }
  return nullptr;
}

const PlannedEviction* FindEviction(const Plan& plan, const HeadView& task, PlaceIndex place) {
  for (const PlannedEviction& eviction : plan.evictions) {
    if (eviction.task == task.task && eviction.place == place) return &eviction;
  }
  return nullptr;
}

::testing::AssertionResult IsLaunched(const Plan& plan, const HeadView& task,
                                      const LaunchIs& expected, PlaceIndex place) {
  const PlannedLaunch* const launch = FindLaunch(plan, task, place);
  return As(launch != nullptr && Fits(expected.form, launch->form) &&
                Fits(expected.place, launch->place) &&
                Fits(expected.lane_class, launch->lane_class) &&
                Fits(expected.count, launch->count) && Fits(expected.workers, launch->workers) &&
                Fits(expected.blocks_max, launch->blocks_max) &&
                Fits(expected.fused_kernel, launch->fused_kernel) &&
                Fits(expected.reason, launch->reason),
            plan, task);
}

::testing::AssertionResult IsHeld(const Plan& plan, const HeadView& task, Reason reason,
                                  std::optional<int64_t> value_ns,
                                  std::optional<int64_t> limit_ns) {
  const PlannedHold* const hold = FindHold(plan, task);
  return As(hold != nullptr && hold->reason == reason && Fits(value_ns, hold->value_ns) &&
                Fits(limit_ns, hold->limit_ns),
            plan, task);
}

::testing::AssertionResult IsEvicted(const Plan& plan, const HeadView& task, PlaceIndex place,
                                     Reason reason, std::optional<int32_t> workers_to_keep) {
  const PlannedEviction* const eviction = FindEviction(plan, task, place);
  return As(eviction != nullptr && eviction->reason == reason &&
                Fits(workers_to_keep, eviction->workers_to_keep),
            plan, task);
}

}  // namespace gpushare::core::testing
