// partitioned: jobs on their partitions, BE work on the rest (partitioned.h).

#include "src/core/policies/papers/partitioned.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>

#include "src/core/policies/parts/copy_slots.h"
#include "src/core/policies/parts/eviction.h"
#include "src/core/policies/parts/fair_share.h"
#include "src/core/policies/parts/launch_form.h"
#include "src/core/policies/parts/quiet.h"
#include "src/core/seams/launch_claims.h"

namespace gpushare::core {
namespace {

// BE launches on the rest: one fills its SMs, a second hides the launch latency.
constexpr int32_t kLaunchesOnRest = 2;
// On an idle partition. Two would lengthen each other's block tasks, and so the eviction that the
// plan charged.
constexpr int32_t kLaunchesInSlack = 1;

// What one partition has at the time of a plan.
struct PartitionState {
  bool idle = true;                // none of its apps has a job
  const HeadView* next = nullptr;  // shared: the head with the earliest deadline
  TimeNs next_deadline_ns = kNever;
  bool next_overran = false;
  const RealTimeView* on_device = nullptr;  // shared: the app whose job is on the device
};

class PartitionedPlan {
 public:
  PartitionedPlan(const Snapshot& snapshot, Plan& plan)
      : snapshot_(snapshot), view_(*snapshot.partitions), plan_(plan) {}

  void Make() {
    FindStates();
    PublishPartitionRoutes();
    LaunchJobs();
    const uint64_t open = OpenToBe();
    EvictBeParts(snapshot_, ~(open | PlacesOfAwaited()), Reason::kEvictForLc, plan_);
    LaunchBe(open);
    for (const PartitionView& partition : view_.partitions) {
      plan_.places_wanted |= PlaceBit(partition.place);
    }
    if (view_.rest != kNoPlace) plan_.places_wanted |= PlaceBit(view_.rest);
  }

 private:
  const RealTimeView& AppOf(size_t lc_app) const { return view_.apps[lc_app]; }
  const RealTimeView& AppOf(const HeadView& head) const {
    return AppOf(static_cast<size_t>(head.app));
  }
  PartitionState& StateOf(const RealTimeView& app) {
    return states_[static_cast<size_t>(app.partition)];
  }
  bool IsShared(const RealTimeView& app) const { return view_.partitions[app.partition].shared; }

  // The deadline of the head's job; of a job that the snapshot does not show, behind all others.
  TimeNs DeadlineOf(const HeadView& head) const {
    const auto* const query =
        std::find_if(snapshot_.queries.begin(), snapshot_.queries.end(),
                     [&](const QueryView& of) { return of.query == head.query; });
    if (query == snapshot_.queries.end()) return kNever;
    return query->arrival_ns + AppOf(head).deadline_ns;
  }

  void FindStates() {
    FindHeld();
    for (size_t app = 0; app < snapshot_.lc_apps.size(); ++app) {
      const LcAppView& lc = snapshot_.lc_apps[app];
      const RealTimeView& job = AppOf(app);
      const bool active = (lc.active_queries > 0 && !held_[app]) || lc.tasks_in_flight > 0;
      if (lc.tasks_in_flight > 0) NoteWork(job);
      if (job.partition < 0) {
        rest_has_lc_ = rest_has_lc_ || active;
        continue;
      }
      PartitionState& state = StateOf(job);
      state.idle = state.idle && !active;
      if (lc.tasks_in_flight > 0) state.on_device = &job;
    }
    for (const HeadView& head : snapshot_.heads) {
      if (head.app_class != AppClass::kLatencyCritical) break;  // LC heads come first
      const RealTimeView& job = AppOf(head);
      if (!MayLaunch(head)) continue;
      NoteWork(job);
      if (job.partition < 0) {
        rest_has_lc_ = true;
        continue;
      }
      PartitionState& state = StateOf(job);
      state.idle = false;
      const TimeNs deadline_ns = DeadlineOf(head);
      if (state.next == nullptr || std::tie(job.overran, deadline_ns) <
                                       std::tie(state.next_overran, state.next_deadline_ns)) {
        state.next = &head;
        state.next_overran = job.overran;
        state.next_deadline_ns = deadline_ns;
      }
    }
  }

  void FindHeld() {
    for (const HeadView& head : snapshot_.heads) {
      if (head.app_class != AppClass::kLatencyCritical) break;
      if (!MayLaunch(head)) held_[static_cast<size_t>(head.app)] = true;
    }
  }

  // LC work is on the device, or goes there now. A query that waits for other work is not meant.
  void NoteWork(const RealTimeView& app) {
    (app.partition < 0 ? rest_works_ : partitions_work_) = true;
  }

  // Work that no place holds is on all SMs, those of every partition too. For an app with a
  // partition that breaks what the plan assumed of it, and is reported (flow/verbs/queries/jobs.h).
  bool MayLaunch(const HeadView& head) const {
    return AppOf(head).partition >= 0 || (view_.rest != kNoPlace && head.confinable);
  }

