// Headroom and T_q of one plan (headroom_ledger.h).

#include "src/core/policies/parts/headroom_ledger.h"

#include <algorithm>
#include <bit>

#include "src/core/base/tuning.h"
#include "src/core/policies/parts/bounds.h"
#include "src/core/policies/parts/eviction.h"
#include "src/core/policies/parts/launch_form.h"

namespace gpushare::core {
namespace {

static_assert(kMaxApps <= 64);
size_t AppOf(const HeadView& head) { return static_cast<size_t>(head.app); }
uint64_t BitOf(const HeadView& head) { return uint64_t{1} << head.app; }

// Whether an LC app misses its target whatever BE does. No T_q lets its next query meet it; BE then
// runs one task at a time, while no query is active.
bool AnyTargetIsLost(const Snapshot& snapshot) {
  return std::any_of(snapshot.lc_apps.begin(), snapshot.lc_apps.end(), TargetIsLost);
}

// Whether the task is a graph of which a launch in segments is on the device.
bool IsInSegments(const RunningView& running) {
  return IsBeCompute(running.task) &&
         std::any_of(running.parts.begin(), running.parts.end(),
                     [](const PartView& part) { return part.form == Form::kSegments; });
}

}  // namespace

HeadroomLedger::HeadroomLedger(const Snapshot& snapshot, int64_t headroom_ns, int64_t lc_ahead_ns,
                               int64_t queued_ns_max)
    : snapshot_(snapshot),
      headroom_ns_(headroom_ns),
      queued_ns_(SumNs(snapshot.queued_ns, lc_ahead_ns)),
      queued_ns_max_(queued_ns_max),
      one_at_a_time_(AnyTargetIsLost(snapshot)),
      shares_(snapshot) {
  for (const RunningView& running : snapshot.running) {
    const HeadView& task = running.task;
    if (task.app_class != AppClass::kBestEffort) continue;
    ++issued_[AppOf(task)];
    if (task.kind != TaskKind::kMemcpy && task.followed) followed_ |= BitOf(task);
    if (!IsInSegments(running)) continue;
    graphs_.TryAdd(task.kernel);
    awaited_in_segments_ = awaited_in_segments_ || task.awaited_by_lc;
  }
  awaited_needs_room_ = AwaitedNeedsRoom();
}

bool HeadroomLedger::AwaitedNeedsRoom() const {
  if (!snapshot_.queries.empty() || queued_ns_max_ == kNever) return false;
  return std::any_of(snapshot_.heads.begin(), snapshot_.heads.end(), [&](const HeadView& head) {
    const bool charged = head.kind != TaskKind::kMemcpy || head.pinned;
    return head.awaited_by_lc && charged && SumNs(queued_ns_, ChargeOf(head)) > queued_ns_max_;
  });
}

int64_t HeadroomLedger::ChargeOf(const HeadView& head) const {
  const int64_t whole_ns = SumNs(head.remaining.duration_ns, head.remaining.error_ns);
  return RunsInSegments(snapshot_, head) ? std::min(whole_ns, head.eviction_p99_ns) : whole_ns;
}

bool HeadroomLedger::FitsQueuedTime(const HeadView& head) const {
  if (SumNs(queued_ns_, ChargeOf(head)) <= queued_ns_max_) {
    return head.awaited_by_lc || !awaited_needs_room_;
  }
  return head.awaited_by_lc && awaited_needs_room_ && queued_ns_ == 0;
}

PlannedHold HeadroomLedger::Judge(const HeadView& head) const {
  if (RunsInSegments(snapshot_, head) &&
      std::find(graphs_.begin(), graphs_.end(), head.kernel) != graphs_.end()) {
    return {head.task, Reason::kHoldWindow, 1, 1};
  }
  const int64_t queued_ns = SumNs(queued_ns_, ChargeOf(head));
  if (one_at_a_time_ && queued_ns_ > 0) {
    return {head.task, Reason::kHoldQueuedTime, queued_ns, 0};
  }
  for (uint64_t apps = followed_; apps != 0; apps &= apps - 1) {
    if (shares_.LeavesTo(head, std::countr_zero(apps))) {
      return {head.task, Reason::kHoldWindow, issued_[AppOf(head)], kBeWindowPerApp};
    }
  }
  if (queued_ns_max_ == kNever && issued_[AppOf(head)] >= kBeWindowPerApp) {
    return {head.task, Reason::kHoldWindow, issued_[AppOf(head)], kBeWindowPerApp};
  }
  if (!FitsQueuedTime(head)) {
    return {head.task, Reason::kHoldQueuedTime, queued_ns, queued_ns_max_};
  }
  return JudgeHeadroom(head);
}

PlannedHold HeadroomLedger::JudgeCopy(const HeadView& head) const {
  const int64_t queued_ns = SumNs(queued_ns_, ChargeOf(head));
  if (!FitsQueuedTime(head)) {
    return {head.task, Reason::kHoldQueuedTime, queued_ns, queued_ns_max_};
  }
  return JudgeHeadroom(head);
}

PlannedHold HeadroomLedger::JudgeHeadroom(const HeadView& head) const {
  if (ChargeOf(head) > headroom_ns_) {
    return {head.task, Reason::kHoldHeadroom, ChargeOf(head), headroom_ns_};
  }
  return {head.task, Reason::kNone, 0, 0};
}

bool HeadroomLedger::FitsSegments() const {
  if (one_at_a_time_ && !snapshot_.queries.empty()) return false;
  if (awaited_in_segments_ && snapshot_.queries.empty()) return true;
  return headroom_ns_ >= 0 && queued_ns_ <= queued_ns_max_ && !awaited_needs_room_;
}

// A headroom shrinks as time passes; T_q changes with launches and completions, which cause plans.
TimeNs HeadroomLedger::FitSegmentsUntil() const { return SumNs(snapshot_.now_ns, headroom_ns_); }

int64_t HeadroomLedger::RoomNs() const {
  return std::min(headroom_ns_, LeftNs(queued_ns_max_, queued_ns_));
}

void HeadroomLedger::Debit(const HeadView& head) {
  DebitHeadroom(ChargeOf(head));
  queued_ns_ = SumNs(queued_ns_, ChargeOf(head));
  ++issued_[AppOf(head)];
  shares_.Charge(head);
  if (head.followed) followed_ |= BitOf(head);
  if (!RunsInSegments(snapshot_, head)) return;
  graphs_.TryAdd(head.kernel);
  awaited_in_segments_ = awaited_in_segments_ || head.awaited_by_lc;
}

void HeadroomLedger::DebitCopy(const HeadView& head) {
  shares_.Charge(head);
  if (!head.pinned) return;
  DebitHeadroom(ChargeOf(head));
  queued_ns_ = SumNs(queued_ns_, ChargeOf(head));
}

void HeadroomLedger::DebitHeadroom(int64_t charged_ns) {
  headroom_ns_ = LeftNs(headroom_ns_, charged_ns);
}

void PlanCopy(const HeadView& head, CopySlots& slots, HeadroomLedger& ledger, Plan& plan) {
  if (!slots.Free(head)) {
    plan.holds.TryAdd(slots.Hold(head));
    return;
  }
  // Observation 2 of 6.1: one pinned copy takes the whole link, pageable ones only their share.
  if (head.pinned) {
    const PlannedHold hold = ledger.JudgeCopy(head);
    if (hold.reason != Reason::kNone) {
      plan.holds.TryAdd(hold);
      return;
    }
  }
  if (!plan.launches.TryAdd(MakeLaunch(head.task, Form::kMemcpy, kWholeDevice, LaneClass::kCopy,
                                       Reason::kFitsHeadroom))) {
    return;
  }
  slots.Take(head);
  ledger.DebitCopy(head);
}

PlannedLaunch BeLaunch(const Snapshot& snapshot, const HeadView& head) {
  const Reason reason = snapshot.queries.empty() ? Reason::kIdleDevice : Reason::kFitsHeadroom;
  // Only BE lanes have an eviction word.
  const bool segments = RunsInSegments(snapshot, head);
  PlannedLaunch launch =
      MakeLaunch(head.task, OrdinaryForm(head.kind), kWholeDevice, LaneClass::kPlain, reason);
  if (segments) {
    launch.form = Form::kSegments;
    launch.lane_class = LaneClass::kBe;
    if (head.resumed) launch.reason = Reason::kResume;
  }
  return launch;
}

void PlanBeCompute(const Snapshot& snapshot, const HeadView& head, HeadroomLedger& ledger,
                   Plan& plan) {
  const PlannedHold hold = ledger.Judge(head);
  if (hold.reason != Reason::kNone) {
    plan.holds.TryAdd(hold);
    return;
  }
  if (plan.launches.TryAdd(BeLaunch(snapshot, head))) ledger.Debit(head);
}

void PlanRunningSegments(const Snapshot& snapshot, const HeadroomLedger& ledger, Plan& plan) {
  if (!ledger.any_segments()) return;
  if (ledger.FitsSegments()) {
    const TimeNs until_ns = ledger.FitSegmentsUntil();
    if (until_ns != kNever) plan.replan_at_ns = std::min(plan.replan_at_ns, until_ns + 1);
  } else {
    EvictRunningSegments(snapshot, plan);
  }
}

void EvictRunningSegments(const Snapshot& snapshot, Plan& plan) {
  if (!snapshot.eviction_available) return;
  constexpr uint64_t kAllPlaces = ~uint64_t{0};
  for (const RunningView& running : snapshot.running) {
    if (IsInSegments(running)) EvictTaskParts(running, kAllPlaces, Reason::kEvictForLc, plan);
  }
}

}  // namespace gpushare::core
