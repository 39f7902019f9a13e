// BE work that has the whole device also while queries are active (candidates/beside.h).
//
// Kernels and library calls run as ordinary grids, graphs in segments, kBeWindowPerPlace at most.
// LC's blocks go first, by stream priority, and BE's fill what each LC kernel leaves. Nothing
// evicts a grid; segments are evicted when a query has no time left. A kernel that was evicted
// resumes as workers, only while no query is active. Threads: the planner's. Pure; nothing
// allocates.

#ifndef GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_CARRY_OUT_BESIDE_HEADS_H_
#define GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_CARRY_OUT_BESIDE_HEADS_H_

#include <cstdint>

#include "src/core/policies/adaptive/candidates/beside.h"
#include "src/core/policies/parts/headroom_ledger.h"
#include "src/core/policies/parts/lc_activity.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

class BesideHeads {
 public:
  BesideHeads(const Snapshot& snapshot, const BesideTerms& terms)
      : snapshot_(snapshot), terms_(terms) {}

  // Evicts what may not stay beside active LC work: workers.
  void EvictForLc(Plan& plan) const;
  // Launches or holds every BE head but copies. `lc_ahead_ns`: of the LC tasks that this plan
  // launches.
  void PlanHeads(const LcActivity& lc, int64_t lc_ahead_ns, Plan& plan) const;

 private:
  void PlanHead(const HeadView& head, const LcActivity& lc, int32_t& live, HeadroomLedger& ledger,
                Plan& plan) const;
  void PlanRest(const HeadView& head, const LcActivity& lc, int32_t& live, HeadroomLedger& ledger,
                Plan& plan) const;

  const Snapshot& snapshot_;
  const BesideTerms& terms_;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_CARRY_OUT_BESIDE_HEADS_H_
