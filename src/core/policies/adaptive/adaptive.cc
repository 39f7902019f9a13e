// adaptive: the order of the steps of one plan (adaptive.h).

#include "src/core/policies/adaptive/adaptive.h"

#include <algorithm>

#include "src/core/base/tuning.h"
#include "src/core/policies/adaptive/be_copies.h"
#include "src/core/policies/adaptive/be_grids.h"
#include "src/core/policies/adaptive/be_places.h"
#include "src/core/policies/adaptive/empty_sms.h"
#include "src/core/policies/adaptive/layout/layout_change.h"
#include "src/core/policies/adaptive/lc_overlap.h"
#include "src/core/policies/parts/be_quota.h"
#include "src/core/policies/parts/bounds.h"
#include "src/core/policies/parts/eviction.h"
#include "src/core/policies/parts/launch_form.h"
#include "src/core/policies/parts/lc_activity.h"
#include "src/core/policies/parts/lc_first.h"
#include "src/core/policies/parts/quiet.h"

namespace gpushare::core {
namespace {

LcRoute RouteOf(const Snapshot& snapshot, int32_t layout, bool overlaps) {
  LcRoute route;
  route.place = LcPlaceOf(snapshot, layout);
  route.evict_overlapping = snapshot.eviction_available && !overlaps;
  return route;
}

void HoldBeCompute(const Snapshot& snapshot, Reason reason, int64_t value_ns, int64_t limit_ns,
                   Plan& plan) {
  for (const HeadView& head : snapshot.heads) {
    if (head.app_class != AppClass::kBestEffort || head.kind == TaskKind::kMemcpy) continue;
    plan.holds.TryAdd({head.task, reason, value_ns, limit_ns});
  }
}

// BE work leaves the whole device until its next share of time begins.
void Pause(const Snapshot& snapshot, Plan& plan) {
  const auto is_evicted = [&](const RunningView& running) {
    return std::any_of(
        plan.evictions.begin(), plan.evictions.end(), [&](const PlannedEviction& eviction) {
          return eviction.task == running.task.task && eviction.place == kWholeDevice;
        });
  };
  for (const RunningView& running : snapshot.running) {
    if (!IsBeCompute(running.task) || !snapshot.eviction_available || is_evicted(running)) continue;
    EvictTaskParts(running, PlaceBit(kWholeDevice), Reason::kHoldDuty, plan);
  }
  HoldBeCompute(snapshot, Reason::kHoldDuty, snapshot.now_ns, snapshot.be_paused_until_ns, plan);
  plan.replan_at_ns = std::min(plan.replan_at_ns, snapshot.be_paused_until_ns);
}

// Whether time alone can change the choice of a layout: no query is active, and a load is not yet
// rounded to 0.
bool LoadFades(const Snapshot& snapshot, const LcActivity& lc) {
  if (lc.active) return false;  // the query's end causes a plan
  return std::any_of(snapshot.lc_apps.begin(), snapshot.lc_apps.end(), HasLoad);
}

bool AccountsGrow(const Snapshot& snapshot, const LcActivity& lc) {
  if (lc.active) return false;
  return std::any_of(snapshot.lc_apps.begin(), snapshot.lc_apps.end(), [](const LcAppView& app) {
    return app.tail_need_per_ns > 0 && app.tail_credit < kTailCreditMax;
  });
}

int64_t LcSmsOf(const Snapshot& snapshot, int32_t layout) {
  return layout < 0 ? snapshot.sm_count : snapshot.splits[static_cast<size_t>(layout)].lc_sms;
}

// A trial is not chosen for its value, and a forced mechanism compares no others. `shared_value`:
// of the whole device, shared with active queries; 0: it is not. `split_value`: of the best split
// then.
void NoteChoice(const Snapshot& snapshot, const Layout& layout, double shared_value,
                double split_value, Plan& plan) {
  PlannedChoice& choice = plan.choice;
  if (shared_value > 0) {
    choice.kind = ChoiceKind::kLayout;
    choice.chosen = snapshot.sm_count;
    choice.value = Millionths(shared_value);
    choice.runner_up = LcSmsOf(snapshot, layout.split);
    choice.runner_up_value = Millionths(split_value);
    return;
  }
  if (!(layout.value > 0) || layout.trial_kernel >= 0) return;
  choice.kind = ChoiceKind::kLayout;
  choice.chosen = LcSmsOf(snapshot, layout.split);
  choice.value = Millionths(layout.value);
  if (layout.runner_up == kUnknownLayout) return;
  choice.runner_up = LcSmsOf(snapshot, layout.runner_up);
  choice.runner_up_value = Millionths(layout.runner_up_value);
}

bool HoldsFor(const Plan& plan, Reason reason) {
  return std::any_of(plan.holds.begin(), plan.holds.begin() + plan.holds.size(),
                     [reason](const PlannedHold& hold) { return hold.reason == reason; });
}

}  // namespace

absl::string_view AdaptivePolicy::name() const {
  switch (mechanism_) {
    case Mechanism::kEvict:
      return "adaptive:evict";
    case Mechanism::kPartition:
      return "adaptive:partition";
    case Mechanism::kElastic:
      return "adaptive:elastic";
    case Mechanism::kBest:
      break;
  }
  return sharing_ == SmSharing::kNone ? "adaptive:apart" : "adaptive";
}

// Whether BE work takes turns with queries on the whole device, as its duty was measured.
bool AdaptivePolicy::HasDuty(const Layout& layout) const {
  return mechanism_ == Mechanism::kBest && layout.split == kWholeLayout;
}

void AdaptivePolicy::MakePlan(const Snapshot& snapshot, Plan& plan) {
  if (PlanQuiesced(snapshot, plan)) return;
  const int32_t current = CurrentLayout(snapshot);
  idle_shares_.Follow(snapshot);
  const Layout& apart = layouts_.Choose(snapshot, current, idle_shares_);
  const bool shares_sms = mechanism_ == Mechanism::kBest && sharing_ == SmSharing::kWhereItPays;
  const LcOverlap overlap(snapshot, apart, current, shares_sms);
  const BeGrids grids(snapshot, apart, current, shares_sms && !overlap.applies());
  const double shared_value = overlap.applies() ? overlap.value() : grids.value();
  const Layout whole{};
  const Layout& layout = overlap.applies() || grids.applies() ? whole : apart;
  const double split_value = overlap.applies() ? apart.value : grids.split_value();
  NoteChoice(snapshot, apart, shared_value, split_value, plan);
  const int64_t budget_ns = MinBlockingBudget(snapshot);
  const int64_t change_ns = BlockingOfChange(snapshot, current, layout.split);
  const bool waits_for_change = change_ns > budget_ns;
  // A trial begins with the route to its split.
  const bool begun = snapshot.trial.split == layout.split;
  if (layout.trial_kernel >= 0 && (begun || !waits_for_change)) {
    plan.trial_split = layout.split;
    plan.trial_kernel = layout.trial_kernel;
  }

  if (!waits_for_change) plan.segments_run = grids.SegmentsRunOn(layout);
  const bool stays = overlap.applies() || (grids.applies() && grids.any_segments());
  PublishRoutes(
      snapshot,
      RouteOf(snapshot, waits_for_change ? current : layout.split, stays && !waits_for_change),
      plan);
  const int64_t lc_ahead_ns = LaunchLcHeads(snapshot, plan);
  const LcActivity lc = FindLcActivity(snapshot, plan);
  const uint64_t for_lc = lc.active ? lc.places : 0;
  if (overlap.applies() && lc.active) {
    overlap.EvictForLc(plan);
  } else if (grids.applies() && lc.active && !waits_for_change) {
    grids.EvictForLc(plan);
  } else {
    EvictBeParts(snapshot, for_lc, Reason::kEvictForLc, plan);
  }
  EvictForLayout(snapshot, layout.split, for_lc, plan);
  EvictOverQuotas(snapshot, plan);

  if (waits_for_change) {
    HoldBeCompute(snapshot, Reason::kHoldBlocking, change_ns, budget_ns, plan);
  } else if (HasDuty(layout) && snapshot.now_ns < snapshot.be_paused_until_ns) {
    Pause(snapshot, plan);
  } else if (grids.applies()) {
    grids.PlanHeads(lc, lc_ahead_ns, plan);
  } else {
    const bool forced = mechanism_ != Mechanism::kBest;
    BePlaces places(snapshot, layout, lc, {forced, shares_sms}, idle_shares_);
    if (overlap.applies() && lc.active) {
      const HeadView* const beside = overlap.LaunchBeside(plan);
      if (beside != nullptr) places.LeaveOut(*beside);
    }
    places.Fill(plan);
    places.HoldRest(plan);
    if (HasDuty(layout)) plan.replan_at_ns = std::min(plan.replan_at_ns, snapshot.be_pauses_at_ns);
  }
  PlanBeCopies(snapshot, lc, plan);
  LetGridsWait(snapshot, plan);
  // Time alone ends these holds: a load fades, quiet time earns credit, an app is silent at last.
  const bool changes = LoadFades(snapshot, lc) || AccountsGrow(snapshot, lc);
  if (changes &&
      (HoldsFor(plan, Reason::kHoldBlocking) || HoldsFor(plan, Reason::kHoldTailCredit))) {
    plan.replan_at_ns = std::min(plan.replan_at_ns, snapshot.now_ns + kLoadLookNs);
  }
}

}  // namespace gpushare::core
