// baymax: headroom and T_q of one plan, debited launch by launch (baymax.h).

#include "src/core/policies/baymax.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "src/core/base/tuning.h"
#include "src/core/policies/bounds.h"
#include "src/core/policies/copy_slots.h"
#include "src/core/policies/fair_share.h"
#include "src/core/policies/launch_form.h"
#include "src/core/policies/lc_first.h"
#include "src/core/policies/quiet.h"

namespace gpushare::core {
namespace {

// Whether an LC app misses its target whatever BE does. No T_q lets its next query meet it; BE then
// runs one task at a time, while no query is active.
bool AnyTargetIsLost(const Snapshot& snapshot) {
  return std::any_of(snapshot.lc_apps.begin(), snapshot.lc_apps.end(), TargetIsLost);
}

// Headroom and queued time that remain while one plan is made. All active queries are debited by
// the same duration (5.2.3), so the least headroom is enough.
class Ledger {
 public:
  Ledger(const Snapshot& snapshot, int64_t lc_issued_ns)
      : headroom_ns_(MinHeadroom(snapshot)),
        queued_ns_(SumNs(snapshot.queued_ns, lc_issued_ns)),
        queued_ns_max_(MaxQueuedTime(snapshot)),
        one_at_a_time_(AnyTargetIsLost(snapshot)),
        shares_(snapshot) {
    for (const RunningView& running : snapshot.running) {
      const HeadView& task = running.task;
      if (task.app_class != AppClass::kBestEffort) continue;
      ++issued_[AppOf(task)];
      if (task.kind != TaskKind::kMemcpy && task.followed) followed_ |= BitOf(task);
    }
  }

  // kNone: it may be launched. Kernels and library calls.
  PlannedHold Judge(const HeadView& head) const {
    const int64_t duration_ns = head.remaining.duration_ns;
    if (one_at_a_time_ && queued_ns_ > 0) {
      return {head.task, Reason::kHoldQueuedTime, SumNs(queued_ns_, duration_ns), 0};
    }
    for (uint64_t apps = followed_; apps != 0; apps &= apps - 1) {
      if (shares_.LeavesTo(head, std::countr_zero(apps))) {
        return {head.task, Reason::kHoldWindow, issued_[AppOf(head)], kBeWindowPerApp};
      }
    }
    if (queued_ns_max_ == kNever && issued_[AppOf(head)] >= kBeWindowPerApp) {
      return {head.task, Reason::kHoldWindow, issued_[AppOf(head)], kBeWindowPerApp};
    }
    if (SumNs(queued_ns_, duration_ns) > queued_ns_max_) {
      return {head.task, Reason::kHoldQueuedTime, SumNs(queued_ns_, duration_ns), queued_ns_max_};
    }
    return JudgeHeadroom(head);
  }
  PlannedHold JudgeHeadroom(const HeadView& head) const {
    if (head.remaining.duration_ns > headroom_ns_) {
      return {head.task, Reason::kHoldHeadroom, head.remaining.duration_ns, headroom_ns_};
    }
    return {head.task, Reason::kNone, 0, 0};
  }

  void Debit(const HeadView& head) {
    DebitHeadroom(head);
    queued_ns_ = SumNs(queued_ns_, head.remaining.duration_ns);
    ++issued_[AppOf(head)];
    shares_.Charge(head);
    if (head.followed) followed_ |= BitOf(head);
  }
  void DebitHeadroom(const HeadView& head) {
    headroom_ns_ = LeftNs(headroom_ns_, head.remaining.duration_ns);
  }

  const FairShare& shares() const { return shares_; }

 private:
  static size_t AppOf(const HeadView& head) { return static_cast<size_t>(head.app); }
  static uint64_t BitOf(const HeadView& head) { return uint64_t{1} << head.app; }
  static_assert(kMaxApps <= 64);

  int64_t headroom_ns_;
  int64_t queued_ns_;
  int64_t queued_ns_max_;
  bool one_at_a_time_;
  FairShare shares_;
  std::array<int32_t, kMaxApps> issued_{};
  uint64_t followed_ = 0;  // BE apps that have a task behind an issued one, by index
};

void PlanCopy(const HeadView& head, CopySlots& slots, Ledger& ledger, Plan& plan) {
  if (!slots.Free(head.direction)) {
    plan.holds.TryAdd(slots.Hold(head));
    return;
  }
  // Observation 2 of 6.1: one pinned copy takes the whole link, pageable ones only their share.
  if (head.pinned) {
    const PlannedHold hold = ledger.JudgeHeadroom(head);
    if (hold.reason != Reason::kNone) {
      plan.holds.TryAdd(hold);
      return;
    }
  }
  if (!plan.launches.TryAdd(MakeLaunch(head.task, Form::kMemcpy, kWholeDevice, LaneClass::kCopy,
                                       Reason::kFitsHeadroom))) {
    return;
  }
  slots.Take(head.direction);
  if (head.pinned) ledger.DebitHeadroom(head);
}

}  // namespace

void BaymaxPolicy::MakePlan(const Snapshot& snapshot, Plan& plan) {
  if (PlanQuiesced(snapshot, plan)) return;
  LcRoute route;
  route.lane_class = LaneClass::kPlain;  // no priorities: order comes from not launching
  PublishRoutes(snapshot, route, plan);
  Ledger ledger(snapshot, LaunchLcHeads(snapshot, plan));
  CopySlots slots(snapshot);

  BeOrder order;
  ledger.shares().Order(order);
  for (const HeadView* next : order) {
    const HeadView& head = *next;
    if (head.kind == TaskKind::kMemcpy) {
      PlanCopy(head, slots, ledger, plan);
      continue;
    }
    const PlannedHold hold = ledger.Judge(head);
    if (hold.reason != Reason::kNone) {
      plan.holds.TryAdd(hold);
      continue;
    }
    const Reason reason = snapshot.queries.empty() ? Reason::kIdleDevice : Reason::kFitsHeadroom;
    if (!plan.launches.TryAdd(MakeLaunch(head.task, OrdinaryForm(head.kind), kWholeDevice,
                                         LaneClass::kPlain, reason))) {
      return;
    }
    ledger.Debit(head);
  }
}

}  // namespace gpushare::core
