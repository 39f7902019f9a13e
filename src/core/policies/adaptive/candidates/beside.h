// Candidate: BE grids and segments beside LC queries that have time for them.
//
// An LC app whose only promise is a target leaves time that a split may not use: its kernels may be
// too small for the device or need all of it. Then BE work has the whole device also while queries
// are active (carry_out/beside_heads.h). What it may take:
//
//   headroom  of each active query, less a reserve: the grid's duration, or that of an eviction
//             (headroom_ledger.h)
//   T_q       with a grid at most the blocking budget: a query that then waits as long behind
//             others as the p99 alone is in time. Segments alone would leave for it.
//   value     the whole device's, and load x gain: kGridGain, or what was measured of the segments
//             (HeadView::segment_gain). Chosen where it beats the best split, whose value is what
//             was measured of segments on splits, as far as that is known. Grids alone give way to
//             any trial of a split, segments only to one that hopes for more
//
// Threads: the planner's. Pure; nothing allocates.

#ifndef GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_CANDIDATES_BESIDE_H_
#define GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_CANDIDATES_BESIDE_H_

#include <cstdint>

#include "src/core/policies/adaptive/arrangement/arrangement.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

// What BE work that stays beside queries keeps to.
struct BesideTerms {
  int64_t budget_ns = 0;   // for what is on the device when a query comes
  int64_t reserve_ns = 0;  // of each headroom, for errors of predictions
  // Graphs in segments are on the device or may be: a query that comes leaves them there, and the
  // next plan evicts the workers.
  bool any_segments = false;
  bool any_grids = false;  // or kernels and library calls, as ordinary grids
};

class BesideQueries {
 public:
  // `arrangement`: the best without them. Without `allowed` they never apply.
  BesideQueries(const Snapshot& snapshot, const Arrangement& arrangement, bool allowed);

  bool applies() const { return applies_; }
  // What the choice is worth, in the unit of an arrangement's value; 0 if they do not apply.
  double value() const { return value_; }
  // Of the best split beside it.
  double split_value() const { return split_value_; }
  // For the whole device that is so shared: how long the longest of this work keeps a query that
  // comes from the device, and how long it may.
  LatencyShift shift() const { return {longest_ns_, MostNs()}; }
  // How segments run on this arrangement, where both ways may be used.
  SegmentsRun SegmentsRunOn(const Arrangement& arrangement) const;

  const BesideTerms& terms() const { return terms_; }

 private:
  bool ReadLc();
  bool ReadBe();
  int64_t ReserveNs() const;
  double AsMeasured(double predicted, bool in_force) const;
  bool IsBetterThanTrial(const Arrangement& arrangement, double value) const;
  bool AllFit();
  bool Fits(const HeadView& task, int64_t ran_ns);
  // The longest that may be on the device when a query comes.
  int64_t MostNs() const { return terms_.budget_ns - terms_.reserve_ns; }

  const Snapshot& snapshot_;
  BesideTerms terms_;
  int64_t longest_ns_ = 0;
  double load_ = 0;        // of the LC apps
  double gain_ = 0;        // of LC's time, the mean of the BE tasks'
  double split_gain_ = 0;  // the same on a split, as measured
  double split_known_ = 0;
  double split_value_ = 0;
  bool compares_ = false;  // all BE work may run beside queries
  bool applies_ = false;
  double value_ = 0;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_CANDIDATES_BESIDE_H_
