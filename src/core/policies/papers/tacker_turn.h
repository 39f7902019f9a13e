// Which LC kernels tacker decides about one by one, and which go to the device at once (tacker.h).

#ifndef GPUSHARE_SRC_CORE_POLICIES_PAPERS_TACKER_TURN_H_
#define GPUSHARE_SRC_CORE_POLICIES_PAPERS_TACKER_TURN_H_

#include <array>
#include <cstdint>

#include "src/core/base/containers/bounded_list.h"
#include "src/core/base/limits.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

// Whether the kernel is a node of a graph that is cut. Its cut is for a fused kernel, and workers
// beside it would take the BE work that the next node could be fused with.
bool IsNode(const Snapshot& snapshot, const HeadView& lc);

class TackerTurn {
 public:
  explicit TackerTurn(const Snapshot& snapshot);

  // Whether a task of this LC app may find a partner among the BE work that is there.
  bool MayOverlap(int32_t lc_app) const { return may_overlap_[static_cast<size_t>(lc_app)]; }

  // Whether a query of this app gains more by a partner of one of its graph's kernel nodes than the
  // cut costs it, so that the next one is submitted in pieces (seams/node_cut.h).
  bool CutsGraph(int32_t lc_app) const { return cuts_graph_[static_cast<size_t>(lc_app)]; }

  // Whether this LC head may give way: it is of the query that arrived last, and that query has
  // headroom.
  bool GivesWay(const HeadView& lc) const;

  // Whether some LC head is of an earlier query, so that no BE work goes before it.
  bool EarlierQueryWaits() const { return earlier_waits_; }

  // The LC head can wait for a partner: one is running and may be followed by another. Until then
  // the device has enough of the query's work, or the rest of a fused launch that takes no longer
  // than this head alone.
  bool CanWait(const HeadView& lc) const;

  // How many tasks in a row, this one included, need no decision.
  int32_t Undecided(const HeadView& lc) const;

  int64_t headroom_ns() const { return last_ == nullptr ? 0 : last_->headroom_ns; }

 private:
  bool IsOfLast(const HeadView& lc) const;

  const Snapshot& snapshot_;
  const QueryView* last_ = nullptr;
  bool earlier_waits_ = false;
  std::array<bool, kMaxApps> may_overlap_{};
  std::array<bool, kMaxApps> cuts_graph_{};
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_PAPERS_TACKER_TURN_H_
