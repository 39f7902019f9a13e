// Properties of the planners over random snapshots, checked by rules that are written apart from
// the planners' own code.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "src/core/policies/adaptive/candidates/fused.h"
#include "src/core/policies/registry.h"
#include "tests/core/policies/snapshot_builder.h"

namespace gpushare::core::testing {
namespace {

template <class T>
T Pick(const std::vector<T>& values) {
  return *rc::gen::elementOf(values);
}
int64_t Between(int64_t low, int64_t high) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(low, high + 1));
}
bool Coin() { return Between(0, 1) == 1; }

const std::vector<int64_t> kDurations = {1 * kUs, 30 * kUs, 80 * kUs, 200 * kUs,
                                         2 * kMs, 8 * kMs,  80 * kMs};

void AddApps(SnapshotBuilder& builder) {
  const int64_t lc_apps = Between(0, 3);
  for (int64_t a = 0; a < lc_apps; ++a) {
    const double load = static_cast<double>(Between(0, 40)) / 100;
    if (Coin()) {
      builder.AddLcApp(load, 500 * kUs, Between(1, 4) * kMs, Pick<double>({1.03, 1.05, 1.1, 2}));
    } else {
      builder.AddLcAppWithTarget(load, 500 * kUs, Between(1, 10) * kMs);
    }
    LcAppView& app = builder.lc_apps.back();
    app.reserved_capsms = Pick<int32_t>({0, 20, 40});
    app.priority = Pick<int32_t>({-2, 0, 0, 7});
    app.uncuttable_budget_ns = Coin() ? 0 : app.blocking_budget_ns / 4 * Between(4, 8);
    app.tail_rate = Pick<double>({0, 1e-6, 5e-6});
    app.tail_need_per_ns = Pick<double>({0, 1e-7, 2e-6});
    app.tail_credit = static_cast<double>(Pick<int64_t>({-3, 0, 1, 20, 100}));
    app.idle_since_ns = builder.snapshot.now_ns - Pick<int64_t>({0, 1'999, 2'000, 1 * kMs});
    if (Between(0, 3) == 0) builder.AddQuery(static_cast<int32_t>(a), Between(-100, 3'000) * kUs);
  }
  const int64_t be_apps = Between(1, 4);
  for (int64_t a = 0; a < be_apps; ++a) {
    builder.AddBeApp(Between(0, 50) * kMs, Pick<double>({1, 2}));
    builder.be_apps.back().quota_capsms = Pick<int32_t>({0, 16, 48});
  }
}

void AddKernels(SnapshotBuilder& builder) {
  const int64_t kernels = Between(1, 4);
  for (int64_t k = 0; k < kernels; ++k) {
    const int32_t kernel =
        builder.AddKernel(Pick<int64_t>({20 * kUs, 40 * kUs, 150 * kUs, 2'500 * kUs, kNever}));
    for (size_t a = 0; a < builder.lc_apps.size(); ++a) {
      for (const int32_t lc_sms : {68, 84, 108}) {
        builder.Pair(static_cast<int32_t>(a), kernel, lc_sms).lc_speed =
            static_cast<float>(Between(0, 11)) / 10;
      }
    }
  }
}

void AddHeads(SnapshotBuilder& builder, int64_t kernels) {
  const int64_t heads = Between(0, 20);
  for (int64_t h = 0; h < heads; ++h) {
    const int64_t kind = Between(0, builder.lc_apps.empty() ? 4 : 5);
    const int32_t be = static_cast<int32_t>(Between(0, int64_t(builder.be_apps.size()) - 1));
    if (kind == 5) {
      const int64_t lc = Between(0, static_cast<int64_t>(builder.lc_apps.size()) - 1);
      builder.AddLcHead(static_cast<int32_t>(lc), static_cast<int32_t>(Between(1, 5)));
      // A head alone makes its app active, whatever the counters say.
      if (Coin()) builder.lc_apps[static_cast<size_t>(lc)].active_queries = 0;
    } else if (kind == 4) {
      builder.AddBeCopy(be, Coin() ? CopyDirection::kHostToDevice : CopyDirection::kDeviceToHost,
                        Between(1, 1 << 30), Pick(kDurations));
      builder.heads.back().pinned = Coin();
    } else if (kind == 3) {
      builder.AddBeTask(be, Coin() ? TaskKind::kLibrary : TaskKind::kOpaque, Pick(kDurations));
    } else {
      builder.AddBeHead(be, static_cast<int32_t>(Between(0, kernels - 1)), Pick(kDurations));
      builder.heads.back().resumed = Coin();
    }
    builder.heads.back().confinable = Between(0, 5) != 0;
    builder.heads.back().remaining.error_ns = Between(0, 5) * kUs;
  }
}

PlaceIndex AnyPlace(const SnapshotBuilder& builder) {
  if (!builder.snapshot.partitions_available) return kWholeDevice;
  return static_cast<PlaceIndex>(Between(0, static_cast<int64_t>(builder.places.size()) - 1));
}

void AddRunning(SnapshotBuilder& builder, int64_t kernels) {
  if (builder.snapshot.partitions_available) {
    const auto splits = static_cast<int64_t>(builder.splits.size());
    builder.snapshot.in_force.split = static_cast<int32_t>(Between(kNoSplit, splits - 1));
  }
  const int64_t running = Between(0, 4);
  for (int64_t r = 0; r < running; ++r) {
    const PlaceIndex place = AnyPlace(builder);
    if (!builder.lc_apps.empty() && Between(0, 3) == 0) {
      builder.AddRunningLc(0, place);
      continue;
    }
    const int32_t kernel = static_cast<int32_t>(Between(0, kernels - 1));
    std::vector<BePart> parts;
    const int64_t count = Between(1, 3);
    for (int64_t p = 0; p < count; ++p) {
      const PlaceIndex at = AnyPlace(builder);
      parts.push_back({at, Form::kWorkers, Coin(), static_cast<int32_t>(Between(0, 200))});
    }
    RunningView& view = builder.AddRunningBe(0, kernel, Pick(kDurations), parts);
    if (!view.task.evictable) {
      while (view.parts.size() > 1) view.parts.PopBack();
      view.parts[0].form = Form::kOriginal;
      view.parts[0].evicting = false;
      view.places = uint64_t{1} << view.parts[0].place;
    }
    builder.be_apps[0].used_capsms += 10;
  }
}

bool IsLcClass(const HeadView& task) { return task.app_class == AppClass::kLatencyCritical; }

// Tables of fused kernels and of co-resident pairs, kernels of LC queries, and LC work that is on
// the device.
void AddOverlaps(SnapshotBuilder& builder, int64_t kernels) {
  std::vector<int32_t> rows;
  for (int64_t k = 0; k < kernels && Coin(); ++k) {
    rows.push_back(builder.AddOverlapRow(static_cast<int32_t>(k)));
  }
  const int64_t pairs = Between(0, 3);
  for (int64_t p = 0; p < pairs; ++p) {
    builder.Fuse(static_cast<int32_t>(Between(0, kernels - 1)),
                 static_cast<int32_t>(Between(0, kernels - 1)), Pick<double>({0.3, 1, 2}),
                 Pick<double>({1.1, 1.5, 3}));
    builder.fused.back().curve.error = Pick<double>({0, 0.1, 1});
    builder.fused.back().curve.trained = Coin();
  }
  for (LcAppView& app : builder.lc_apps) {
    if (pairs > 0 && Coin()) app.main_kernel = Pick(builder.fused).kernel->tensor_part;
  }
  for (size_t row = 0; row < rows.size(); ++row) {
    for (size_t column = 0; column <= row; ++column) {
      const float speed = static_cast<float>(Between(0, 10)) / 10;
      const float sum = speed + 0.4F;
      builder.CoSchedule(rows[row], rows[column], static_cast<int32_t>(Between(0, 2))) = {
          {3, 5}, {speed, 0.4F}, Pick<float>({0, 0.1F}), 1 - 1 / sum};
    }
  }
  for (size_t q = 0; q < builder.queries.size(); ++q) {
    builder.queries[q].issued_ns = Between(0, 2) * 40 * kUs;
    if (Coin()) continue;
    builder.AddLcKernelHead(static_cast<int32_t>(q), static_cast<int32_t>(Between(0, kernels - 1)),
                            Pick(kDurations), static_cast<int32_t>(Between(1, 5)));
  }
  const auto set_row = [&](HeadView& task) {
    if (task.kernel_index < 0 || task.kernel_index >= static_cast<int32_t>(rows.size())) return;
    task.overlap_index = rows[static_cast<size_t>(task.kernel_index)];
  };
  for (HeadView& head : builder.heads) {
    set_row(head);
    head.followed = !IsLcClass(head) && Coin();
  }
  for (RunningView& running : builder.running) {
    set_row(running.task);
    running.task.followed = Coin();
  }
}

SnapshotBuilder AnySnapshot() {
  SnapshotBuilder builder;
  builder.snapshot.partitions_available = Between(0, 4) != 0;
  AddApps(builder);
  AddKernels(builder);
  const int64_t kernels = builder.lc_apps.empty() ? 1 : builder.Get().pairs.kernels;
  AddHeads(builder, kernels);
  AddRunning(builder, kernels);
  if (!builder.lc_apps.empty()) AddOverlaps(builder, kernels);
  builder.snapshot.eviction_available = Between(0, 4) != 0;
  builder.snapshot.queued_ns = Between(0, 5) * kMs;
  for (CopyState& copies : builder.snapshot.copies) {
    copies.be_limit = static_cast<int32_t>(Between(1, 3));
    copies.be_active = static_cast<int32_t>(Between(0, 1));
    copies.lc_uses = Between(0, 1) == 1;
  }
  double used = 0;
  int32_t reserved = 0;
  for (const BeAppView& app : builder.be_apps) used += app.used_capsms;
  for (const LcAppView& app : builder.lc_apps) reserved += app.reserved_capsms;
  builder.snapshot.capsms_free = std::max(0.0, builder.snapshot.sm_count - used - reserved);
  return builder;
}

Plan PlanWith(Policy& policy, const Snapshot& snapshot) {
  Plan plan;
  plan.Clear();
  policy.MakePlan(snapshot, plan);
  return plan;
}

bool IsLc(const HeadView& task) { return IsLcClass(task); }
bool IsCopy(const HeadView& task) { return task.kind == TaskKind::kMemcpy; }
bool Overlap(const Snapshot& s, PlaceIndex a, PlaceIndex b) {
  return (s.places[static_cast<size_t>(a)].overlaps >> b & 1) != 0;
}
bool Evictable(const Snapshot& s, const HeadView& task) {
  return s.eviction_available && task.evictable;
}

const HeadView* TaskOf(const Snapshot& s, TicketId id) {
  for (const HeadView& head : s.heads) {
    if (head.task == id) return &head;
  }
  for (const RunningView& running : s.running) {
    if (running.task.task == id) return &running.task;
  }
  return nullptr;
}

bool LcIsActive(const Snapshot& s) {
  for (const LcAppView& app : s.lc_apps) {
    if (app.active_queries > 0 || app.tasks_in_flight > 0) return true;
  }
  for (const HeadView& head : s.heads) {
    if (IsLc(head)) return true;
  }
  return false;
}

// Where LC is, or would be at the next arrival.
std::set<PlaceIndex> LcPlaces(const Snapshot& s, const Plan& plan) {
  std::set<PlaceIndex> places;
  for (size_t a = 0; a < s.lc_apps.size(); ++a) places.insert(plan.routes[a].place);
  for (const RunningView& running : s.running) {
    if (!IsLc(running.task)) continue;
    for (int32_t i = 0; i < running.parts.size(); ++i) {
      places.insert(running.parts[i].place);
    }
  }
  for (int32_t i = 0; i < plan.launches.size(); ++i) {
    const PlannedLaunch& launch = plan.launches[i];
    if (IsLc(*TaskOf(s, launch.task))) places.insert(launch.place);
  }
  return places;
}

bool OverlapsAny(const Snapshot& s, PlaceIndex place, const std::set<PlaceIndex>& places) {
  return std::any_of(places.begin(), places.end(),
                     [&](PlaceIndex other) { return Overlap(s, place, other); });
}

int64_t Budget(const Snapshot& s) {
  int64_t budget_ns = kNever;
  for (const LcAppView& app : s.lc_apps) budget_ns = std::min(budget_ns, app.blocking_budget_ns);
  return budget_ns;
}

// The longest that BE on LC's places can keep the next query waiting once the plan is done: all
// that cannot be evicted one after the other, then the slowest eviction.
struct Blocking {
  int64_t fixed_ns = 0;
  int64_t eviction_ns = 0;
};
Blocking BlockingAfter(const Snapshot& s, const Plan& plan) {
  const std::set<PlaceIndex> lc = LcPlaces(s, plan);
  std::map<uint64_t, int64_t> fixed_ns;
  int64_t eviction_ns = 0;
  const auto count = [&](const HeadView& task, PlaceIndex place, bool evictable) {
    if (IsLc(task) || IsCopy(task) || !OverlapsAny(s, place, lc)) return;
    const int64_t stretched_ns = (task.remaining.duration_ns + task.remaining.error_ns) *
                                 s.sm_count / s.places[static_cast<size_t>(place)].sms;
    if (evictable) {
      eviction_ns = std::max(eviction_ns, std::min(task.eviction_ns, stretched_ns));
    } else {
      fixed_ns[task.task.value] = std::max(fixed_ns[task.task.value], stretched_ns);
    }
  };
  for (const RunningView& running : s.running) {
    for (int32_t i = 0; i < running.parts.size(); ++i) {
      const PartView& part = running.parts[i];
      count(running.task, part.place, part.form == Form::kWorkers && s.eviction_available);
    }
  }
  for (int32_t i = 0; i < plan.launches.size(); ++i) {
    const PlannedLaunch& launch = plan.launches[i];
    const HeadView& task = *TaskOf(s, launch.task);
    count(task, launch.place, Evictable(s, task));
  }
  Blocking blocking = {0, eviction_ns};
  for (const auto& [task, ns] : fixed_ns) blocking.fixed_ns += ns;
  return blocking;
}

// The delay moves no p99 beyond its budget, in each idle period or in one of 25 at least; where no
// tail is known, it fits the budget.
bool FitsBudgets(const Snapshot& s, const Blocking& blocking) {
  const auto fixed_ns = static_cast<double>(blocking.fixed_ns);
  const auto eviction_ns = static_cast<double>(blocking.eviction_ns);
  return std::all_of(s.lc_apps.begin(), s.lc_apps.end(), [&](const LcAppView& app) {
    if (app.blocking_budget_ns == kNever) return true;
    const auto budget_ns = static_cast<double>(app.blocking_budget_ns);
    if (app.tail_rate == 0) return fixed_ns + eviction_ns <= budget_ns;
    const double x = app.tail_rate * fixed_ns;
    const double moment =
        std::exp(app.tail_rate * eviction_ns) * (x > 1e-6 ? std::expm1(x) / x : 1);
    return 0.039 * (moment - 1) <= std::expm1(app.tail_rate * budget_ns) * 1.001;
  });
}

// Each app whose budget is too short has credit for the queries that the blocking may delay.
bool HasCredit(const Snapshot& s, const Blocking& blocking) {
  const double total_ns = static_cast<double>(blocking.fixed_ns + blocking.eviction_ns);
  for (const LcAppView& app : s.lc_apps) {
    if (total_ns <= static_cast<double>(app.blocking_budget_ns)) continue;
    if (app.tail_need_per_ns <= 0) return false;
    if (app.tail_credit < std::min(100.0, 0.999 * total_ns * app.tail_need_per_ns)) return false;
  }
  return true;
}

// tacker and adaptive alone hold LC work, for a partner in a fused launch, and only behind other
// work of the same app or a fused launch.
bool WaitsBehindItsOwn(const std::string& policy, const Snapshot& s, const PlannedHold& hold) {
  const HeadView& head = *TaskOf(s, hold.task);
  const bool fused =
      std::any_of(s.running.begin(), s.running.end(), [](const RunningView& running) {
        return running.parts[0].form == Form::kFused && running.task.followed;
      });
  if (hold.reason != Reason::kHoldWindow) return false;
  const int32_t in_flight = s.lc_apps[static_cast<size_t>(head.app)].tasks_in_flight;
  if (policy == "tacker") return fused || in_flight >= 2;
  return policy == "adaptive" && in_flight >= 1;
}

// Whether it bounds the partner of a fused launch of the plan from the begin on.
bool LimitsPartner(const Plan& plan, const PlannedEviction& eviction) {
  return eviction.workers_to_keep > 0 &&
         std::any_of(plan.launches.begin(), plan.launches.end(), [&](const PlannedLaunch& launch) {
           return launch.form == Form::kFused && launch.fused_with == eviction.task;
         });
}

// --- every policy -------------------------------------------------------------------------------

RC_GTEST_PROP(EveryPolicy, GivesTheSamePlanForTheSameSnapshotWhateverItSawBefore, ()) {
  SnapshotBuilder first = AnySnapshot();
  SnapshotBuilder second = AnySnapshot();
  second.snapshot.pairs.version = 2;  // another table
  for (const std::string& name : PolicyNames()) {
    const std::unique_ptr<Policy> policy = NewPolicy(name.c_str());
    const std::string fresh = Describe(PlanWith(*policy, first.Get()));
    PlanWith(*policy, second.Get());
    RC_ASSERT(Describe(PlanWith(*policy, first.Get())) == fresh);
    RC_ASSERT(Describe(PlanOf(name.c_str(), first)) == fresh);
  }
}

// A side of a split has one lane for LC work, of the class kLc.
RC_GTEST_PROP(EveryPolicy, SendsLcWorkToLanesThatItsPlaceHas, ()) {
  SnapshotBuilder builder = AnySnapshot();
  for (LcAppView& app : builder.lc_apps) app.packed = Coin();
  const Snapshot& snapshot = builder.Get();
  for (const std::string& name : PolicyNames()) {
    const std::unique_ptr<Policy> policy = NewPolicy(name.c_str());
    const Plan plan = PlanWith(*policy, snapshot);
    for (size_t a = 0; a < snapshot.lc_apps.size(); ++a) {
      const LcRoute& route = plan.routes[a];
      RC_ASSERT(route.place == kWholeDevice || route.lane_class == LaneClass::kLc);
    }
    for (const PlannedLaunch& launch : plan.launches) {
      if (!IsLc(*TaskOf(snapshot, launch.task))) continue;
      RC_ASSERT(launch.place == kWholeDevice || launch.lane_class == LaneClass::kLc);
    }
  }
}

RC_GTEST_PROP(EveryPolicy, LaunchesOrHoldsEveryHeadOnceAndEvictsOnlyWhatCanLeave, ()) {
  SnapshotBuilder builder = AnySnapshot();
  const Snapshot& s = builder.Get();
  for (const std::string& name : PolicyNames()) {
    const std::unique_ptr<Policy> policy = NewPolicy(name.c_str());
    const Plan plan = PlanWith(*policy, s);
    for (const HeadView& head : s.heads) {
      const bool launched = FindLaunch(plan, head) != nullptr;
      const bool held = FindHold(plan, head) != nullptr;
      RC_ASSERT(launched != held);
      if (held) RC_ASSERT(FindHold(plan, head)->reason >= Reason::kHoldHeadroom);
      if (IsLc(head) && held) RC_ASSERT(WaitsBehindItsOwn(name, s, *FindHold(plan, head)));
    }
    std::set<std::pair<uint64_t, PlaceIndex>> launches;
    std::map<uint64_t, int32_t> parts;
    for (const RunningView& running : s.running) {
      parts[running.task.task.value] = running.parts.size();
    }
    for (int32_t i = 0; i < plan.launches.size(); ++i) {
      const PlannedLaunch& launch = plan.launches[i];
      const HeadView* task = TaskOf(s, launch.task);
      RC_ASSERT(task != nullptr);
      RC_ASSERT(launch.place >= 0 && launch.place < static_cast<int32_t>(s.places.size()));
      RC_ASSERT(launch.count >= 1 && launch.count <= task->ready_count);
      RC_ASSERT(launch.reason != Reason::kNone && launch.reason < Reason::kHoldHeadroom);
      RC_ASSERT(launch.form != Form::kWorkers || Evictable(s, *task));
      const bool first = launches.insert({launch.task.value, launch.place}).second;
      RC_ASSERT(first || launch.form == Form::kSlice);  // it waits behind the other one
      RC_ASSERT(++parts[launch.task.value] <= kMaxPartsPerTask);
      if (!s.partitions_available) RC_ASSERT(launch.place == kWholeDevice);
    }
    std::set<std::pair<uint64_t, PlaceIndex>> evictions;
    for (int32_t i = 0; i < plan.evictions.size(); ++i) {
      const PlannedEviction& eviction = plan.evictions[i];
      RC_ASSERT(s.eviction_available);
      RC_ASSERT(evictions.insert({eviction.task.value, eviction.place}).second);
      RC_ASSERT(eviction.workers_to_keep >= 0);
      RC_ASSERT(eviction.reason >= Reason::kEvictForLc && eviction.reason < Reason::kUserPolicy);
      bool live = LimitsPartner(plan, eviction);
      for (const RunningView& running : s.running) {
        if (running.task.task != eviction.task) continue;
        RC_ASSERT(!IsLc(running.task));
        for (int32_t p = 0; p < running.parts.size(); ++p) {
          const PartView& part = running.parts[p];
          if (part.place == eviction.place && !part.evicting && part.form == Form::kWorkers) {
            live = true;
          }
        }
      }
      RC_ASSERT(live);
    }
  }
}

// --- adaptive -----------------------------------------------------------------------------------

// A grid of candidates/beside.h, which alone uses plain lanes. It has a property of its own below.
bool IsBesideQueries(const PlannedLaunch& launch) { return launch.lane_class == LaneClass::kPlain; }

RC_GTEST_PROP(Adaptive, NeverLaunchesBeOnSmsThatActiveLcWorkUses, ()) {
  SnapshotBuilder builder = AnySnapshot();
  const Snapshot& s = builder.Get();
  for (const char* name :
       {"adaptive", "adaptive:evict", "adaptive:partition", "adaptive:elastic"}) {
    const Plan plan = PlanWith(*NewPolicy(name), s);
    if (!LcIsActive(s)) return;
    const std::set<PlaceIndex> lc = LcPlaces(s, plan);
    for (int32_t i = 0; i < plan.launches.size(); ++i) {
      const PlannedLaunch& launch = plan.launches[i];
      const HeadView& task = *TaskOf(s, launch.task);
      if (!IsLc(task) && !IsCopy(task) && !IsBesideQueries(launch)) {
        RC_ASSERT(!OverlapsAny(s, launch.place, lc));
      }
    }
    // And what is already there leaves.
    for (const RunningView& running : s.running) {
      if (IsLc(running.task) || !s.eviction_available) continue;
      for (int32_t p = 0; p < running.parts.size(); ++p) {
        const PartView& part = running.parts[p];
        if (part.evicting || part.form != Form::kWorkers) continue;
        if (!OverlapsAny(s, part.place, lc)) continue;
        RC_ASSERT(FindEviction(plan, running.task, part.place) != nullptr);
      }
    }
  }
}

// Makes graphs of some BE kernels; those that run and can be evicted run in segments.
void MakeGraphs(SnapshotBuilder& builder) {
  for (HeadView& head : builder.heads) {
    if (IsLc(head) || head.kernel_index < 0 || Coin()) continue;
    head.kind = TaskKind::kGraph;
    head.segment_gain = Pick<double>({0, 0.6});
    head.split_gain = Pick<double>({-0.5, 0.2, 0.8});
    head.split_gain_known = Pick<double>({0, 0.7});
  }
  for (RunningView& running : builder.running) {
    if (IsLc(running.task) || Coin()) continue;
    running.task.kind = TaskKind::kGraph;
    running.task.segment_gain = Pick<double>({0, 0.6});
    running.task.split_gain = Pick<double>({-0.5, 0.2, 0.8});
    running.task.split_gain_known = Pick<double>({0, 0.7});
    while (running.parts.size() > 1) running.parts.PopBack();
    running.parts[0].form = running.task.evictable ? Form::kSegments : Form::kGraph;
  }
}

// Apps that promise a target alone, without reservations and quotas, and no opaque BE work.
SnapshotBuilder SnapshotOfTargetsAlone() {
  SnapshotBuilder builder = AnySnapshot();
  for (LcAppView& app : builder.lc_apps) {
    app.promise.target_ns = Between(4, 20) * kMs;
    app.promise.p99_bound = app.promise.p50_bound = 0;
    app.promise.p99_alone_ns = app.promise.target_ns / 2;
    app.blocking_budget_ns = app.promise.target_ns - app.promise.p99_alone_ns;
    app.load = 0.3;
    app.reserved_capsms = 0;
    app.target_tail = Pick<double>({0.5, 1, 2});
  }
  for (QueryView& query : builder.queries) query.headroom_ns = Between(-1, 10) * kMs;
  for (BeAppView& app : builder.be_apps) app.quota_capsms = 0;
  for (HeadView& head : builder.heads) {
    if (head.kind == TaskKind::kOpaque) head.kind = TaskKind::kLibrary;
  }
  MakeGraphs(builder);
  return builder;
}

RC_GTEST_PROP(Adaptive, BesideTargetsAloneBeKeepsHeadroomsAndTheGate, ()) {
  SnapshotBuilder builder = SnapshotOfTargetsAlone();
  const Snapshot& s = builder.Get();
  RC_PRE(LcIsActive(s));
  const Plan plan = PlanWith(*NewPolicy("adaptive"), s);
  const std::set<PlaceIndex> lc = LcPlaces(s, plan);
  int64_t headroom_ns = kNever;
  for (const QueryView& query : s.queries) headroom_ns = std::min(headroom_ns, query.headroom_ns);
  int64_t queued_ns = s.queued_ns;
  int32_t grids = 0;
  for (int32_t i = 0; i < plan.launches.size(); ++i) {
    const PlannedLaunch& launch = plan.launches[i];
    const HeadView& task = *TaskOf(s, launch.task);
    if (IsLc(task)) queued_ns += task.remaining.duration_ns * task.ready_count;
    if (IsLc(task) || IsCopy(task) || !OverlapsAny(s, launch.place, lc)) continue;
    if (launch.reason == Reason::kCoResident) continue;  // be_pairs.h
    ++grids;
    const bool segments = launch.form == Form::kSegments;
    RC_ASSERT(launch.lane_class == (segments ? LaneClass::kBe : LaneClass::kPlain));
    RC_ASSERT(launch.form != Form::kWorkers);
    const int64_t whole_ns = task.remaining.duration_ns + task.remaining.error_ns;
    const int64_t duration_ns = segments ? std::min(whole_ns, task.eviction_p99_ns) : whole_ns;
    queued_ns += duration_ns;
    headroom_ns -= headroom_ns == kNever ? 0 : duration_ns;
  }
  RC_CLASSIFY(grids > 0, "BE beside queries");
  const auto is_grid = [&](const HeadView& task) {
    return !IsLc(task) && !IsCopy(task) && !(task.kind == TaskKind::kGraph && Evictable(s, task));
  };
  const bool any_grids =
      std::any_of(s.heads.begin(), s.heads.end(), is_grid) ||
      std::any_of(s.running.begin(), s.running.end(),
                  [&](const RunningView& running) { return is_grid(running.task); });
  if (grids == 0) return;
  for (const LcAppView& app : s.lc_apps) {
    RC_ASSERT(queued_ns <=
              app.promise.target_ns - (any_grids ? app.promise.p99_alone_ns : app.solo_ns));
    // Segments leave when a headroom is spent, and keep a reserve only where too many are late.
    const double late = any_grids ? std::max(1.0, app.target_tail) : app.target_tail - 1;
    const double reserve_ns =
        0.1 * std::max(0.0, late) * static_cast<double>(app.promise.target_ns);
    RC_ASSERT(headroom_ns >= static_cast<int64_t>(reserve_ns));
  }
  RC_ASSERT(grids <= 2);
}

RC_GTEST_PROP(Adaptive, ItsLaunchesBlockTheNextQueryBeyondTheLeastBudgetOnlyOnCredit, ()) {
  SnapshotBuilder builder = AnySnapshot();
  const Snapshot& s = builder.Get();
  const Plan plan = PlanWith(*NewPolicy("adaptive"), s);
  const std::set<PlaceIndex> lc = LcPlaces(s, plan);
  bool launched = false;
  for (int32_t i = 0; i < plan.launches.size(); ++i) {
    const PlannedLaunch& launch = plan.launches[i];
    const HeadView& task = *TaskOf(s, launch.task);
    if (!IsLc(task) && !IsCopy(task) && OverlapsAny(s, launch.place, lc)) launched = true;
  }
  const Blocking blocking = BlockingAfter(s, plan);
  if (launched) RC_ASSERT(FitsBudgets(s, blocking) || HasCredit(s, blocking));
}

RC_GTEST_PROP(Adaptive, LcReturnsToItsPlaceForBeOnlyAfterTheHysteresis, ()) {
  SnapshotBuilder builder = AnySnapshot();
  const Snapshot& s = builder.Get();
  const Plan plan = PlanWith(*NewPolicy("adaptive"), s);
  TimeNs open_at = 0;
  for (const LcAppView& app : s.lc_apps) open_at = std::max(open_at, app.idle_since_ns + 2'000);
  if (LcIsActive(s) || s.now_ns >= open_at) {
    bool blocked = false;
    for (int32_t i = 0; i < plan.holds.size(); ++i) {
      blocked |= plan.holds[i].reason == Reason::kHoldBlocking ||
                 plan.holds[i].reason == Reason::kHoldTailCredit;
    }
    // What a load keeps out is judged again while the load fades or quiet time earns credit, which
    // is no event.
    const bool changes =
        blocked && !LcIsActive(s) &&
        std::any_of(s.lc_apps.begin(), s.lc_apps.end(), [](const LcAppView& app) {
          return app.load >= 1.0 / 128 || (app.tail_need_per_ns > 0 && app.tail_credit < 100);
        });
    const TimeNs looks_at = changes ? s.now_ns + 10'000'000 : kNever;
    // A fused partner leaves before its LC kernel ends, or when a query runs late: at a time. Where
    // there are fused kernels, the LC task behind the one that is launched is planned at once.
    const bool partners = AnyFusedPart(s) || (!s.fused.empty() && !plan.launches.empty());
    if (partners) {
      RC_ASSERT(plan.replan_at_ns >= s.now_ns);
      RC_ASSERT(plan.replan_at_ns <= looks_at);
    } else {
      RC_ASSERT(plan.replan_at_ns == looks_at);
    }
    return;
  }
  const std::set<PlaceIndex> lc = LcPlaces(s, plan);
  for (int32_t i = 0; i < plan.launches.size(); ++i) {
    const PlannedLaunch& launch = plan.launches[i];
    if (IsCopy(*TaskOf(s, launch.task)) || IsBesideQueries(launch)) continue;
    RC_ASSERT(!OverlapsAny(s, launch.place, lc));
  }
  for (int32_t i = 0; i < plan.holds.size(); ++i) {
    if (plan.holds[i].reason == Reason::kHoldHysteresis) {
      RC_ASSERT(plan.replan_at_ns == open_at);
    }
  }
}

RC_GTEST_PROP(Adaptive, CopiesStayWithinTheirNumberAndTheBudgetOfEachDirection, ()) {
  SnapshotBuilder builder = AnySnapshot();
  const Snapshot& s = builder.Get();
  const Plan plan = PlanWith(*NewPolicy("adaptive"), s);
  std::map<CopyDirection, int32_t> count;
  std::map<CopyDirection, int64_t> ns;
  int64_t limit_ns = Budget(s) == kNever ? kNever : Budget(s) / 2;
  for (const QueryView& query : s.queries) limit_ns = std::min(limit_ns, query.headroom_ns);
  for (int32_t i = 0; i < plan.launches.size(); ++i) {
    const PlannedLaunch& launch = plan.launches[i];
    const HeadView& task = *TaskOf(s, launch.task);
    if (!IsCopy(task)) continue;
    const int64_t least = std::min<int64_t>(65'536, task.blocks_left);
    if (launch.reason == Reason::kTailCredit) {
      RC_ASSERT(!LcIsActive(s) && launch.blocks_max == least);
      continue;
    }
    ++count[task.direction];
    double share = 1;
    if (launch.blocks_max > 0) {
      RC_ASSERT(launch.blocks_max >= least && launch.blocks_max <= task.blocks_left);
      share = static_cast<double>(launch.blocks_max) / static_cast<double>(task.blocks_left);
    }
    ns[task.direction] +=
        static_cast<int64_t>(share * static_cast<double>(task.remaining.duration_ns));
  }
  for (const auto& [direction, copies] : count) {
    const CopyState& state = s.copies[static_cast<size_t>(direction)];
    RC_ASSERT(state.be_active + copies <= state.be_limit);
    if (state.lc_uses) RC_ASSERT(ns[direction] <= limit_ns);
  }
}

// --- baymax and smguard -------------------------------------------------------------------------

RC_GTEST_PROP(Baymax, WhatItLaunchesFitsEveryHeadroomTogether, ()) {
  SnapshotBuilder builder = AnySnapshot();
  const Snapshot& s = builder.Get();
  const Plan plan = PlanWith(*NewPolicy("baymax"), s);
  int64_t charged_ns = 0;
  for (int32_t i = 0; i < plan.launches.size(); ++i) {
    const HeadView& task = *TaskOf(s, plan.launches[i].task);
    if (!IsLc(task) && (!IsCopy(task) || task.pinned)) {
      charged_ns += task.remaining.duration_ns + task.remaining.error_ns;
    }
  }
  if (charged_ns == 0) return;
  for (const QueryView& query : s.queries) RC_ASSERT(charged_ns <= query.headroom_ns);
}

RC_GTEST_PROP(Baymax, WhatIsOnTheDeviceOfGraphsInSegmentsFitsEveryHeadroom, ()) {
  SnapshotBuilder builder = AnySnapshot();
  MakeGraphs(builder);
  const Snapshot& s = builder.Get();
  for (const char* name : {"baymax", "tacker"}) {
    const Plan plan = PlanWith(*NewPolicy(name), s);
    int64_t charged_ns = 0;
    bool segments = false;
    std::set<const KernelDesc*> graphs;
    for (int32_t i = 0; i < plan.launches.size(); ++i) {
      const PlannedLaunch& launch = plan.launches[i];
      const HeadView& task = *TaskOf(s, launch.task);
      if (IsLc(task) || (IsCopy(task) && !task.pinned)) continue;
      const int64_t whole_ns = task.remaining.duration_ns + task.remaining.error_ns;
      const bool in_segments = launch.form == Form::kSegments;
      RC_ASSERT(in_segments == (task.kind == TaskKind::kGraph && Evictable(s, task)));
      if (in_segments) RC_ASSERT(launch.lane_class == LaneClass::kBe);
      if (in_segments) RC_ASSERT(graphs.insert(task.kernel).second);
      segments = segments || in_segments;
      charged_ns += in_segments ? std::min(whole_ns, task.eviction_p99_ns) : whole_ns;
    }
    int64_t headroom_ns = kNever;
    for (const QueryView& query : s.queries) {
      headroom_ns = std::min(headroom_ns, query.headroom_ns);
    }
    const bool overlap = plan.choice.kind == ChoiceKind::kOverlap;  // has its own rule
    if (charged_ns > 0 && !overlap) RC_ASSERT(charged_ns <= headroom_ns);
    for (const RunningView& running : s.running) {
      const PartView& part = running.parts[0];
      const bool leaves = FindEviction(plan, running.task, part.place) != nullptr;
      if (part.form != Form::kSegments || part.evicting || !s.eviction_available) {
        RC_ASSERT(!leaves);
        continue;
      }
      segments = segments || !leaves;
      if (headroom_ns < 0) RC_ASSERT(leaves);
      if (leaves) RC_ASSERT(!s.lc_apps.empty());
    }
    // Time alone will make them leave.
    if (segments && !overlap && headroom_ns != kNever && plan.evictions.empty()) {
      RC_ASSERT(plan.replan_at_ns <= s.now_ns + headroom_ns + 1);
    }
  }
}

// --- tacker -------------------------------------------------------------------------------------

// Predicted end of both parts of a fused launch, by the curve of the first kernel of the pair.
double FusedNs(const Snapshot& s, KernelId variant, const HeadView& lc, const HeadView& be,
               double* error) {
  for (const FusedView& fused : s.fused) {
    if (fused.kernel->id != variant) continue;
    for (const auto& [tensor, cuda] : {std::pair{&lc, &be}, std::pair{&be, &lc}}) {
      if (fused.kernel->tensor_part != tensor->kernel->id) continue;
      if (fused.kernel->cuda_part != cuda->kernel->id) continue;
      const auto tensor_ns = static_cast<double>(tensor->remaining.duration_ns);
      const double r = static_cast<double>(cuda->remaining.duration_ns) / tensor_ns;
      const FusedCurveView& curve = fused.curve;
      const double ns = tensor_ns * (curve.intercept + curve.slope * r +
                                     curve.bend * std::max(0.0, r - curve.inflection));
      *error = curve.error * ns;
      return ns;
    }
  }
  return -1;
}

// Whether some quota or reservation bounds BE work.
bool BoundsBe(const Snapshot& s) {
  return std::any_of(s.lc_apps.begin(), s.lc_apps.end(),
                     [](const LcAppView& app) { return app.reserved_capsms > 0; }) ||
         std::any_of(s.be_apps.begin(), s.be_apps.end(),
                     [](const BeAppView& app) { return app.quota_capsms > 0; });
}

RC_GTEST_PROP(Tacker, WorkersKeepToQuotasAndOutOfReservations, ()) {
  SnapshotBuilder builder = AnySnapshot();
  const Snapshot& s = builder.Get();
  const Plan plan = PlanWith(*NewPolicy("tacker"), s);
  double reserved = 0;
  double used = 0;
  for (const LcAppView& app : s.lc_apps) reserved += app.reserved_capsms;
  for (const BeAppView& app : s.be_apps) used += app.used_capsms;
  std::map<int32_t, double> taken;
  const auto take = [&](const HeadView& be, int32_t workers) {
    const BeAppView& app = s.be_apps[static_cast<size_t>(be.app)];
    taken[be.app] += workers / 8.0;
    used += workers / 8.0;
    if (app.quota_capsms > 0) {
      RC_ASSERT(app.used_capsms + taken[be.app] <= app.quota_capsms + 1e-6);
    }
    if (reserved > 0) RC_ASSERT(used + reserved <= s.sm_count + 1e-6);
  };
  for (int32_t i = 0; i < plan.launches.size(); ++i) {
    const PlannedLaunch& launch = plan.launches[i];
    const HeadView& task = *TaskOf(s, launch.task);
    if (!IsLc(task) && launch.form == Form::kWorkers && launch.workers > 0) {
      take(task, launch.workers);
    }
  }
  for (int32_t i = 0; i < plan.evictions.size(); ++i) {
    const PlannedEviction& eviction = plan.evictions[i];
    if (LimitsPartner(plan, eviction)) {
      take(*TaskOf(s, eviction.task), eviction.workers_to_keep);
    }
  }
}

RC_GTEST_PROP(Tacker, AFusedKernelIsShorterThanItsPartsAndFitsTheLastQuerysHeadroom, ()) {
  SnapshotBuilder builder = AnySnapshot();
  RC_PRE(!builder.lc_apps.empty());
  const int32_t last = builder.AddQuery(0, Between(0, 3'000) * kUs);
  builder.AddLcKernelHead(last, 0, Pick(kDurations), static_cast<int32_t>(Between(1, 5)));
  builder.Fuse(0, 0, Pick<double>({0.3, 1, 2}), Pick<double>({1.1, 1.5, 3}));
  const Snapshot& s = builder.Get();
  const Plan plan = PlanWith(*NewPolicy("tacker"), s);
  const bool bounded = BoundsBe(s);  // kernels by themselves are workers too
  int pairs = 0;
  for (int32_t i = 0; i < plan.launches.size(); ++i) {
    const PlannedLaunch& launch = plan.launches[i];
    const HeadView& lc = *TaskOf(s, launch.task);
    if (launch.form == Form::kWorkers && !bounded) ++pairs;
    if (launch.form != Form::kFused) continue;
    ++pairs;
    const HeadView& be = *TaskOf(s, launch.fused_with);
    RC_ASSERT(IsLc(lc) && !IsLc(be) && launch.count == 1);
    RC_ASSERT(lc.query == s.queries.back().query);
    double error_ns = 0;
    const double pair_ns = FusedNs(s, launch.fused_kernel, lc, be, &error_ns);
    const auto lc_ns = static_cast<double>(lc.remaining.duration_ns);
    RC_ASSERT(pair_ns > 0 && pair_ns < lc_ns + static_cast<double>(be.remaining.duration_ns));
    const auto headroom_ns = static_cast<double>(s.queries.back().headroom_ns);
    RC_ASSERT(pair_ns + error_ns - lc_ns < headroom_ns);
    RC_TAG("fused");
  }
  RC_ASSERT(pairs <= 1);
}

// CapSMs that smguard may give to BE work. Under smguard:active reservations of silent apps do not
// count.
double FreeUnder(const std::string& name, const Snapshot& s) {
  double free = s.capsms_free;
  if (name != "smguard:active") return free;
  for (size_t app = 0; app < s.lc_apps.size(); ++app) {
    const LcAppView& view = s.lc_apps[app];
    const bool has_head = std::any_of(s.heads.begin(), s.heads.end(), [&](const HeadView& head) {
      return IsLc(head) && head.app == static_cast<int32_t>(app);
    });
    if (view.active_queries == 0 && view.tasks_in_flight == 0 && !has_head) {
      free += view.reserved_capsms;
    }
  }
  return free;
}

RC_GTEST_PROP(Smguard, NoQuotaAndNoReservationIsEverOversubscribed, ()) {
  SnapshotBuilder builder = AnySnapshot();
  const Snapshot& s = builder.Get();
  for (const char* name : {"smguard", "smguard:packed", "smguard:active"}) {
    const Plan plan = PlanWith(*NewPolicy(name), s);
    const double free = FreeUnder(name, s);
    std::map<int32_t, double> taken;
    double total = 0;
    int turns = 0;  // of work without workers, beyond the bounds
    for (int32_t i = 0; i < plan.launches.size(); ++i) {
      const PlannedLaunch& launch = plan.launches[i];
      const HeadView& task = *TaskOf(s, launch.task);
      if (IsLc(task) || IsCopy(task)) continue;
      const double capsms = launch.form == Form::kWorkers
                                ? launch.workers / 8.0
                                : s.places[static_cast<size_t>(launch.place)].sms;
      const BeAppView& view = s.be_apps[static_cast<size_t>(task.app)];
      const bool bounded = total + capsms <= free + 1e-3 &&
                           (view.quota_capsms == 0 || view.used_capsms + taken[task.app] + capsms <=
                                                          view.quota_capsms + 1e-3);
      if (launch.form != Form::kWorkers && !bounded) {
        ++turns;
        RC_ASSERT(view.used_capsms + taken[task.app] < 1e-3);
        RC_ASSERT(launch.place != kWholeDevice || !LcIsActive(s));
        continue;
      }
      taken[task.app] += capsms;
      total += capsms;
    }
    RC_ASSERT(turns <= 1);
    RC_ASSERT(total <= free + 1e-3);
    for (const auto& [app, capsms] : taken) {
      const BeAppView& view = s.be_apps[static_cast<size_t>(app)];
      if (view.quota_capsms > 0) {
        RC_ASSERT(view.used_capsms + capsms <= view.quota_capsms + 1e-3);
      }
    }
  }
}

}  // namespace
}  // namespace gpushare::core::testing
