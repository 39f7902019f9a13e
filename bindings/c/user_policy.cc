// A policy of the application's own; see user_policy.h.

#include "bindings/c/user_policy.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bindings/c/errors.h"
#include "bindings/c/field_count.h"
#include "bindings/c/handles.h"
#include "bindings/c/objects.h"
#include "bindings/c/options.h"
#include "src/core/base/limits.h"
#include "src/core/base/tuning.h"

namespace gpushare::abi {
namespace {

// A user's plan states every field of these structs but for PlannedLaunch::fused_kernel, which is
// the pair's first, Plan::dropped, which the library counts, Plan::places_wanted: what the plan
// names, ArrangementInForce::fused, which no view of it shows, and LcRoute::cuts_graphs, which is
// false: under a user's policy LC graphs run whole, because its views do not say where a graph may
// be cut (LcAppView::pieces).
GPUSHARE_ALL_FIELDS_CONVERTED(core::PlannedLaunch, 10);
GPUSHARE_ALL_FIELDS_CONVERTED(core::PlannedEviction, 4);
GPUSHARE_ALL_FIELDS_CONVERTED(core::PlannedHold, 4);
GPUSHARE_ALL_FIELDS_CONVERTED(core::LcRoute, 6);
GPUSHARE_ALL_FIELDS_CONVERTED(core::ArrangementInForce, 4);
GPUSHARE_ALL_FIELDS_CONVERTED(core::PlannedChoice, 8);
GPUSHARE_ALL_FIELDS_CONVERTED(core::LatencyShift, 2);
GPUSHARE_ALL_FIELDS_CONVERTED(core::Plan, 10);

static_assert(GPUSHARE_PLAN_ACTIONS_MAX == core::kMaxPlannedActions);
static_assert(static_cast<int>(core::LaneClass::kCopy) == GPUSHARE_LANE_COPY);
static_assert(static_cast<int>(core::ChoiceKind::kOverlap) == GPUSHARE_CHOICE_OVERLAP);
static_assert(core::kNever == GPUSHARE_NEVER);
static_assert(core::PlannedChoice::kNoRunnerUp == -1 && core::LatencyShift::kUnknown == -1);

bool InRange(int32_t value, int32_t most) { return value >= 0 && value <= most; }

uint32_t Bounded(uint32_t count) { return std::min<uint32_t>(count, GPUSHARE_PLAN_ACTIONS_MAX); }

// Zeroes the entries of the last plan: a policy may fill an entry field by field.
template <class Entry>
void Clear(std::array<Entry, GPUSHARE_PLAN_ACTIONS_MAX>& entries, uint32_t count) {
  std::fill_n(entries.begin(), Bounded(count), Entry{});
}

core::Reason ReasonOf(gpushare_reason reason) {
  if (reason <= GPUSHARE_REASON_NONE || reason > UINT8_MAX) return core::Reason::kUserPolicy;
  return static_cast<core::Reason>(reason);
}

core::PlannedLaunch From(const gpushare_planned_launch& launch) {
  core::PlannedLaunch out;
  out.task = core::TicketId{launch.task.value};
  out.count = std::max(1, launch.count);
  out.form = static_cast<core::Form>(launch.form);
  out.place = launch.place;
  out.lane_class = static_cast<core::LaneClass>(launch.lane_class);
  out.workers = launch.workers;
  out.blocks_max = launch.blocks_max;
  out.fused_with = core::TicketId{launch.fused_with.value};
  out.reason = ReasonOf(launch.reason);
  return out;
}

core::PlannedEviction From(const gpushare_planned_eviction& eviction) {
  return {core::TicketId{eviction.task.value}, eviction.place, eviction.workers_to_keep,
          ReasonOf(eviction.reason)};
}

core::PlannedHold From(const gpushare_planned_hold& hold) {
  return {core::TicketId{hold.task.value}, ReasonOf(hold.reason), hold.value_ns, hold.limit_ns};
}

core::LcRoute NoFastPath() {
  core::LcRoute route;
  route.fast_path = false;
  return route;
}

core::LcRoute From(const gpushare_lc_route& route) {
  core::LcRoute out;
  out.place = route.place;
  out.lane_class = static_cast<core::LaneClass>(route.lane_class);
  out.fast_path = route.fast_path == 1;
  out.evict_overlapping = route.evict_overlapping == 1;
  return out;
}

// Takes over the entries that are valid, and counts the others and those beyond the room.
template <class Entries, class List, class IsValid>
void TakeValid(const Entries& entries, uint32_t count, core::Plan& plan, List& list,
               const IsValid& is_valid) {
  plan.dropped += count - Bounded(count);
  for (uint32_t i = 0; i < Bounded(count); ++i) {
    if (is_valid(entries[i])) {
      list.TryAdd(From(entries[i]));
    } else {
      ++plan.dropped;
    }
  }
}

}  // namespace

UserPolicy::UserPolicy(const gpushare_policy_table& table, const Log& log)
    : table_(table), user_("policy", table.name, table.destroy, table.user, log) {
  table_.name = nullptr;  // the caller's string lives only for the call
}

void UserPolicy::Prepare() {
  Clear(launches_, plan_.launch_count);
  Clear(evictions_, plan_.eviction_count);
  Clear(holds_, plan_.hold_count);
  plan_ = {};
  plan_.struct_size = sizeof(plan_);
  plan_.launches = launches_.data();
  plan_.evictions = evictions_.data();
  plan_.holds = holds_.data();
  plan_.routes = routes_.data();
  plan_.replan_at_ns = GPUSHARE_NEVER;
  plan_.arrangement = {core::kNoSplit, core::ArrangementInForce::kNoTrial, GPUSHARE_SEGMENTS_NONE,
                       0};
  plan_.choice.runner_up = core::PlannedChoice::kNoRunnerUp;
  plan_.choice.shift_ns = plan_.choice.shift_limit_ns = core::LatencyShift::kUnknown;
  plan_.choice.runner_up_shift_ns = plan_.choice.shift_ns;
  plan_.choice.runner_up_shift_limit_ns = plan_.choice.shift_ns;
  plan_.waits_for_empty_sms = waits_for_empty_sms_.data();
  waits_for_empty_sms_.fill(0);
  routes_.fill({core::kWholeDevice, GPUSHARE_LANE_LC, 0, 0});
}

void UserPolicy::TakeOver(const core::Snapshot& snapshot, core::Plan& plan) const {
  const auto last_place = static_cast<int32_t>(snapshot.places.size()) - 1;
  TakeLaunches(last_place, plan);
  TakeEvictions(last_place, plan);
  TakeHolds(plan);
  TakeRoutes(snapshot.lc_apps.size(), last_place, plan);
  TakeArrangement(snapshot, plan);
  TakeChoice(plan);
  plan.longest_segment_ns = std::max<int64_t>(0, plan_.longest_segment_ns);
  if (plan.longest_segment_ns > core::kMaxDurationNs) plan.longest_segment_ns = core::kNever;
  // A time that has come asks for nothing: the answer would be the same plan, for ever.
  plan.replan_at_ns = plan_.replan_at_ns > snapshot.now_ns
                          ? std::max(plan_.replan_at_ns, snapshot.now_ns + core::kUserReplanNsMin)
                          : core::kNever;
}

void UserPolicy::TakeLaunches(int32_t last_place, core::Plan& plan) const {
  TakeValid(launches_, plan_.launch_count, plan, plan.launches,
            [last_place](const gpushare_planned_launch& launch) {
              return launch.task.value != 0 && InRange(launch.form, GPUSHARE_FORM_SEGMENTS) &&
                     InRange(launch.place, last_place) &&
                     InRange(launch.lane_class, GPUSHARE_LANE_COPY) && launch.workers >= 0 &&
                     launch.blocks_max >= 0 && launch.count >= 0 && launch.reserved[0] == 0 &&
                     launch.reserved[1] == 0;
            });
}

void UserPolicy::TakeEvictions(int32_t last_place, core::Plan& plan) const {
  TakeValid(evictions_, plan_.eviction_count, plan, plan.evictions,
            [last_place](const gpushare_planned_eviction& eviction) {
              return eviction.task.value != 0 && InRange(eviction.place, last_place) &&
                     eviction.workers_to_keep >= 0 && eviction.reserved == 0;
            });
}

void UserPolicy::TakeHolds(core::Plan& plan) const {
  TakeValid(holds_, plan_.hold_count, plan, plan.holds,
            [](const gpushare_planned_hold& hold) { return hold.reserved == 0; });
}

// An app whose entry is malformed has the default route, and its submitters launch nothing.
void UserPolicy::TakeRoutes(size_t lc_apps, int32_t last_place, core::Plan& plan) const {
  plan.routes.fill(NoFastPath());
  for (size_t i = 0; i < lc_apps; ++i) {
    const gpushare_lc_route& route = routes_[i];
    if (!InRange(route.place, last_place) || !InRange(route.lane_class, GPUSHARE_LANE_COPY)) {
      continue;
    }
    plan.routes[i] = From(route);
    plan.routes[i].waits_for_empty_sms = waits_for_empty_sms_[i] == 1;
  }
}

// The evidence follows what is stated, so that it must name a split and a kernel that exist.
void UserPolicy::TakeArrangement(const core::Snapshot& snapshot, core::Plan& plan) const {
  const gpushare_arrangement& stated = plan_.arrangement;
  const auto last_split = static_cast<int32_t>(snapshot.splits.size()) - 1;
  const bool on_split = InRange(stated.split, last_split);
  const bool trial_valid =
      on_split && snapshot.trials_open && InRange(stated.trial_kernel, snapshot.pairs.kernels - 1);
  if ((!on_split && stated.split != core::kNoSplit) ||
      (!trial_valid && stated.trial_kernel != core::ArrangementInForce::kNoTrial) ||
      !InRange(stated.segments, GPUSHARE_SEGMENTS_ON_SPLIT) || stated.reserved != 0) {
    ++plan.dropped;
    return;
  }
  plan.arrangement = {stated.split, stated.trial_kernel,
                      static_cast<core::SegmentsRun>(stated.segments)};
}

void UserPolicy::TakeChoice(core::Plan& plan) const {
  const gpushare_planned_choice& choice = plan_.choice;
  if (!InRange(choice.kind, GPUSHARE_CHOICE_OVERLAP) || choice.reserved != 0) {
    ++plan.dropped;
    return;
  }
  core::PlannedChoice& out = plan.choice;
  out.kind = static_cast<core::ChoiceKind>(choice.kind);
  out.tasks = {core::TicketId{choice.tasks[0].value}, core::TicketId{choice.tasks[1].value}};
  out.chosen = choice.chosen;
  out.runner_up = choice.runner_up;
  out.value = choice.value;
  out.runner_up_value = choice.runner_up_value;
  out.shift = {choice.shift_ns, choice.shift_limit_ns};
  out.runner_up_shift = {choice.runner_up_shift_ns, choice.runner_up_shift_limit_ns};
}

void UserPolicy::MakePlan(const core::Snapshot& snapshot, core::Plan& plan) {
  const gpushare_snapshot& views = views_.Convert(snapshot);
  Prepare();
  {
    const TableScope scope(
        "A policy's make_plan calls gpushare, and it may only read its snapshot.");
    table_.make_plan(table_.user, &views, &plan_);
  }
  TakeOver(snapshot, plan);
}

namespace {

absl::Status CheckTable(const gpushare_policy_table& table) {
  if (table.version != GPUSHARE_POLICY_VERSION) {
    return absl::UnimplementedError(absl::StrCat("The policy table has version ", table.version,
                                                 ", and this library knows version ",
                                                 GPUSHARE_POLICY_VERSION, "."));
  }
  GPUSHARE_RETURN_IF_ERROR(CheckName("policy_table.name", table.name));
  if (table.make_plan == nullptr) {
    return absl::InvalidArgumentError("policy_table.make_plan is null.");
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace gpushare::abi

gpushare_status gpushare_set_user_policy(gpushare_runtime* runtime,
                                         const gpushare_policy_table* table) noexcept {
  return gpushare::abi::Enter([&]() -> absl::Status {
    GPUSHARE_FIND(object, runtime);
    gpushare_policy_table known;
    GPUSHARE_RETURN_IF_ERROR(gpushare::abi::ReadOptions("policy_table", table, &known));
    GPUSHARE_RETURN_IF_ERROR(gpushare::abi::CheckTable(known));
    auto policy = std::make_unique<gpushare::abi::UserPolicy>(known, object->log);
    gpushare::abi::UserPolicy* const taken = policy.get();
    taken->Arm();
    return object->scheduler->SetPolicy(std::move(policy));
  });
}
