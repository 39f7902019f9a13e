// What BE work may still take of the LC queries' time in one plan: headroom and T_q, debited launch
// by launch (Baymax 5.2).
//
// A task is charged its predicted duration and one standard deviation of the prediction's error.
// Where a target is below the solo time, BE runs one task at a time while no query is active.
//
// Used by baymax, tacker and tacker:direct while one plan is made. Pure; nothing allocates.

#ifndef GPUSHARE_SRC_CORE_POLICIES_PAPERS_HEADROOM_LEDGER_H_
#define GPUSHARE_SRC_CORE_POLICIES_PAPERS_HEADROOM_LEDGER_H_

#include <array>
#include <cstdint>

#include "src/core/base/limits.h"
#include "src/core/policies/parts/copy_slots.h"
#include "src/core/policies/parts/fair_share.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

class HeadroomLedger {
 public:
  // headroom_ns: the least of the active queries'. lc_ahead_ns: of the LC tasks that this plan
  // launches, and of those that it holds.
  HeadroomLedger(const Snapshot& snapshot, int64_t headroom_ns, int64_t lc_ahead_ns);

  // kNone: it may be launched. Kernels and library calls.
  PlannedHold Judge(const HeadView& head) const;
  // Pinned copies, which take no time of the SMs but all of the link (6.1). A query that arrives
  // now would wait for them too.
  PlannedHold JudgeCopy(const HeadView& head) const;

  // What all active queries, and one that arrives now, can still give away.
  int64_t RoomNs() const;

  void Debit(const HeadView& head);
  void DebitCopy(const HeadView& head);
  void DebitHeadroom(int64_t charged_ns);

  const FairShare& shares() const { return shares_; }

  static int64_t ChargeOf(const HeadView& head);

 private:
  PlannedHold JudgeHeadroom(const HeadView& head) const;

  int64_t headroom_ns_;  // all queries are debited alike (5.2.3)
  int64_t queued_ns_;
  int64_t queued_ns_max_;
  bool one_at_a_time_;
  FairShare shares_;
  std::array<int32_t, kMaxApps> issued_{};
  uint64_t followed_ = 0;  // BE apps that have a task behind an issued one, by index
};

// Launches the copy or holds it: N_tr a direction, and a pinned one is charged to headroom.
void PlanCopy(const HeadView& head, CopySlots& slots, HeadroomLedger& ledger, Plan& plan);

// Launches the kernel, graph or call as CUDA would, if the ledger lets it, or holds it.
void PlanBeCompute(const Snapshot& snapshot, const HeadView& head, HeadroomLedger& ledger,
                   Plan& plan);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_PAPERS_HEADROOM_LEDGER_H_