  // A submitter launches by itself where nothing has to be ordered or evicted.
  void PublishPartitionRoutes() {
    for (size_t app = 0; app < snapshot_.lc_apps.size(); ++app) {
      LcRoute& route = plan_.routes[app];
      const RealTimeView& job = AppOf(app);
      const bool apart = job.partition >= 0 && !IsShared(job);
      route.fast_path = apart && view_.slack_eviction_ns == 0;
      if (job.partition >= 0) {
        route.place = view_.partitions[job.partition].place;
      } else if (view_.rest != kNoPlace) {
        route.place = view_.rest;
      }
    }
  }

  void LaunchJobs() {
    for (const HeadView& head : snapshot_.heads) {
      if (head.app_class != AppClass::kLatencyCritical) break;
      const RealTimeView& job = AppOf(head);
      if (!MayLaunch(head)) {
        plan_.holds.TryAdd({.task = head.task, .reason = Reason::kHoldLane});
      } else if (job.partition >= 0 && IsShared(job)) {
        TakeTurn(head, StateOf(job));
      } else {
        Launch(head, head.ready_count);
      }
    }
  }

  // In a shared partition.
  void TakeTurn(const HeadView& head, const PartitionState& state) {
    if (&head == state.next && state.on_device == nullptr) return Launch(head, 1);
    plan_.holds.TryAdd({.task = head.task, .reason = Reason::kHoldLcActive});
    if (&head == state.next && !state.next_overran) EndBudget(*state.on_device);
  }

  // A job with time of its own waits for this one.
  void EndBudget(const RealTimeView& on_device) {
    if (on_device.running.value == 0 || on_device.leaving) return;
    if (!on_device.overran && snapshot_.now_ns < on_device.budget_end_ns) {
      plan_.replan_at_ns = std::min(plan_.replan_at_ns, on_device.budget_end_ns);
    } else if (on_device.has_word) {
      plan_.evictions.TryAdd({.task = on_device.running,
                              .place = view_.partitions[on_device.partition].place,
                              .reason = Reason::kEvictForQuota});
    }
  }

  void Launch(const HeadView& head, int32_t count) {
    const RealTimeView& job = AppOf(head);
    const LcRoute& route = plan_.routes[static_cast<size_t>(head.app)];
    PlannedLaunch launch =
        MakeLaunch(head.task, OrdinaryForm(head.kind), head.confinable ? route.place : kWholeDevice,
                   LaneClass::kLc, Reason::kLcFirst);
    launch.count = count;
    // BE lanes alone have an eviction word.
    const bool evictable = job.partition >= 0 && IsShared(job) && job.evictable &&
                           head.kind == TaskKind::kKernel && head.confinable &&
                           CanBeEvicted(snapshot_, head);
    if (evictable) {
      launch.form = Form::kWorkers;
      launch.lane_class = LaneClass::kBe;
    }
    plan_.launches.TryAdd(launch);
  }

  // Places where BE work may be now.
  uint64_t OpenToBe() const {
    uint64_t open = 0;
    const auto add = [&](PlaceIndex place) {
      if (snapshot_.places[static_cast<size_t>(place)].ready) open |= PlaceBit(place);
    };
    if (view_.rest != kNoPlace && !rest_has_lc_) add(view_.rest);
    if (view_.slack_eviction_ns == 0 || !snapshot_.eviction_available) return open;
    for (int32_t p = 0; p < view_.partitions.size(); ++p) {
      if (states_[static_cast<size_t>(p)].idle) add(view_.partitions[p].place);
    }
    return open;
  }

  bool LeavesInTime(const HeadView& task) const {
    return CanBeEvicted(snapshot_, task) && task.eviction_known &&
           task.eviction_p99_ns <= view_.slack_eviction_ns;
  }

  void CountBe() {
    for (const RunningView& running : snapshot_.running) {
      if (!IsBeCompute(running.task)) continue;
      for (const PartView& part : running.parts) {
        if (part.place < 0) continue;
        Count(part.place, part.form);
      }
    }
  }
  void Count(PlaceIndex place, Form form) {
    // A graph in segments has its lane to itself.
    on_place_[static_cast<size_t>(place)] += form == Form::kSegments ? kLaunchesOnRest : 1;
  }
  bool HasRoom(PlaceIndex place, Form form) const {
    const int32_t launches = on_place_[static_cast<size_t>(place)];
    if (launches == 0) return true;
    const int32_t most = place == view_.rest ? kLaunchesOnRest : kLaunchesInSlack;
    return form != Form::kSegments && launches < most;
  }

  // The first place that is open to the task; kNoPlace: none.
  PlaceIndex PlaceFor(const HeadView& head, Form form, uint64_t open) const {
    if (view_.rest != kNoPlace && (open & PlaceBit(view_.rest)) != 0 && HasRoom(view_.rest, form)) {
      return view_.rest;
    }
    if (!LeavesInTime(head)) return kNoPlace;
    for (const PartitionView& partition : view_.partitions) {
      if ((open & PlaceBit(partition.place)) != 0 && HasRoom(partition.place, form)) {
        return partition.place;
      }
    }
    return kNoPlace;
  }

