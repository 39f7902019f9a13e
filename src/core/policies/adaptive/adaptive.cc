// adaptive: the order of the steps of one plan (adaptive.h).

#include "src/core/policies/adaptive/adaptive.h"

#include <algorithm>

#include "src/core/policies/adaptive/arrangement/lag.h"
#include "src/core/policies/adaptive/arrangement/tuning.h"
#include "src/core/policies/adaptive/candidates/beside.h"
#include "src/core/policies/adaptive/candidates/fused.h"
#include "src/core/policies/adaptive/carry_out/be_copies.h"
#include "src/core/policies/adaptive/carry_out/be_places.h"
#include "src/core/policies/adaptive/carry_out/beside_heads.h"
#include "src/core/policies/adaptive/carry_out/change.h"
#include "src/core/policies/adaptive/carry_out/empty_sms.h"
#include "src/core/policies/adaptive/carry_out/fused_heads.h"
#include "src/core/policies/adaptive/carry_out/segment_length.h"
#include "src/core/policies/parts/be_quota.h"
#include "src/core/policies/parts/bounds.h"
#include "src/core/policies/parts/eviction.h"
#include "src/core/policies/parts/launch_form.h"
#include "src/core/policies/parts/lc_activity.h"
#include "src/core/policies/parts/lc_first.h"
#include "src/core/policies/parts/quiet.h"
#include "src/core/promise/tuning.h"

