// BE work for the places that a layout opens (be_places.h).

#include "src/core/policies/be_places.h"

#include <algorithm>
#include <bit>

#include "src/core/policies/blocking.h"
#include "src/core/policies/bounds.h"
#include "src/core/policies/eviction.h"
#include "src/core/policies/idle_share.h"
#include "src/core/policies/launch_form.h"
#include "src/core/policies/worst_latency.h"
#include "src/core/seams/launch_claims.h"

namespace gpushare::core {
namespace {

// Copies are planned by be_copies.h.
bool IsBeCompute(const HeadView& task) {
  return task.app_class == AppClass::kBestEffort && task.kind != TaskKind::kMemcpy;
}

// Order in which holds are expected to clear. A head is held with the hold that clears first, of
// all places.
int Rank(Reason reason) {
  switch (reason) {
    case Reason::kHoldWindow:
      return 0;
    case Reason::kHoldHysteresis:
      return 1;
    case Reason::kHoldLcActive:
      return 2;
    default:
      return 3;
  }
}

// Whether the rest of the task is not worth a launch of its own.
bool IsShort(const HeadView& task) { return task.remaining.duration_ns < kElasticPartNsMin; }

}  // namespace

BePlaces::BePlaces(const Snapshot& snapshot, const Layout& layout, const LcActivity& lc,
                   bool forced)
    : snapshot_(snapshot),
      layout_(layout),
      lc_(lc),
      forced_(forced),
      budgets_(snapshot),
      shares_(snapshot),
      quotas_(snapshot, layout.split) {
  if (layout.split >= 0) {
    const SplitView& split = snapshot.splits[static_cast<size_t>(layout.split)];
    AddPlace(split.be_place, Role::kBeSide);
    AddPlace(split.lc_place, Role::kLcSide);
    AddPlace(kWholeDevice, Role::kUnconfined);
  } else {
    AddPlace(kWholeDevice, Role::kWhole);
  }
  if (quotas_.any()) AddHomes();
  CountLive();
  for (const HeadView& head : snapshot.heads) any_be_ = any_be_ || IsBeCompute(head);
  FindUnconfinable();
}

void BePlaces::AddPlace(PlaceIndex index, Role role) {
  Place& place = places_[place_count_++];
  place.index = index;
  place.role = role;
  place.overlaps_lc = (lc_.places & PlaceBit(index)) != 0;
  if (!place.overlaps_lc) return;
  if (lc_.active) {
    place.closed = Reason::kHoldLcActive;
  } else if (snapshot_.now_ns < lc_.open_at_ns) {
    place.closed = Reason::kHoldHysteresis;
  }
}

// Each home once, where it is no side of the layout.
void BePlaces::AddHomes() {
  const auto add = [&](const HeadView& task) {
    if (!IsBeCompute(task) || !quotas_.IsConfined(task)) return;
    const PlaceIndex home = quotas_.HomeOf(task);
    const auto end = places_.begin() + place_count_;
    const auto is_home = [&](const Place& place) { return place.index == home; };
    if (std::any_of(places_.begin(), end, is_home)) return;
    if (place_count_ < places_.size()) AddPlace(home, Role::kHome);
  };
  for (const RunningView& running : snapshot_.running) add(running.task);
  for (const HeadView& head : snapshot_.heads) add(head);
}

// Whether the place lies beside the LC side of a split.
bool BePlaces::IsBesideLc(const Place& place) const {
  return place.role == Role::kBeSide || (place.role == Role::kHome && layout_.split >= 0);
}

void BePlaces::CountLive() {
  for (const RunningView& running : snapshot_.running) {
    if (!IsBeCompute(running.task)) continue;
    any_be_ = true;
    if (running.draining && running.task.followed) draining_ |= uint64_t{1} << running.task.app;
    int64_t fixed_ns = 0;
    for (const PartView& part : running.parts) {
      if (part.place < 0) continue;
      if ((lc_.places & PlaceBit(part.place)) != 0) {
        const int64_t blocking_ns = RemainingOn(snapshot_, running.task, part.place);
        if (ClaimsBlockTasks(part.form) && snapshot_.eviction_available) {
          eviction_ns_ = std::max(eviction_ns_, std::min(blocking_ns, running.task.eviction_ns));
        } else {
          fixed_ns = std::max(fixed_ns, blocking_ns);
        }
      }
      if (part.evicting) {
        if (part.form == Form::kSegments) {
          leaving_ |= snapshot_.places[static_cast<size_t>(part.place)].overlaps;
        }
        continue;
      }
      for (size_t p = 0; p < place_count_; ++p) {
        Place& place = places_[p];
        if (place.index != part.place) continue;
        AddLive(running.task, place);
      }
    }
    fixed_ns_ = SumNs(fixed_ns_, fixed_ns);
  }
}

// Whether the pair table has the task's effect on LC apps beside it.
bool BePlaces::IsMeasured(const HeadView& task) const {
  return task.kernel_index >= 0 &&
         task.kernel_index < std::min(snapshot_.pairs.kernels, kMaxKernels);
}

Sides BePlaces::SidesOf(const HeadView& task) const {
  return IsMeasured(task) ? layout_.sides[static_cast<size_t>(task.kernel_index)] : Sides::kBoth;
}

// Whether a task of this kind may ever use the place. A kernel that the layout excludes from both
// sides is judged, and held, on the BE side.
bool BePlaces::MayUse(const HeadView& task, const Place& place) const {
  if (quotas_.IsConfined(task)) return quotas_.HomeOf(task) == place.index;
  if (quotas_.IsUnbounded(task)) return place.index == kWholeDevice;
  switch (place.role) {
    case Role::kWhole:
      return true;
    case Role::kBeSide:
      return task.confinable;
    case Role::kLcSide:
      return task.confinable && SidesOf(task) == Sides::kBoth && !RunsInSegments(snapshot_, task);
    case Role::kUnconfined:
      // A kernel that the layout excludes and nothing evicts would otherwise wait for as long as
      // the layout lasts.
      return !task.confinable ||
             (RunsInSegments(snapshot_, task) && SidesOf(task) == Sides::kBoth) ||
             (!CanBeEvicted(snapshot_, task) && SidesOf(task) == Sides::kNone);
    case Role::kHome:
      return false;
  }
  return false;
}

BePlaces::Judgement BePlaces::JudgeBlocking(const HeadView& task, const Place& place) const {
  const bool evictable = CanBeEvicted(snapshot_, task);
  const int64_t blocking_ns = BlockingOn(snapshot_, task, place.index);
  int64_t fixed_ns = 0;
  int64_t eviction_ns = 0;
  if (IsBesideLc(place)) {
    if (SidesOf(task) == Sides::kNone) {
      const LatencyEstimate worst = WorstLatency(snapshot_, task.kernel_index, layout_.split);
      const Judgement held = {Reason::kHoldBlocking, worst.value_ns, worst.limit_ns};
      // Confined work has no other place.
      return quotas_.IsConfined(task) ? JudgeCredit(blocking_ns, held) : held;
    }
    // Work that is no registered kernel has no measured pair: its blocking time must fit instead.
    if (!IsMeasured(task)) (evictable ? eviction_ns : fixed_ns) = blocking_ns;
  } else if (!(evictable && forced_)) {
    fixed_ns = evictable ? fixed_ns_ : SumNs(fixed_ns_, blocking_ns);
    eviction_ns = evictable ? std::max(eviction_ns_, blocking_ns) : eviction_ns_;
  }
  const int64_t total_ns = SumNs(budgets_.AsEviction(fixed_ns), eviction_ns);
  if (total_ns <= budgets_.eviction_ns) return {};
  if (!IsBesideLc(place) &&
      IsSharedPeriod(snapshot_, IdleShare(snapshot_, eviction_ns, fixed_ns))) {
    return {};
  }
  const Judgement held = evictable
                             ? Judgement{Reason::kHoldBlocking, total_ns, budgets_.eviction_ns}
                             : Judgement{Reason::kHoldBlocking, budgets_.AsUncuttable(total_ns),
                                         budgets_.uncuttable_ns};
  return JudgeCredit(SumNs(fixed_ns, eviction_ns), held);
}

// Work that blocks longer than a budget may start on credit.
BePlaces::Judgement BePlaces::JudgeCredit(int64_t blocking_ns, const Judgement& blocking) const {
  const CreditAnswer answer = AskTailAccounts(snapshot_, blocking_ns);
  if (answer.covered) return {.on_credit = true};
  if (answer.need <= 0) return blocking;
  constexpr double kThousandths = 1000;
  return {Reason::kHoldTailCredit, static_cast<int64_t>(answer.need * kThousandths),
          static_cast<int64_t>(std::max(0.0, answer.credit) * kThousandths)};
}

BePlaces::Judgement BePlaces::HoldForQuota(const HeadView& task) const {
  const PlannedHold hold = quotas_.HoldOf(task);
  return {hold.reason, hold.value_ns, hold.limit_ns};
}

BePlaces::Judgement BePlaces::Judge(const HeadView& task, const Place& place) const {
  const Judgement room = JudgeRoom(task, place);
  if (room.reason != Reason::kNone || !MustWaitAlone(task, place)) return room;
  return {Reason::kHoldWindow, place.live, 1};
}

BePlaces::Judgement BePlaces::JudgeRoom(const HeadView& task, const Place& place) const {
  const Judgement blocking = JudgeBlocking(task, place);
  if (blocking.reason != Reason::kNone) return blocking;
  if (!quotas_.HasRoom(task, place.index)) return HoldForQuota(task);
  if (place.closed == Reason::kHoldHysteresis) {
    return {place.closed, snapshot_.now_ns, lc_.open_at_ns};
  }
  if (place.closed != Reason::kNone) {
    return {place.closed, BlockingOn(snapshot_, task, place.index), 0};
  }
  if (place.live >= kBeWindowPerPlace || SharesQueue(task, place) || LeavesPlace(task, place)) {
    return {Reason::kHoldWindow, place.live, kBeWindowPerPlace};
  }
  return {};
}

// Whether the task, or what shares SMs with the place, runs alone. The last segments of an evicted
// graph would wait behind the task as long as it runs.
bool BePlaces::MustWaitAlone(const HeadView& task, const Place& place) const {
  const uint64_t bit = PlaceBit(place.index);
  return ((leaving_ | alone_) & bit) != 0 || (RunsAlone(task) && (live_ & bit) != 0);
}

bool BePlaces::MayLaunch(const HeadView& task, const Place& place) const {
  return MayUse(task, place) && Judge(task, place).reason == Reason::kNone;
}

bool BePlaces::SharesQueue(const HeadView& task, const Place& place) const {
  const int32_t known = std::min(place.live, kBeWindowPerPlace);
  for (int32_t i = 0; i < known; ++i) {
    if (place.queues[static_cast<size_t>(i)] == task.queue) return true;
  }
  return false;
}

// The place behind a running task, or beside the rest of one that drains on the other side, belongs
// to its app where that app is next by weight.
bool BePlaces::LeavesPlace(const HeadView& task, const Place& place) const {
  for (uint64_t apps = draining_; apps != 0; apps &= apps - 1) {
    if (shares_.LeavesTo(task, std::countr_zero(apps))) return true;
  }
  const int32_t known = std::min(place.live, kBeWindowPerPlace);
  for (int32_t i = 0; i < known; ++i) {
    if (shares_.LeavesTo(task, place.next[static_cast<size_t>(i)])) return true;
  }
  return false;
}

void BePlaces::AddLive(const HeadView& task, Place& place) {
  if (place.live < kBeWindowPerPlace) {
    place.queues[static_cast<size_t>(place.live)] = task.queue;
    place.next[static_cast<size_t>(place.live)] = task.followed ? task.app : -1;
  }
  ++place.live;
  const uint64_t shared = snapshot_.places[static_cast<size_t>(place.index)].overlaps;
  live_ |= shared;
  if (RunsAlone(task)) alone_ |= shared;
}

Reason BePlaces::LaunchReason(const HeadView& task, const Place& place) const {
  if (task.resumed) return Reason::kResume;
  if (!place.overlaps_lc) {
    return snapshot_.lc_apps.empty() ? Reason::kIdleDevice : Reason::kBesidePartition;
  }
  return budgets_.eviction_ns == kNever ? Reason::kIdleDevice : Reason::kFitsBlockingBudget;
}

bool BePlaces::Launch(const HeadView& task, Place& place, Reason reason, Plan& plan) {
  if (JudgeBlocking(task, place).on_credit) reason = Reason::kTailCredit;
  PlannedLaunch launch =
      MakeLaunch(task.task, EvictableForm(snapshot_, task), place.index, LaneClass::kBe, reason);
  if (quotas_.BoundsWorkers(task)) launch.workers = quotas_.WorkersLeft(task);
  if (!plan.launches.TryAdd(launch)) return false;
  quotas_.Take(task, place.index);
  AddLive(task, place);
  if (place.overlaps_lc) {
    const int64_t blocking_ns = BlockingOn(snapshot_, task, place.index);
    if (CanBeEvicted(snapshot_, task)) {
      eviction_ns_ = std::max(eviction_ns_, blocking_ns);
    } else {
      fixed_ns_ = SumNs(fixed_ns_, blocking_ns);
    }
  }
  return true;
}

// Launches another part of a task that runs on the other side of the split. The parts share one
// counter of block tasks.
bool BePlaces::ReturnRunning(Place& place, Plan& plan) {
  if (place.role != Role::kBeSide && place.role != Role::kLcSide) return false;
  const uint64_t other = PlaceBit(places_[0].index) | PlaceBit(places_[1].index);
  for (const RunningView& running : snapshot_.running) {
    const HeadView& task = running.task;
    if (!IsBeCompute(task) || !CanBeEvicted(snapshot_, task)) continue;
    if (RunsInSegments(snapshot_, task)) continue;
    if ((running.places & other & ~PlaceBit(place.index)) == 0) continue;
    if (running.parts.size() >= kMaxPartsPerTask) continue;
    if (IsShort(task)) continue;
    bool joins = true;
    for (const PartView& part : running.parts) {
      if (part.place == place.index || !HasWorkers(part.form)) joins = false;
    }
    if (!joins || !MayLaunch(task, place)) continue;
    if (unconfinable_ != nullptr && shares_.Displaces(*unconfinable_, task)) continue;
    return Launch(task, place, Reason::kElasticReturn, plan);
  }
  return false;
}

bool BePlaces::LaunchHead(Place& place, Plan& plan) {
  // A head that was just launched on the other side gets a part on this side too.
  if (recent_ >= 0 && recent_place_ != place.index) {
    const HeadView& head = snapshot_.heads[static_cast<size_t>(recent_)];
    if (CanBeEvicted(snapshot_, head) && !RunsInSegments(snapshot_, head) &&
        MayLaunch(head, place) && !IsShort(head)) {
      return Launch(head, place, Reason::kElasticReturn, plan);
    }
  }
  const size_t count = std::min<size_t>(snapshot_.heads.size(), kMaxHeads);
  const HeadView* best = nullptr;
  size_t best_index = 0;
  for (size_t h = 0; h < count; ++h) {
    const HeadView& head = snapshot_.heads[h];
    if (!IsBeCompute(head) || launched_[h]) continue;
    if (best != nullptr && !shares_.GoesBefore(head, *best)) continue;
    if (!MayUse(head, place) || JudgeRoom(head, place).reason != Reason::kNone) continue;
    if (OlderNeedsRoom(head)) continue;
    best = &head;
    best_index = h;
  }
  // A graph in segments waits until the place is empty, and nobody goes before it meanwhile.
  if (best == nullptr || MustWaitAlone(*best, place) || LeavesSides(*best, place)) return false;
  Place& chosen = place.role == Role::kBeSide && PrefersWhole(*best) ? places_[2] : place;
  if (!Launch(*best, chosen, LaunchReason(*best, chosen), plan)) return false;
  launched_.set(best_index);
  recent_ = static_cast<int32_t>(best_index);
  recent_place_ = chosen.index;
  shares_.Charge(*best);
  return true;
}

const BePlaces::Place* BePlaces::HomeOf(const HeadView& task) const {
  const PlaceIndex home = quotas_.HomeOf(task);
  for (size_t p = 0; p < place_count_; ++p) {
    if (places_[p].index == home) return &places_[p];
  }
  return nullptr;
}

// Whether an older task of the same app waits for its quota's room in a home. Younger ones would
// take that room again and again.
bool BePlaces::OlderNeedsRoom(const HeadView& task) const {
  if (!quotas_.any() || snapshot_.be_apps[static_cast<size_t>(task.app)].quota_capsms <= 0) {
    return false;
  }
  const size_t count = std::min<size_t>(snapshot_.heads.size(), kMaxHeads);
  for (size_t h = 0; h < count; ++h) {
    const HeadView& head = snapshot_.heads[h];
    if (!IsBeCompute(head) || launched_[h] || head.app != task.app) continue;
    if (head.sequence >= task.sequence || !quotas_.IsConfined(head)) continue;
    const Place* home = HomeOf(head);
    if (home != nullptr && home->closed == Reason::kNone &&
        JudgeBlocking(head, *home).reason == Reason::kNone) {
      return true;
    }
  }
  return false;
}

// Whether a graph in segments that a side would take runs on the whole device instead: while no
// query is active it may use both sides, and its eviction returns it to the BE side.
bool BePlaces::PrefersWhole(const HeadView& task) const {
  return RunsInSegments(snapshot_, task) && !IsShort(task) && MayLaunch(task, places_[2]);
}

// Evicts a graph in segments from the BE side once the whole device is open: its rest is a head
// when it has left, and takes the whole. Other BE work would take the side before.
void BePlaces::ReturnSegments(Plan& plan) const {
  if (layout_.split < 0 || places_[2].closed != Reason::kNone || !plan.evictions.empty()) return;
  const auto others =
      std::count_if(snapshot_.running.begin(), snapshot_.running.end(),
                    [](const RunningView& running) { return IsBeCompute(running.task); });
  if (others > 1) return;
  if (std::any_of(snapshot_.heads.begin(), snapshot_.heads.end(), IsBeCompute)) return;
  for (const RunningView& running : snapshot_.running) {
    const HeadView& task = running.task;
    if (!IsBeCompute(task) || !RunsInSegments(snapshot_, task)) continue;
    if (IsShort(task) || !MayUse(task, places_[2])) continue;
    if (JudgeBlocking(task, places_[2]).reason != Reason::kNone) continue;
    EvictTaskParts(running, PlaceBit(places_[0].index), Reason::kEvictForLayout, plan);
  }
}

// Whether the task runs alone on the whole device.
bool BePlaces::NeedsAll(const HeadView& task) const {
  if (quotas_.IsUnbounded(task)) return true;
  if (quotas_.IsConfined(task) || layout_.split < 0) return false;
  return !task.confinable && RunsInSegments(snapshot_, task);
}

void BePlaces::FindUnconfinable() {
  if (place_count_ == 1) return;
  const size_t count = std::min<size_t>(snapshot_.heads.size(), kMaxHeads);
  for (size_t h = 0; h < count; ++h) {
    const HeadView& head = snapshot_.heads[h];
    if (!IsBeCompute(head) || !NeedsAll(head)) continue;
    if (unconfinable_ != nullptr && !shares_.GoesBefore(head, *unconfinable_)) continue;
    if (JudgeBlocking(head, WholePlace()).reason == Reason::kNone) unconfinable_ = &head;
  }
}

// Whether the task leaves the side to a graph that needs both. While a query is active, the graph
// cannot start: then one task after another has the BE side, and none queues behind it.
bool BePlaces::LeavesSides(const HeadView& task, const Place& place) const {
  if (unconfinable_ == nullptr || place.role == Role::kUnconfined) return false;
  if (WholePlace().closed != Reason::kNone && place.live == 0) return false;
  return task.app == unconfinable_->app ? unconfinable_->sequence < task.sequence
                                        : shares_.GoesBefore(*unconfinable_, task);
}

// Long tasks on other places would outlast the time until the next query.
void BePlaces::EvictForUnconfinable(Plan& plan) const {
  if (unconfinable_ == nullptr || WholePlace().closed != Reason::kNone) return;
  if (!plan.evictions.empty()) return;  // their end asks for the next plan
  const auto leaves = [&](const RunningView& running) {
    return CanBeEvicted(snapshot_, running.task) && shares_.Displaces(*unconfinable_, running.task);
  };
  for (const RunningView& running : snapshot_.running) {
    if (IsBeCompute(running.task) && !leaves(running)) return;
  }
  const uint64_t others = ~(layout_.split < 0 ? uint64_t{0} : PlaceBit(kWholeDevice));
  for (const RunningView& running : snapshot_.running) {
    if (IsBeCompute(running.task)) EvictTaskParts(running, others, Reason::kEvictForLayout, plan);
  }
}

void BePlaces::Fill(Plan& plan) {
  ReturnSegments(plan);
  EvictForUnconfinable(plan);
  for (size_t p = 0; p < place_count_ && any_be_; ++p) {
    if (places_[p].closed == Reason::kHoldHysteresis) plan.replan_at_ns = lc_.open_at_ns;
  }
  for (int32_t depth = 0; depth < kBeWindowPerPlace; ++depth) {
    recent_ = -1;
    for (size_t p = 0; p < place_count_; ++p) {
      Place& place = places_[p];
      if (place.closed != Reason::kNone || place.live != depth) continue;
      if (depth == 0 && ReturnRunning(place, plan)) continue;
      LaunchHead(place, plan);
    }
  }
}

void BePlaces::HoldRest(Plan& plan) const {
  const size_t count = std::min<size_t>(snapshot_.heads.size(), kMaxHeads);
  for (size_t h = 0; h < count; ++h) {
    const HeadView& head = snapshot_.heads[h];
    if (!IsBeCompute(head) || launched_[h]) continue;
    Judgement first_to_clear{Reason::kHoldWindow, 0, 0};
    int first_rank = 100;
    for (size_t p = 0; p < place_count_; ++p) {
      if (!MayUse(head, places_[p])) continue;
      const Judgement judgement = Judge(head, places_[p]);
      // kNone: the plan was full.
      const int rank = judgement.reason == Reason::kNone ? 0 : Rank(judgement.reason);
      if (rank >= first_rank) continue;
      first_rank = rank;
      first_to_clear = judgement.reason == Reason::kNone
                           ? Judgement{Reason::kHoldWindow, kMaxPlannedActions, kMaxPlannedActions}
                           : judgement;
    }
    plan.holds.TryAdd(
        {head.task, first_to_clear.reason, first_to_clear.value_ns, first_to_clear.limit_ns});
  }
}

}  // namespace gpushare::core