  // The place of a task that LC work waits for, where it has none of its own: that LC work would
  // wait for ever. It stays away from LC work that does not wait.
  PlaceIndex PlaceForAwaited(const HeadView& head, Form form) const {
    if (!head.awaited_by_lc || rest_works_) return kNoPlace;
    if (head.confinable && view_.rest != kNoPlace) {
      const bool ready = snapshot_.places[static_cast<size_t>(view_.rest)].ready;
      return ready && HasRoom(view_.rest, form) ? view_.rest : kNoPlace;
    }
    return !partitions_work_ && HasRoom(kWholeDevice, form) ? kWholeDevice : kNoPlace;
  }

  // Where PlaceForAwaited had tasks that are not done: they stay as long as it would put them
  // there.
  uint64_t PlacesOfAwaited() const {
    uint64_t places = 0;
    for (const RunningView& running : snapshot_.running) {
      if (!running.task.awaited_by_lc || rest_works_) continue;
      for (const PartView& part : running.parts) {
        const bool on_rest = part.place >= 0 && part.place == view_.rest;
        const bool on_all = part.place == kWholeDevice && !partitions_work_;
        if (on_rest || on_all) places |= PlaceBit(part.place);
      }
    }
    return places;
  }

  void LaunchBe(uint64_t open) {
    CountBe();
    FairShare shares(snapshot_);
    CopySlots slots(snapshot_, shares);
    BeOrder order;
    shares.Order(order);
    for (const HeadView* const head : order) {
      if (head->kind == TaskKind::kMemcpy) {
        LaunchCopy(*head, slots, shares);
      } else {
        LaunchCompute(*head, open, shares);
      }
    }
    for (const RunningView& running : snapshot_.running) Widen(running, open);
  }

  void LaunchCopy(const HeadView& head, CopySlots& slots, FairShare& shares) {
    if (!slots.Free(head)) {
      plan_.holds.TryAdd(slots.Hold(head));
    } else if (plan_.launches.TryAdd(MakeLaunch(head.task, Form::kMemcpy, kWholeDevice,
                                                LaneClass::kCopy, Reason::kBesidePartition))) {
      slots.Take(head);
      shares.Charge(head);
    }
  }

  void LaunchCompute(const HeadView& head, uint64_t open, FairShare& shares) {
    const Form form = EvictableForm(snapshot_, head);
    PlaceIndex place = head.confinable ? PlaceFor(head, form, open) : kNoPlace;
    if (place == kNoPlace) place = PlaceForAwaited(head, form);
    if (place == kNoPlace) {
      Reason reason = open == 0 ? Reason::kHoldLcActive : Reason::kHoldWindow;
      if (!head.confinable) reason = Reason::kHoldLane;
      plan_.holds.TryAdd({.task = head.task, .reason = reason});
      return;
    }
    const Reason reason = head.resumed ? Reason::kResume : Reason::kBesidePartition;
    if (!plan_.launches.TryAdd(MakeLaunch(head.task, form, place, LaneClass::kBe, reason))) return;
    Count(place, form);
    shares.Charge(head);
  }

  // Workers of a task that runs, on each open place that has none.
  void Widen(const RunningView& running, uint64_t open) {
    const HeadView& task = running.task;
    const bool more = IsBeCompute(task) && task.kind == TaskKind::kKernel && !running.draining &&
                      running.places != 0 && LeavesInTime(task) &&
                      (running.places & PlaceBit(kWholeDevice)) == 0;
    if (!more) return;
    int32_t parts = running.parts.size();
    for (const PartitionView& partition : view_.partitions) {
      const PlaceIndex place = partition.place;
      if (parts == kMaxPartsPerTask) return;
      if ((open & PlaceBit(place)) == 0 || on_place_[static_cast<size_t>(place)] > 0) continue;
      if (!plan_.launches.TryAdd(MakeLaunch(task.task, Form::kWorkers, place, LaneClass::kBe,
                                            Reason::kElasticReturn))) {
        return;
      }
      Count(place, Form::kWorkers);
      ++parts;
    }
  }

  const Snapshot& snapshot_;
  const PartitionsView& view_;
  Plan& plan_;
  std::array<PartitionState, kMaxPartitions> states_;
  bool rest_has_lc_ = false;
  std::array<bool, kMaxApps> held_{};  // a head waits for the end of the plan; BE work does not
  // LC work that is on the device or launched by this plan: of apps without a partition, with one.
  bool rest_works_ = false;
  bool partitions_work_ = false;
  std::array<int32_t, kMaxPlaces> on_place_{};
};

}  // namespace

void PartitionedPolicy::MakePlan(const Snapshot& snapshot, Plan& plan) {
  if (snapshot.partitions == nullptr) return without_plan_.MakePlan(snapshot, plan);
  if (PlanQuiesced(snapshot, plan)) return;
  PartitionedPlan(snapshot, plan).Make();
}

}  // namespace gpushare::core
