// Launches and evictions of BE work that stays beside queries (beside_heads.h).

#include "src/core/policies/adaptive/carry_out/beside_heads.h"

#include <algorithm>

#include "src/core/policies/adaptive/arrangement/tuning.h"
#include "src/core/policies/parts/bounds.h"
#include "src/core/policies/parts/eviction.h"
#include "src/core/policies/parts/launch_form.h"

namespace gpushare::core {

void BesideHeads::EvictForLc(Plan& plan) const {
  if (!snapshot_.eviction_available) return;
  for (const RunningView& running : snapshot_.running) {
    if (!IsBeCompute(running.task) || RunsInSegments(snapshot_, running.task)) continue;
    EvictTaskParts(running, ~uint64_t{0}, Reason::kEvictForLc, plan);
  }
}

void BesideHeads::PlanHeads(const LcActivity& lc, int64_t lc_ahead_ns, Plan& plan) const {
  HeadroomLedger ledger(snapshot_, LeftNs(MinHeadroom(snapshot_), terms_.reserve_ns), lc_ahead_ns,
                        terms_.any_grids ? terms_.budget_ns : MaxQueuedTime(snapshot_));
  int32_t live = 0;
  for (const RunningView& running : snapshot_.running) live += IsBeCompute(running.task) ? 1 : 0;
  BeOrder order;
  ledger.shares().Order(order);
  for (const HeadView* head : order) {
    if (IsBeCompute(*head)) PlanHead(*head, lc, live, ledger, plan);
  }
  PlanRunningSegments(snapshot_, ledger, plan);
}

void BesideHeads::PlanHead(const HeadView& head, const LcActivity& lc, int32_t& live,
                           HeadroomLedger& ledger, Plan& plan) const {
  if (live >= kBeWindowPerPlace) {
    plan.holds.TryAdd({head.task, Reason::kHoldWindow, live, kBeWindowPerPlace});
    return;
  }
  const bool workers = head.kind == TaskKind::kKernel && CanBeEvicted(snapshot_, head);
  if (head.resumed && workers) return PlanRest(head, lc, live, ledger, plan);
  const int before = plan.launches.size();
  PlanBeCompute(snapshot_, head, ledger, plan);
  live += plan.launches.size() - before;
}

void BesideHeads::PlanRest(const HeadView& head, const LcActivity& lc, int32_t& live,
                           HeadroomLedger& ledger, Plan& plan) const {
  if (lc.active) {
    plan.holds.TryAdd({head.task, Reason::kHoldLcActive, 0, 0});
  } else if (snapshot_.now_ns < lc.open_at_ns) {
    plan.holds.TryAdd({head.task, Reason::kHoldHysteresis, snapshot_.now_ns, lc.open_at_ns});
    plan.replan_at_ns = std::min(plan.replan_at_ns, lc.open_at_ns);
  } else if (plan.launches.TryAdd(MakeLaunch(head.task, Form::kWorkers, kWholeDevice,
                                             LaneClass::kBe, Reason::kResume))) {
    ++live;
    ledger.Debit(head);
  }
}

}  // namespace gpushare::core