namespace gpushare::core {
namespace {

LcRoute RouteOf(const Snapshot& snapshot, int32_t split, bool be_stays) {
  LcRoute route;
  route.place = LcPlaceOf(snapshot, split);
  route.evict_overlapping = snapshot.eviction_available && !be_stays;
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

// Whether time alone can change the choice of an arrangement: no query is active, and a load is not
// yet rounded to 0.
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

int64_t LcSmsOf(const Snapshot& snapshot, int32_t split) {
  return split < 0 ? snapshot.sm_count : snapshot.splits[static_cast<size_t>(split)].lc_sms;
}

// The best of all but fused partners: what they have to beat.
double BestOfOthers(const Arrangement& arrangement, const BesideQueries& beside) {
  if (beside.applies()) return beside.value();
  return arrangement.trial_kernel >= 0 ? arrangement.trial_value : arrangement.value;
}

// A forced mechanism compares no others. The whole device that is shared with active queries is
// chosen before the best split, a trial for what it hopes before the best that is known.
void NoteChoice(const Snapshot& snapshot, const Arrangement& arrangement,
                const BesideQueries& beside, const FusedPartners& fused, Plan& plan) {
  PlannedChoice& choice = plan.choice;
  if (fused.applies()) {
    choice.kind = ChoiceKind::kLayout;
    choice.chosen = snapshot.sm_count;
    choice.value = Millionths(fused.value());
    choice.shift = fused.shift();
    choice.runner_up = LcSmsOf(snapshot, beside.applies() ? kNoSplit : arrangement.split);
    choice.runner_up_value = Millionths(fused.other_value());
    choice.runner_up_shift = beside.applies() ? beside.shift() : arrangement.shift;
    return;
  }
  if (beside.value() > 0) {
    choice.kind = ChoiceKind::kLayout;
    choice.chosen = snapshot.sm_count;
    choice.value = Millionths(beside.value());
    choice.shift = beside.shift();
    choice.runner_up = LcSmsOf(snapshot, arrangement.split);
    choice.runner_up_value = Millionths(beside.split_value());
    choice.runner_up_shift = arrangement.shift;
    return;
  }
  const bool on_trial = arrangement.trial_kernel >= 0;
  const double value = on_trial ? arrangement.trial_value : arrangement.value;
  if (!(value > 0)) return;
  choice.kind = ChoiceKind::kLayout;
  choice.chosen = LcSmsOf(snapshot, arrangement.split);
  choice.value = Millionths(value);
  choice.shift = arrangement.shift;
  if (arrangement.runner_up == kNotCompared) return;
  choice.runner_up = LcSmsOf(snapshot, arrangement.runner_up);
  choice.runner_up_value = Millionths(arrangement.runner_up_value);
  choice.runner_up_shift = arrangement.runner_up_shift;
}

// From one split to another. While BE work of the old one could block LC's new route for longer
// than the budget, the old routes stay and no BE work is launched.
struct Change {
  int32_t from = kNoSplit;
  int32_t to = kNoSplit;
  int64_t blocking_ns = 0;
  int64_t budget_ns = 0;
  bool waits() const { return blocking_ns > budget_ns; }
};

// A trial begins with the route to its split.
ArrangementInForce InForce(const Snapshot& snapshot, const Arrangement& arrangement,
                           const BesideQueries& beside, const FusedPartners& fused,
                           const Change& change) {
  if (change.waits()) return snapshot.in_force;
  if (fused.applies()) return {.split = change.to, .fused = true};
  return {change.to, arrangement.trial_kernel, beside.SegmentsRunOn(arrangement)};
}

// Returns the predicted duration of the LC tasks that it launched, unless partners decide.
int64_t PlanLcHeads(const Snapshot& snapshot, FusedHeads* fused_heads, Plan& plan) {
  if (fused_heads == nullptr) return LaunchLcHeads(snapshot, plan);
  fused_heads->PlanLc(plan);
  return 0;
}

// Whether grids and segments may be on the device with queries.
bool GridsStay(const BesideQueries& beside, const FusedPartners& fused, const Change& change) {
  return beside.applies() && !fused.applies() && !change.waits();
}

uint64_t PlacesForLc(const LcActivity& lc) { return lc.active ? lc.places : 0; }

// What may not stay beside active LC work leaves: all, or all but what was chosen to stay.
void EvictForLc(const Snapshot& snapshot, const LcActivity& lc, const BesideHeads* stay,
                const FusedHeads* partners, Plan& plan) {
  if (lc.active && stay != nullptr) {
    stay->EvictForLc(plan);
  } else if (lc.active && partners != nullptr) {
    partners->EvictForLc(plan);
  } else {
    EvictBeParts(snapshot, PlacesForLc(lc), Reason::kEvictForLc, plan);
  }
}

// No BE work is launched: it waits for a change of the arrangement, or for its share of time.
void HoldAll(const Snapshot& snapshot, const Change& change, Plan& plan) {
  if (!change.waits()) return Pause(snapshot, plan);
  HoldBeCompute(snapshot, Reason::kHoldBlocking, change.blocking_ns, change.budget_ns, plan);
}

bool HoldsFor(const Plan& plan, Reason reason) {
  return std::any_of(plan.holds.begin(), plan.holds.begin() + plan.holds.size(),
                     [reason](const PlannedHold& hold) { return hold.reason == reason; });
}

// Time alone ends some holds: a load fades, quiet time earns credit, an app is silent at last.
void LookAgain(const Snapshot& snapshot, const LcActivity& lc, Plan& plan) {
  const bool changes = LoadFades(snapshot, lc) || AccountsGrow(snapshot, lc);
  if (!changes) return;
  if (!HoldsFor(plan, Reason::kHoldBlocking) && !HoldsFor(plan, Reason::kHoldTailCredit)) return;
  plan.replan_at_ns = std::min(plan.replan_at_ns, snapshot.now_ns + kLoadLookNs);
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
bool AdaptivePolicy::HasDuty(int32_t split) const {
  return mechanism_ == Mechanism::kBest && split == kNoSplit;
}

bool AdaptivePolicy::IsPaused(const Snapshot& snapshot, int32_t split) const {
  return HasDuty(split) && snapshot.now_ns < snapshot.be_paused_until_ns;
}

bool AdaptivePolicy::HoldsAll(const Snapshot& snapshot, bool change_waits, int32_t split) const {
  return change_waits || IsPaused(snapshot, split);
}

bool AdaptivePolicy::SharesSms() const {
  return mechanism_ == Mechanism::kBest && sharing_ == SmSharing::kWhereItPays;
}

// The best arrangement by the loads; the whole device while the lag forbids its split. A trial has
// bounds of its own.
const Arrangement& AdaptivePolicy::Choose(const Snapshot& snapshot, Plan& plan) {
  const Arrangement& best = chooser_.Choose(snapshot, shifts_, plan);
  if (mechanism_ != Mechanism::kBest || best.split == kNoSplit || best.trial_kernel >= 0) {
    return best;
  }
  if (MayTakeQueries(snapshot, chooser_.question(), best)) return best;
  left_ = best;
  left_.split = kNoSplit;
  left_.value = best.whole_value;
  left_.shift = LatencyShift();
  left_.runner_up = best.split;
  left_.runner_up_value = best.value;
  left_.runner_up_shift = best.shift;
  return left_;
}

void AdaptivePolicy::MakePlan(const Snapshot& snapshot, Plan& plan) {
  if (PlanQuiesced(snapshot, plan)) return;
  shifts_.Follow(snapshot);
  const Arrangement& apart = Choose(snapshot, plan);
  const BesideQueries beside(snapshot, apart, SharesSms());
  const FusedPartners fused(snapshot, apart, BestOfOthers(apart, beside), shifts_, SharesSms());
  NoteChoice(snapshot, apart, beside, fused, plan);
  const Arrangement& arrangement = beside.applies() || fused.applies() ? whole_ : apart;
  const int32_t in_force = snapshot.in_force.split;
  const Change change = {in_force, arrangement.split,
                         BlockingOfChange(snapshot, in_force, arrangement.split),
                         MinBlockingBudget(snapshot)};
  plan.arrangement = InForce(snapshot, arrangement, beside, fused, change);
  const bool holds_all = HoldsAll(snapshot, change.waits(), arrangement.split);
  const bool stays = GridsStay(beside, fused, change);
  PublishRoutes(snapshot,
                RouteOf(snapshot, plan.arrangement.split, stays && beside.terms().any_segments),
                plan);

  FairShare shares(snapshot);
  FusedHeads fused_heads(snapshot, fused, shares);
  FusedHeads* const partners = fused.applies() && !holds_all ? &fused_heads : nullptr;
  const int64_t lc_ahead_ns = PlanLcHeads(snapshot, partners, plan);
  const LcActivity lc = FindLcActivity(snapshot, plan);
  const BesideHeads beside_heads(snapshot, beside.terms());
  EvictForLc(snapshot, lc, stays ? &beside_heads : nullptr, partners, plan);
  EvictForChange(snapshot, arrangement.split, PlacesForLc(lc), plan);
  EvictOverQuotas(snapshot, plan);
  if (holds_all) {
    HoldAll(snapshot, change, plan);
  } else if (stays) {
    beside_heads.PlanHeads(lc, lc_ahead_ns, plan);
  } else if (partners == nullptr || !partners->PlanBe(lc, plan)) {
    FillPlaces(snapshot, arrangement, lc, shares, plan);
  }
  PlanBeCopies(snapshot, lc, shares, plan);
  PlanSegmentLength(snapshot, lc, shifts_, plan);
  LetGridsWait(snapshot, plan);
  LookAgain(snapshot, lc, plan);
}

void AdaptivePolicy::FillPlaces(const Snapshot& snapshot, const Arrangement& arrangement,
                                const LcActivity& lc, FairShare& shares, Plan& plan) {
  const BePlaces::Rules rules = {mechanism_ != Mechanism::kBest, SharesSms()};
  BePlaces places(snapshot, arrangement, lc, rules, shares, shifts_);
  places.Fill(plan);
  places.HoldRest(plan);
  if (HasDuty(arrangement.split)) {
    plan.replan_at_ns = std::min(plan.replan_at_ns, snapshot.be_pauses_at_ns);
  }
}

}  // namespace gpushare::core
