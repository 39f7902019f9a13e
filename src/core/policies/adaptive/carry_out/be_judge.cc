// The judgement of one task on one place (be_judge.h).

#include "src/core/policies/adaptive/carry_out/be_judge.h"

#include <algorithm>
#include <bit>
#include <ratio>

#include "src/core/policies/adaptive/arrangement/worst_latency.h"
#include "src/core/policies/parts/blocking.h"
#include "src/core/policies/parts/eviction.h"
#include "src/core/policies/parts/fewer_workers.h"
#include "src/core/policies/parts/launch_form.h"
#include "src/core/policies/parts/same_work.h"

namespace gpushare::core {

// Whether the pair table has the task's effect on LC apps beside it.
bool BeJudge::IsMeasured(const HeadView& task) const {
  return task.kernel_index >= 0 &&
         task.kernel_index < std::min(snapshot_.pairs.kernels, kMaxKernels);
}

Sides BeJudge::SidesOf(const HeadView& task) const {
  return IsMeasured(task) ? arrangement_.sides[static_cast<size_t>(task.kernel_index)]
                          : Sides::kBoth;
}

bool BeJudge::MayUse(const HeadView& task, const BePlace& place) const {
  if (places_.quotas().IsConfined(task)) return places_.quotas().HomeOf(task) == place.index;
  if (places_.quotas().IsUnbounded(task)) return place.index == kWholeDevice;
  switch (place.role) {
    case PlaceRole::kWhole:
      return true;
    case PlaceRole::kBeSide:
      return task.confinable;
    case PlaceRole::kLcSide:
      return task.confinable && SidesOf(task) == Sides::kBoth && !RunsInSegments(snapshot_, task);
    case PlaceRole::kUnconfined:
      return MayUseUnconfined(task);
    case PlaceRole::kHome:
      return false;
  }
  return false;
}

// A kernel that the arrangement excludes and nothing evicts would otherwise wait for as long as the
// arrangement lasts.
bool BeJudge::MayUseUnconfined(const HeadView& task) const {
  if (!task.confinable) return true;
  if (RunsInSegments(snapshot_, task)) return SidesOf(task) == Sides::kBoth;
  return !CanBeEvicted(snapshot_, task) && SidesOf(task) == Sides::kNone;
}

Width BeJudge::WidthOn(const HeadView& task, const BePlace& place) const {
  if (!place.overlaps_lc || forced_) return {};
  if (places_.quotas().any() && places_.quotas().BoundsWorkers(task)) return {};
  return ChooseWidth(snapshot_, task,
                     [&](int64_t ns) { return shift_.ShareOf({.eviction_ns = ns}); });
}

// No promise holds work that LC work waits for, once no query is active.
Judgement BeJudge::JudgeBlocking(const HeadView& task, const BePlace& place,
                                 const Width& width) const {
  if (task.awaited_by_lc && !lc_.active) return {};
  if (places_.IsBesideLc(place)) return JudgeBesideLc(task, place);
  const bool evictable = CanBeEvicted(snapshot_, task);
  if (evictable && forced_) return {};
  const int64_t blocking_ns = BlockingOn(snapshot_, task, place.index, width);
  const Delay delay = places_.load().DelayWith(blocking_ns, evictable);
  if (shift_.MeetsExpected(delay)) return HoldForGap();
  return shift_.AllowsNow(delay) ? Judgement() : JudgeCredit(delay);
}

// There a query meets no BE work on its SMs. The arrangement has judged how much slower it is.
Judgement BeJudge::JudgeBesideLc(const HeadView& task, const BePlace& place) const {
  if (SidesOf(task) == Sides::kNone) {
    const LatencyEstimate worst = WorstLatency(snapshot_, task.kernel_index, arrangement_.split);
    // Confined work has no other place.
    if (places_.quotas().IsConfined(task)) {
      const int64_t blocking_ns = BlockingOn(snapshot_, task, place.index);
      return JudgeCredit(blocking_ns, worst.value_ns, worst.limit_ns);
    }
    return {Reason::kHoldBlocking, worst.value_ns, worst.limit_ns};
  }
  // Work that is no registered kernel has no measured pair: its blocking time must fit instead.
  if (IsMeasured(task)) return {};
  const Delay delay =
      BeLoad().DelayWith(BlockingOn(snapshot_, task, place.index), CanBeEvicted(snapshot_, task));
  return shift_.Allows(delay) ? Judgement() : JudgeCredit(delay);
}

// A hold says how far the p99 would move; of launches that nothing evicts, how long they take.
Judgement BeJudge::JudgeCredit(Delay delay) const {
  if (delay.eviction_ns == 0) {
    return JudgeCredit(delay.uncuttable_ns, delay.uncuttable_ns, shift_.longest_uncuttable_ns());
  }
  return JudgeCredit(delay.total_ns(), shift_.ShiftOf(delay), shift_.limit_ns());
}

// Work that blocks longer than a budget may start on credit.
Judgement BeJudge::JudgeCredit(int64_t blocking_ns, int64_t value_ns, int64_t limit_ns) const {
  const Credit& answer = shift_.CreditFor(blocking_ns);
  if (answer.covered) {
    Judgement launched;
    launched.on_credit = true;
    return launched;
  }
  if (answer.need <= 0) return {Reason::kHoldBlocking, value_ns, limit_ns};
  constexpr double kThousandths = std::milli::den;
  return {Reason::kHoldTailCredit, static_cast<int64_t>(answer.need * kThousandths),
          static_cast<int64_t>(std::max(0.0, answer.credit) * kThousandths)};
}

Judgement BeJudge::HoldForGap() const {
  return {Reason::kHoldHysteresis, snapshot_.now_ns, shift_.gap_until_ns()};
}

Judgement BeJudge::HoldForQuota(const HeadView& task) const {
  const PlannedHold hold = places_.quotas().HoldOf(task);
  return {hold.reason, hold.value_ns, hold.limit_ns};
}

Judgement BeJudge::Judge(const HeadView& task, const BePlace& place) const {
  Judgement judgement = JudgeRoom(task, place);
  if (judgement.reason != Reason::kNone) return judgement;
  if (IsAlone(task, place)) {
    judgement = {Reason::kHoldWindow, place.live, 1};
  } else {
    judgement = JudgeTogether(task, place);
  }
  return judgement;
}

// Beside each other block tasks take longer: as long as one after the other where the kernels want
// the same resource, no longer where they do not. Where latencies have no tail that is known, the
// sum of both p99s must fit. Within a known tail a delay moves the p99 by its mean, so that the sum
// of the means may fit, or the larger p99: observed evictions include those beside others, and a
// few that take longer are in the tail. Where a pair's speeds are known, be_pairs.h stretches each
// eviction by them.
Judgement BeJudge::JudgeTogether(const HeadView& task, const BePlace& place) const {
  if (!place.overlaps_lc || forced_ || !CanBeEvicted(snapshot_, task)) return {};
  const Evictions others = places_.EvictionsOn(place);
  if (others.sum_ns == 0) return {};
  const Width width = WidthOn(task, place);
  const int64_t leaves_ns = LeavesWithin(snapshot_, task, place.index, width);
  const int64_t in_turn_ns = SumNs(others.in_turn_ns, leaves_ns);
  const bool in_tails = shift_.IsInTails(in_turn_ns);
  const int64_t blocking_ns = BlockingOn(snapshot_, task, place.index, width);
  const int64_t sum_ns = SumNs(others.sum_ns, blocking_ns);
  const Delay delay = {
      in_tails ? std::min(sum_ns, std::max(others.slowest_ns, leaves_ns)) : in_turn_ns,
      places_.load().delay.uncuttable_ns};
  if (shift_.MeetsExpected(delay)) return HoldForGap();
  if (in_tails ? shift_.AllowsNow(delay) : shift_.Allows(delay)) return {};
  return {Reason::kHoldBlocking, shift_.ShiftOf(delay), shift_.limit_ns()};
}

// One variable that every path returns, filled in place. A copy of what was just written in parts
// waits for these writes: it took a third of the time of a plan's judgements.
Judgement BeJudge::JudgeRoom(const HeadView& task, const BePlace& place) const {
  Judgement judgement = JudgeBlocking(task, place);
  if (judgement.reason != Reason::kNone) return judgement;
  if (!places_.quotas().HasRoom(task, place.index)) {
    judgement = HoldForQuota(task);
  } else if (place.closed == Reason::kHoldHysteresis) {
    judgement = {place.closed, snapshot_.now_ns, lc_.open_at_ns};
  } else if (place.closed != Reason::kNone) {
    judgement = {place.closed, BlockingOn(snapshot_, task, place.index), 0};
  } else {
    const int32_t window = places_.WindowOf(task, place);
    const bool waits = place.live >= window || SharesQueue(task, place) || LeavesPlace(task, place);
    judgement = {};
    if (waits) judgement = {Reason::kHoldWindow, place.live, window};
  }
  return judgement;
}

bool BeJudge::MustWaitAlone(const HeadView& task, const BePlace& place) const {
  return IsAlone(task, place) || JudgeTogether(task, place).reason != Reason::kNone;
}

bool BeJudge::IsAlone(const HeadView& task, const BePlace& place) const {
  const uint64_t bit = PlaceBit(place.index);
  const BeLoad& load = places_.load();
  return ((load.leaving | load.alone) & bit) != 0 ||
         (places_.RunsAlone(task) && (load.live & bit) != 0);
}

bool BeJudge::MayLaunch(const HeadView& task, const BePlace& place) const {
  return MayUse(task, place) && Judge(task, place).reason == Reason::kNone;
}

bool BeJudge::AreAlike(const HeadView& a, const HeadView& b) const {
  return IsSameWork(a, b) && !places_.quotas().any() && !shares_.any_overdue() &&
         !places_.MayHaveLive(a.queue) && !places_.MayHaveLive(b.queue);
}

bool BeJudge::SharesQueue(const HeadView& task, const BePlace& place) const {
  const int32_t known = std::min(place.live, kQuotaLanes);
  for (int32_t i = 0; i < known; ++i) {
    if (place.queues[static_cast<size_t>(i)] == task.queue) return true;
  }
  return false;
}

// The place behind a running task, or beside the rest of one that drains on the other side, belongs
// to its app where that app is next by weight.
bool BeJudge::LeavesPlace(const HeadView& task, const BePlace& place) const {
  if (places_.HasOwnSms(task, place)) return false;
  for (uint64_t apps = places_.load().draining; apps != 0; apps &= apps - 1) {
    if (shares_.LeavesTo(task, std::countr_zero(apps))) return true;
  }
  const int32_t known = std::min(place.live, kQuotaLanes);
  for (int32_t i = 0; i < known; ++i) {
    if (shares_.LeavesTo(task, place.next[static_cast<size_t>(i)])) return true;
  }
  return false;
}

}  // namespace gpushare::core
