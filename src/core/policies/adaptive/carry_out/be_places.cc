// BE work for the places that an arrangement opens (be_places.h).

#include "src/core/policies/adaptive/carry_out/be_places.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "src/core/base/tuning.h"
#include "src/core/policies/adaptive/arrangement/tuning.h"
#include "src/core/policies/parts/eviction.h"
#include "src/core/policies/parts/launch_form.h"
#include "src/core/seams/launch_claims.h"

namespace gpushare::core {
namespace {

// Order in which holds are expected to clear. A head is held with the hold that clears first, of
// all places.
constexpr std::array kFirstToClear = {Reason::kHoldWindow, Reason::kHoldHysteresis,
                                      Reason::kHoldLcActive};
size_t Rank(Reason reason) {
  const auto* const found = std::find(kFirstToClear.begin(), kFirstToClear.end(), reason);
  return static_cast<size_t>(found - kFirstToClear.begin());
}

// The BE task of the only live part on the place; null where there are more, or one of this plan.
const RunningView* OnlyRunningOn(const Snapshot& snapshot, PlaceIndex place) {
  const RunningView* only = nullptr;
  for (const RunningView& running : snapshot.running) {
    if (!IsBeCompute(running.task) || (running.places & PlaceBit(place)) == 0) continue;
    if (only != nullptr) return nullptr;
    only = &running;
  }
  return only;
}

}  // namespace

BePlaces::BePlaces(const Snapshot& snapshot, const Arrangement& arrangement, const LcActivity& lc,
                   Rules rules, FairShare& shares, Shifts& shifts)
    : snapshot_(snapshot),
      lc_(lc),
      shares_(shares),
      places_(snapshot, arrangement, lc),
      judge_(snapshot, arrangement, lc, rules.forced, places_, shares_, shifts),
      pairs_(snapshot, places_, judge_, shares_, rules.shares_sms),
      turn_(snapshot, places_, judge_, shares_) {}

Reason BePlaces::LaunchReason(const HeadView& task, const BePlace& place) const {
  if (task.resumed) return Reason::kResume;
  if (!place.overlaps_lc) {
    return snapshot_.lc_apps.empty() ? Reason::kIdleDevice : Reason::kBesidePartition;
  }
  return judge_.shift().limit_ns() == kNever ? Reason::kIdleDevice : Reason::kFitsBlockingBudget;
}

bool BePlaces::Launch(const HeadView& task, BePlace& place, Reason reason, int32_t workers,
                      Plan& plan) {
  if (judge_.JudgeBlocking(task, place).on_credit) reason = Reason::kTailCredit;
  PlannedLaunch launch =
      MakeLaunch(task.task, EvictableForm(snapshot_, task), place.index, LaneClass::kBe, reason);
  launch.workers =
      places_.quotas().BoundsWorkers(task) ? places_.quotas().WorkersLeft(task) : workers;
  const bool all = launch.workers == 0 && launch.form == Form::kWorkers;
  const Width width = all ? judge_.WidthOn(task, place) : Width();
  const int32_t fewer = width.workers_per_sm;
  if (fewer > 0) launch.workers = fewer * snapshot_.places[static_cast<size_t>(place.index)].sms;
  if (!plan.launches.TryAdd(launch)) return false;
  // The SMs have room for a second task, whose workers would make those of the first one slower.
  if (fewer > 0) place.window = 1;
  places_.Take(task, place, width);
  return true;
}

// Whether a part of the task may join those on the other side of the split. The parts share one
// counter of block tasks.
bool BePlaces::MayJoinParts(const HeadView& task, const BePlace& place) const {
  return CanBeEvicted(snapshot_, task) && !RunsInSegments(snapshot_, task) && !IsShort(task) &&
         judge_.MayLaunch(task, place);
}

// Whether workers of the task run on the other side of the split, and it may have more parts.
bool BePlaces::RunsOnOtherSide(const RunningView& running, const BePlace& place) const {
  const uint64_t sides = PlaceBit(places_.BeSide().index) | PlaceBit(places_.LcSide().index);
  if ((running.places & sides & ~PlaceBit(place.index)) == 0) return false;
  if (running.parts.size() >= kMaxPartsPerTask) return false;
  return std::none_of(running.parts.begin(), running.parts.end(), [&](const PartView& part) {
    return part.place == place.index || !HasWorkers(part.form);
  });
}

bool BePlaces::ReturnRunning(BePlace& place, Plan& plan) {
  if (place.role != PlaceRole::kBeSide && place.role != PlaceRole::kLcSide) return false;
  for (const RunningView& running : snapshot_.running) {
    const HeadView& task = running.task;
    if (!IsBeCompute(task) || !RunsOnOtherSide(running, place)) continue;
    if (!MayJoinParts(task, place) || turn_.Displaces(task)) continue;
    return Launch(task, place, Reason::kElasticReturn, 0, plan);
  }
  return false;
}

// The head that is next by weight of those that may use the place.
const HeadView* BePlaces::NextHead(const BePlace& place) const {
  const size_t count = std::min<size_t>(snapshot_.heads.size(), kMaxHeads);
  const HeadView* best = nullptr;
  for (size_t h = 0; h < count; ++h) {
    const HeadView& head = snapshot_.heads[h];
    if (!IsBeCompute(head) || launched_[h]) continue;
    if (best != nullptr && !shares_.GoesBefore(head, *best)) continue;
    if (!judge_.MayUse(head, place) || judge_.JudgeRoom(head, place).reason != Reason::kNone)
      continue;
    if (OlderNeedsRoom(head)) continue;
    best = &head;
    if (snapshot_.be_apps.size() == 1) break;  // none goes before the oldest
  }
  return best;
}

// A head that was just launched on the other side gets a part on this side too.
bool BePlaces::LaunchRecent(BePlace& place, Plan& plan) {
  if (recent_ < 0 || recent_place_ == place.index) return false;
  const HeadView& head = snapshot_.heads[static_cast<size_t>(recent_)];
  if (!MayJoinParts(head, place)) return false;
  Launch(head, place, Reason::kElasticReturn, 0, plan);
  return true;
}

void BePlaces::LaunchHead(BePlace& place, Plan& plan) {
  if (LaunchRecent(place, plan)) return;
  const HeadView* const best = NextHead(place);
  // A graph in segments waits until the place is empty, and nobody goes before it meanwhile.
  if (best == nullptr || judge_.MustWaitAlone(*best, place) || turn_.LeavesSides(*best, place)) {
    return;
  }
  BePlace& chosen =
      place.role == PlaceRole::kBeSide && turn_.PrefersWhole(*best) ? places_.Whole() : place;
  const bool pairs = chosen.live == 0 && pairs_.MayPairOn(chosen);
  const BePair pair = pairs ? pairs_.FindPartner(*best, false, 0, *best, chosen) : BePair();
  if (pair.partner == nullptr) {
    LaunchNext(*best, chosen, LaunchReason(*best, chosen), 0, plan);
  } else if (LaunchNext(*best, chosen, Reason::kCoResident, pair.workers_per_sm, plan)) {
    LaunchPartner(*best, pair, chosen, plan);
  }
}

// Launches a head: it is charged, and no second time a head of this plan.
bool BePlaces::LaunchNext(const HeadView& head, BePlace& place, Reason reason,
                          int32_t workers_per_sm, Plan& plan) {
  if (!Launch(head, place, reason, workers_per_sm * snapshot_.sm_count, plan)) return false;
  const size_t index = snapshot_.heads.IndexOf(head);
  launched_.set(index);
  recent_ = static_cast<int32_t>(index);
  recent_place_ = place.index;
  shares_.Charge(head);
  return true;
}

bool BePlaces::LaunchPartner(const HeadView& task, const BePair& pair, BePlace& place, Plan& plan) {
  const auto pair_with = [&](const HeadView& other) {
    return PlannedChoice::PairOf(task.kernel->id, other.kernel->id);
  };
  const HeadView& partner = *pair.partner;
  if (!LaunchNext(partner, place, Reason::kCoResident, pair.partner_workers_per_sm, plan)) {
    return false;
  }
  plan.choice = {.kind = ChoiceKind::kCoSchedule,
                 .tasks = {task.task, partner.task},
                 .chosen = pair_with(partner),
                 .value = Millionths(pair.gain / (1 + pair.gain))};  // CP
  if (pair.runner_up != nullptr) {
    plan.choice.runner_up = pair_with(*pair.runner_up);
    plan.choice.runner_up_value = Millionths(pair.runner_up_gain / (1 + pair.runner_up_gain));
  }
  return true;
}

// Beside a task that has a part of each SM: a task that pairs with it. Beside a task that has all
// of them: nothing, where the next tasks of both would make a pair.
bool BePlaces::PairWithNext(const RunningView& running, bool narrow, BePlace& place, Plan& plan) {
  const HeadView& task = running.task;
  if (!narrow && !task.followed) return false;
  const HeadView* const next = NextHead(place);
  if (next == nullptr) return false;
  const int32_t width = narrow ? pairs_.WidthOf(running) : 0;
  const BePair pair = pairs_.FindPartner(task, true, width, *next, place);
  if (pair.partner == nullptr) return false;
  if (narrow) return LaunchPartner(task, pair, place, plan);
  if (shares_.LeavesTo(*pair.partner, task.app)) return false;
  place.window = 1;
  return true;
}

bool BePlaces::PairRunning(BePlace& place, Plan& plan) {
  const RunningView* const running = OnlyRunningOn(snapshot_, place.index);
  if (running != nullptr && judge_.WidthOn(running->task, place).workers_per_sm > 0) {
    place.window = 1;
    return false;
  }
  if (!pairs_.MayPairOn(place)) return false;
  if (running == nullptr || turn_.Displaces(running->task)) return false;
  const bool narrow = pairs_.IsNarrow(*running);
  if (PairWithNext(*running, narrow, place, plan)) return true;
  // Alone, it gets the rest of each SM.
  const HeadView& task = running->task;
  if (!narrow || running->draining || IsShort(task)) return false;
  const int32_t rest = task.kernel->resources.workers_per_sm_max - pairs_.WidthOf(*running);
  return Launch(task, place, Reason::kCoResident, rest * snapshot_.sm_count, plan);
}

// Whether an older task of the same app waits for its quota's room in a home. Younger ones would
// take that room again and again.
bool BePlaces::OlderNeedsRoom(const HeadView& task) const {
  if (!places_.quotas().any() ||
      snapshot_.be_apps[static_cast<size_t>(task.app)].quota_capsms <= 0) {
    return false;
  }
  const size_t count = std::min<size_t>(snapshot_.heads.size(), kMaxHeads);
  for (size_t h = 0; h < count; ++h) {
    const HeadView& head = snapshot_.heads[h];
    if (!IsBeCompute(head) || launched_[h] || head.app != task.app) continue;
    if (head.sequence >= task.sequence || !places_.quotas().IsConfined(head)) continue;
    const BePlace* home = places_.HomeOf(head);
    if (home != nullptr && home->closed == Reason::kNone &&
        judge_.JudgeBlocking(head, *home).reason == Reason::kNone) {
      return true;
    }
  }
  return false;
}

// At the end of the hysteresis, and of a gap between steps.
void BePlaces::LookWhenPlacesOpen(Plan& plan) const {
  for (const BePlace& place : places_.all()) {
    if (place.closed == Reason::kHoldHysteresis) plan.replan_at_ns = lc_.open_at_ns;
  }
  const TimeNs gap_until_ns = judge_.shift().gap_until_ns();
  if (gap_until_ns == 0 || lc_.active) return;
  plan.replan_at_ns = std::min(plan.replan_at_ns, gap_until_ns);
}

void BePlaces::Fill(Plan& plan) {
  turn_.ReturnSegments(plan);
  turn_.EvictForNext(plan);
  if (places_.any_be()) LookWhenPlacesOpen(plan);
  for (int32_t depth = 0; depth < kQuotaLanes; ++depth) {
    recent_ = -1;
    for (BePlace& place : places_.all()) {
      if (place.closed != Reason::kNone || place.live != depth) continue;
      if (depth >= kBeWindowPerPlace && !place.within_quotas) continue;
      if (depth == 0 ? ReturnRunning(place, plan) : PairRunning(place, plan)) continue;
      LaunchHead(place, plan);
    }
  }
}

// Of the reasons that hold the head, by place, the one that is expected to clear first.
inline void BePlaces::FindHold(const HeadView& head, PlannedHold& hold) const {
  hold.reason = Reason::kHoldWindow;
  hold.value_ns = hold.limit_ns = 0;
  size_t first_rank = kFirstToClear.size() + 1;
  for (const BePlace& place : places_.all()) {
    if (!judge_.MayUse(head, place)) continue;
    const Judgement judgement = judge_.Judge(head, place);
    if (judgement.reason == Reason::kNone) {  // the plan was full
      hold.reason = Reason::kHoldWindow;
      hold.value_ns = hold.limit_ns = kMaxPlannedActions;
      return;
    }
    const size_t rank = Rank(judgement.reason);
    if (rank >= first_rank) continue;
    first_rank = rank;
    hold.reason = judgement.reason;
    hold.value_ns = judgement.value_ns;
    hold.limit_ns = judgement.limit_ns;
    if (rank == 0) return;  // nothing clears before it
  }
}

void BePlaces::HoldRest(Plan& plan) const {
  const size_t count = std::min<size_t>(snapshot_.heads.size(), kMaxHeads);
  const HeadView* judged = nullptr;
  for (size_t h = 0; h < count; ++h) {
    const HeadView& head = snapshot_.heads[h];
    if (!IsBeCompute(head) || launched_[h]) continue;
    // Time alone ends its wait for an empty place.
    if (head.runs_alone) {
      plan.replan_at_ns = std::min(plan.replan_at_ns, head.ready_ns + kBePassedNsMax + 1);
    }
    if (plan.holds.full()) continue;
    // Filled in place: a copy of what was just written in parts waits for these writes.
    PlannedHold& hold = plan.holds.Add();
    hold.task = head.task;
    if (judged == nullptr || !judge_.AreAlike(head, *judged)) {
      FindHold(head, hold);
    } else {
      const PlannedHold& last = plan.holds[plan.holds.size() - 2];
      hold.reason = last.reason;
      hold.value_ns = last.value_ns;
      hold.limit_ns = last.limit_ns;
    }
    judged = &head;
  }
}

}  // namespace gpushare::core
