// The turns of the whole device (whole_turn.h).

#include "src/core/policies/adaptive/carry_out/whole_turn.h"

#include <algorithm>

#include "src/core/policies/parts/eviction.h"
#include "src/core/policies/parts/launch_form.h"

namespace gpushare::core {

WholeTurn::WholeTurn(const Snapshot& snapshot, const OpenPlaces& places, const BeJudge& judge,
                     const FairShare& shares)
    : snapshot_(snapshot), places_(places), judge_(judge), shares_(shares) {
  FindNext();
}

bool WholeTurn::Displaces(const HeadView& running) const {
  return next_ != nullptr && shares_.Displaces(*next_, running);
}

// Whether the task runs alone on the whole device.
bool WholeTurn::NeedsAll(const HeadView& task) const {
  if (places_.quotas().IsUnbounded(task)) return true;
  if (places_.quotas().IsConfined(task) || !places_.IsSplit()) return false;
  return !task.confinable && RunsInSegments(snapshot_, task);
}

void WholeTurn::FindNext() {
  if (places_.all().size() == 1) return;
  const size_t count = std::min<size_t>(snapshot_.heads.size(), kMaxHeads);
  for (size_t h = 0; h < count; ++h) {
    const HeadView& head = snapshot_.heads[h];
    if (!IsBeCompute(head) || !NeedsAll(head)) continue;
    if (next_ != nullptr && !shares_.GoesBefore(head, *next_)) continue;
    if (judge_.JudgeBlocking(head, places_.Whole()).reason == Reason::kNone) next_ = &head;
  }
}

bool WholeTurn::LeavesSides(const HeadView& task, const BePlace& place) const {
  if (next_ == nullptr || place.role == PlaceRole::kUnconfined) return false;
  if (places_.Whole().closed != Reason::kNone && place.live == 0) return false;
  return task.app == next_->app ? next_->sequence < task.sequence
                                : shares_.GoesBefore(*next_, task);
}

void WholeTurn::EvictForNext(Plan& plan) const {
  if (next_ == nullptr || places_.Whole().closed != Reason::kNone) return;
  if (!plan.evictions.empty()) return;  // their end asks for the next plan
  const auto leaves = [&](const RunningView& running) {
    return CanBeEvicted(snapshot_, running.task) && Displaces(running.task);
  };
  for (const RunningView& running : snapshot_.running) {
    if (IsBeCompute(running.task) && !leaves(running)) return;
  }
  const uint64_t others = ~(places_.IsSplit() ? PlaceBit(kWholeDevice) : uint64_t{0});
  for (const RunningView& running : snapshot_.running) {
    if (IsBeCompute(running.task)) EvictTaskParts(running, others, Reason::kEvictForLayout, plan);
  }
}

bool WholeTurn::PrefersWhole(const HeadView& task) const {
  return RunsInSegments(snapshot_, task) && !IsShort(task) &&
         judge_.MayLaunch(task, places_.Whole());
}

void WholeTurn::ReturnSegments(Plan& plan) const {
  if (!places_.IsSplit() || places_.Whole().closed != Reason::kNone) return;
  if (!plan.evictions.empty()) return;
  const auto others =
      std::count_if(snapshot_.running.begin(), snapshot_.running.end(),
                    [](const RunningView& running) { return IsBeCompute(running.task); });
  if (others > 1) return;
  if (std::any_of(snapshot_.heads.begin(), snapshot_.heads.end(), IsBeCompute)) return;
  for (const RunningView& running : snapshot_.running) {
    const HeadView& task = running.task;
    if (!IsBeCompute(task) || !RunsInSegments(snapshot_, task)) continue;
    if (IsShort(task) || !judge_.MayUse(task, places_.Whole())) continue;
    if (judge_.JudgeBlocking(task, places_.Whole()).reason != Reason::kNone) continue;
    EvictTaskParts(running, PlaceBit(places_.BeSide().index), Reason::kEvictForLayout, plan);
  }
}

}  // namespace gpushare::core
