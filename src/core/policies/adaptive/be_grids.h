// BE grids and segments beside LC queries that have time for them.
//
// An LC app whose only promise is a target leaves time that a split may not use: a captured network
// has no row in the co-schedule table (lc_overlap.h), and its kernels may be too small for the
// device or need all of it. Where no overlap applies, BE work has the whole device also while
// queries are active: kernels and library calls as ordinary grids, graphs in segments, two at most.
// LC's blocks go first, by stream priority, and BE's fill what each LC kernel leaves. Nothing
// evicts a grid; segments are evicted when a query has no time left. What they may take:
//
//   headroom  of each active query, less a reserve: the grid's duration, or that of an eviction
//             (headroom_ledger.h)
//   T_q       with a grid at most the blocking budget: a query that then waits as long behind
//             others as the p99 alone is in time. Segments alone would leave for it.
//   value     the whole device's, and load x gain: kGridGain, or what was measured of the segments
//             (HeadView::segment_gain). Chosen where it beats the best split, whose value is what
//             was measured of segments on splits, as far as that is known. Grids
//             alone give way to any trial of a split, segments only to one that hopes for more
//
// A kernel that was evicted resumes as workers, only while no query is active. Threads: the
// planner's. Pure; nothing allocates.

#ifndef GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_BE_GRIDS_H_
#define GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_BE_GRIDS_H_

#include <cstdint>

#include "src/core/policies/adaptive/layout/layout.h"
#include "src/core/policies/parts/headroom_ledger.h"
#include "src/core/policies/parts/lc_activity.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

class BeGrids {
 public:
  // `layout`: the best without them; `current`: the one in force. Without `allowed` they never
  // apply.
  BeGrids(const Snapshot& snapshot, const Layout& layout, int32_t current, bool allowed);

  bool applies() const { return applies_; }
  // What the choice is worth, in the unit of a layout's value; 0 if they do not apply.
  double value() const { return value_; }
  // Of the best split beside it.
  double split_value() const { return split_value_; }
  // How segments run on this layout, where both ways may be used.
  SegmentsRun SegmentsRunOn(const Layout& layout) const;

  // Whether graphs in segments are on the device or may be: a query that comes leaves them there,
  // and the next plan evicts the workers.
  bool any_segments() const { return any_segments_; }
  // Evicts what may not stay beside active LC work.
  void EvictForLc(Plan& plan) const;
  // Launches or holds every BE head but copies. `lc_ahead_ns`: of the LC tasks that this plan
  // launches.
  void PlanHeads(const LcActivity& lc, int64_t lc_ahead_ns, Plan& plan) const;

 private:
  bool ReadLc();
  bool ReadBe();
  int64_t ReserveNs() const;
  bool IsWholeInForce(int32_t current) const;
  double AsMeasured(double predicted, bool in_force) const;
  bool IsBetterThanTrial(const Layout& layout, double value) const;
  bool AllFit() const;
  bool Fits(const HeadView& task, int64_t ran_ns) const;
  void PlanHead(const HeadView& head, const LcActivity& lc, int32_t& live, HeadroomLedger& ledger,
                Plan& plan) const;
  void PlanRest(const HeadView& head, const LcActivity& lc, int32_t& live, HeadroomLedger& ledger,
                Plan& plan) const;

  const Snapshot& snapshot_;
  const int64_t budget_ns_;  // for what is on the device when a query comes
  double load_ = 0;          // of the LC apps
  int64_t reserve_ns_ = 0;
  double gain_ = 0;        // of LC's time, the mean of the BE tasks'
  double split_gain_ = 0;  // the same on a split, as measured
  double split_known_ = 0;
  double split_value_ = 0;
  bool compares_ = false;  // all BE work may run beside queries
  bool any_segments_ = false;
  bool any_grids_ = false;
  bool applies_ = false;
  double value_ = 0;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_BE_GRIDS_H_
