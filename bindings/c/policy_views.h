// The snapshot of a plan as the plain C views that a user's policy reads (gpushare_policy.h).
//
// Where in the flow: the plan stage, before make_plan. The views are copies, but for the two tables
// that are too large to copy for each plan; these have the layout of the core's. Buffers are made
// once: a plan allocates nothing. Threads: the planning thread only.

#ifndef GPUSHARE_BINDINGS_C_POLICY_VIEWS_H_
#define GPUSHARE_BINDINGS_C_POLICY_VIEWS_H_

#include <gpushare/gpushare_policy.h>

#include <array>
#include <vector>

#include "src/core/seams/snapshot.h"

namespace gpushare::abi {

class PolicyViews {
 public:
  PolicyViews();
  PolicyViews(const PolicyViews&) = delete;
  PolicyViews& operator=(const PolicyViews&) = delete;

  // The result lives until the next call, and no longer than `snapshot`.
  const gpushare_snapshot& Convert(const core::Snapshot& snapshot);

 private:
  void ConvertPairs(const core::Snapshot& snapshot);
  void ConvertOverlap(const core::Snapshot& snapshot);

  gpushare_snapshot snapshot_ = {};
  std::array<gpushare_place_view, core::kMaxPlaces> places_;
  std::array<gpushare_split_view, core::kMaxSplits> splits_;
  std::array<gpushare_lc_app_view, core::kMaxApps> lc_apps_;
  std::array<gpushare_be_app_view, core::kMaxApps> be_apps_;
  std::array<gpushare_query_view, core::kMaxActiveQueries> queries_;
  std::array<gpushare_head_view, core::kMaxHeads> heads_;
  std::array<gpushare_running_view, core::kMaxRunning> running_;
  std::vector<gpushare_fused_view> fused_;
};

}  // namespace gpushare::abi

#endif  // GPUSHARE_BINDINGS_C_POLICY_VIEWS_H_
