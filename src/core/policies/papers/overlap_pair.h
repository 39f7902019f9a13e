// What an LC and a BE task take together: fused in one kernel, or with workers that share every SM.
//
// A fused kernel's duration follows from its curve over the load ratio (Tacker eq. 1 to 6),
// whichever of its parts is the LC task's. Of co-resident workers each runs at its measured or
// predicted speed while both run. The LC task's ordinary grid has the rest of each SM, and all of
// it once the workers have left; the workers stay as many as they are.
//
// Used by tacker. Pure; nothing allocates.

#ifndef GPUSHARE_SRC_CORE_POLICIES_PAPERS_OVERLAP_PAIR_H_
#define GPUSHARE_SRC_CORE_POLICIES_PAPERS_OVERLAP_PAIR_H_

#include <cstdint>

#include "src/core/base/containers/bounded_list.h"
#include "src/core/base/types.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

// One way to run the two.
struct Overlap {
  int64_t pair_ns = 0;            // T_k_fuse: until both have ended
  int64_t error_ns = 0;           // one standard deviation
  int32_t be_workers_per_sm = 0;  // co-resident; 0: a fused kernel
  KernelId fused_kernel;          // which one

  // T_gain = T_be - (T_k_fuse - T_lc) of VII-B. Above 0: the first half of eq. 8.
  int64_t GainNs(const HeadView& lc, const HeadView& be) const {
    return be.remaining.duration_ns - (pair_ns - lc.remaining.duration_ns);
  }
  // What it costs the query at most: T_k_fuse - T_lc of eq. 8, with the error.
  int64_t ChargeNs(const HeadView& lc) const {
    return pair_ns + error_ns - lc.remaining.duration_ns;
  }
};

// A kernel as the tables know it.
struct KernelRow {
  KernelId kernel;
  int32_t overlap_index = -1;
};

// The overlaps of one LC kernel.
class OverlapFinder {
 public:
  OverlapFinder(const Snapshot& snapshot, const KernelRow& lc);

  // Ratios of blocks and forms of one pair; more are not looked at.
  static constexpr int kFusedOfPairMax = 8;
  using Overlaps = BoundedList<Overlap, kFusedOfPairMax + kCoScheduleRatios>;
  // Of these two tasks, at their predicted durations: each of their fused kernels, then workers.
  void Find(const HeadView& lc, const HeadView& be, Overlaps& found) const;

  // Whether some durations of the two make an overlap shorter than one after the other, and
  // whether a fused kernel does.
  bool EverGains(const HeadView& be) const;
  bool FusedEverGains(const HeadView& be) const;

 private:
  absl::Span<const CoScheduleOption> CoSchedulesWith(const HeadView& be) const;

  // Fused kernels that an LC kernel is part of; a plan looks at no more.
  static constexpr int kFusedMax = 64;

  struct Fused {
    KernelId other;  // the part that is not the LC kernel
    const FusedView* view = nullptr;
    bool pruned = false;
  };

  const Snapshot& snapshot_;
  const KernelRow lc_;
  BoundedList<Fused, kFusedMax> fused_;
};

// Whether an overlap with this fused kernel is shorter than one after the other at some load ratio:
// at the opportune one, if at any.
bool FusedGains(const FusedCurveView& curve);

// T_gain of an LC kernel and a BE task in the fused kernel. Below 0: they lose. A task that is
// `followed` counts from the opportune load ratio on: what is left of it says nothing of the next
// one, which the LC kernel may meet.
int64_t FusedGainNs(const FusedView& fused, KernelId lc, int64_t lc_ns, int64_t be_ns,
                    bool followed);

// The paper's run-time pruning (VIII-I): a CD kernel that was measured not to gain with one TC
// kernel, in any of their fused kernels, is not fused with others either. Fused kernels that were
// measured themselves speak for themselves.
bool IsPruned(const Snapshot& snapshot, const FusedView& fused);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_PAPERS_OVERLAP_PAIR_H_
