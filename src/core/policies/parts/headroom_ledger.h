// What BE work may still take of the LC queries' time in one plan: headroom and T_q, debited launch
// by launch (Baymax 5.2).
//
// A task is charged its predicted duration and one standard deviation of the prediction's error. A
// graph that runs in segments is charged no more than the p99 of its eviction: the segments on the
// device are what a query waits for. The papers know a training step as many short kernels, and
// hold each of them; here its next segments are held by evicting it. Where a target is below the
// solo time, BE runs one task at a time while no query is active.
//
// A task that LC work waits for (HeadView::awaited_by_lc) may be longer than the gate of T_q lets
// through. It then starts on an empty device while no query is active, and other BE work makes
// room.
//
//   HeadroomLedger ledger(...);              // LC heads are planned
//   PlanBeCompute(..., ledger, plan);        // for each BE head; PlanCopy for copies
//   PlanRunningSegments(..., ledger, plan);  // last: what the heads took is debited
//
// Used by baymax, tacker, tacker:direct and adaptive while one plan is made. Pure; nothing
// allocates.

#ifndef GPUSHARE_SRC_CORE_POLICIES_PARTS_HEADROOM_LEDGER_H_
#define GPUSHARE_SRC_CORE_POLICIES_PARTS_HEADROOM_LEDGER_H_

#include <array>
#include <cstdint>

#include "src/core/base/containers/bounded_list.h"
#include "src/core/base/limits.h"
#include "src/core/policies/parts/bounds.h"
#include "src/core/policies/parts/copy_slots.h"
#include "src/core/policies/parts/fair_share.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

class HeadroomLedger {
 public:
  // headroom_ns: the least of the active queries'. lc_ahead_ns: of the LC tasks that this plan
  // launches, and of those that it holds. queued_ns_max: the gate of T_q.
  HeadroomLedger(const Snapshot& snapshot, int64_t headroom_ns, int64_t lc_ahead_ns)
      : HeadroomLedger(snapshot, headroom_ns, lc_ahead_ns, MaxQueuedTime(snapshot)) {}
  HeadroomLedger(const Snapshot& snapshot, int64_t headroom_ns, int64_t lc_ahead_ns,
                 int64_t queued_ns_max);

  // kNone: it may be launched. Kernels and library calls.
  PlannedHold Judge(const HeadView& head) const;
  // Pinned copies, which take no time of the SMs but all of the link (6.1). A query that arrives
  // now would wait for them too.
  PlannedHold JudgeCopy(const HeadView& head) const;

  // What all active queries, and one that arrives now, can still give away.
  int64_t RoomNs() const;

  void Debit(const HeadView& head);
  // A pinned copy takes headroom; a pageable one only its app's turn.
  void DebitCopy(const HeadView& head);
  void DebitHeadroom(int64_t charged_ns);

  const FairShare& shares() const { return shares_; }

  // Whether a graph runs in segments, or starts to by this plan.
  bool any_segments() const { return !graphs_.empty(); }
  // Whether the next segments of such graphs may begin. What is on the device of them is in T_q.
  bool FitsSegments() const;
  // Until when, if only time passes.
  TimeNs FitSegmentsUntil() const;

 private:
  int64_t ChargeOf(const HeadView& head) const;
  bool FitsQueuedTime(const HeadView& head) const;
  // Whether a task that LC work waits for finds no room in T_q, and should: no query is active.
  bool AwaitedNeedsRoom() const;
  PlannedHold JudgeHeadroom(const HeadView& head) const;

  const Snapshot& snapshot_;
  int64_t headroom_ns_;  // all queries are debited alike (5.2.3)
  int64_t queued_ns_;
  int64_t queued_ns_max_;
  bool one_at_a_time_;
  bool awaited_needs_room_ = false;
  bool awaited_in_segments_ = false;  // such a graph runs in segments, or starts to by this plan
  FairShare shares_;
  std::array<int32_t, kMaxApps> issued_{};
  uint64_t followed_ = 0;  // BE apps that have a task behind an issued one, by index
  // Those that run in segments. No two tasks of a graph run at once.
  BoundedList<const KernelDesc*, kMaxHeads + kMaxRunning> graphs_;
};

// Launches the copy or holds it: N_tr a direction, and a pinned one is charged to headroom.
void PlanCopy(const HeadView& head, CopySlots& slots, HeadroomLedger& ledger, Plan& plan);

// The launch that PlanBeCompute plans.
PlannedLaunch BeLaunch(const Snapshot& snapshot, const HeadView& head);

// Launches the kernel, graph or call if the ledger lets it, or holds it: as CUDA would, or in
// segments where it can be evicted between them.
void PlanBeCompute(const Snapshot& snapshot, const HeadView& head, HeadroomLedger& ledger,
                   Plan& plan);

// Evicts the graphs that run in segments when their next segments no longer fit, and asks for a
// plan when that will be so. They are heads again when they have left.
void PlanRunningSegments(const Snapshot& snapshot, const HeadroomLedger& ledger, Plan& plan);
// Evicts them whatever they would take.
void EvictRunningSegments(const Snapshot& snapshot, Plan& plan);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_PARTS_HEADROOM_LEDGER_H_
