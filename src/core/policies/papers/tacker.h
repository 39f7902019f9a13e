// tacker: BE kernels beside LC kernels in the headroom of the query that arrived last (Tacker VII).
//
// Each kernel of that query is one decision. Of all ready BE kernels the one with the largest
// T_gain overlaps it (eq. 8, both ways round), where the query's headroom (eq. 7 to 9) covers the
// longer duration, with the prediction's error. An overlap is a precompiled fused kernel, or BE
// workers that share every SM with the LC kernel's grid. Workers start beside the kernels of
// earlier queries and need the headroom of all. Where none gains, BE kernels are launched by
// themselves as under baymax, and graphs in segments (headroom_ledger.h). Queries that arrived
// earlier are launched at once and meet no new BE work, and so is a query with next to no headroom.
//
// Where that headroom falls below 0 in the middle of a fused launch, the BE part leaves by its own
// eviction word. BE work keeps to its quota, and out of reservations (tacker_room.h).
//
// A kernel of the last query that could still find a partner waits while the device has other
// work of its app, or the rest of its fused launch. Where an LC app's kernels may find partners its
// fast path is off: the scheduler must see each kernel before it is launched.

#ifndef GPUSHARE_SRC_CORE_POLICIES_PAPERS_TACKER_H_
#define GPUSHARE_SRC_CORE_POLICIES_PAPERS_TACKER_H_

#include "src/core/seams/policy.h"

namespace gpushare::core {

class TackerPolicy final : public Policy {
 public:
  absl::string_view name() const override { return "tacker"; }
  void MakePlan(const Snapshot& snapshot, Plan& plan) override;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_PAPERS_TACKER_H_
