// BE workers that stay beside LC work: they share every SM with it while its queries have time.
//
// An LC app whose only promise is a target leaves time that an eviction wastes. Where the
// co-schedule table says that an LC kernel and a BE kernel together gain, BE keeps the ratio's
// workers on each SM, and LC's grid takes the rest (Tacker's co-residency, without holding an LC
// task):
//
//   gain     be speed / lc speed - (1 / lc speed - 1), of LC's time; speeds less their error bar
//   value    the whole device's, and load x gain: chosen where it beats the best split
//   slack    each active query still ends in time if all work up to it runs at the lower speed, and
//            so does one that then waits as long as the p99 alone; else BE is evicted at once
//
// LC tasks go on by the fast path, which evicts nothing then: the next plan takes the workers that
// are too many. Threads: the planner's. Pure; nothing allocates.

#ifndef GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_LC_OVERLAP_H_
#define GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_LC_OVERLAP_H_

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>

#include "src/core/base/limits.h"
#include "src/core/policies/adaptive/layout/layout.h"
#include "src/core/policies/parts/be_quota.h"
#include "src/core/policies/parts/fair_share.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

// How one BE kernel runs beside the LC work.
struct BesideLc {
  int32_t workers_per_sm = 0;  // 0: it does not
  double lc_speed = 0;         // the least of the LC apps'
  double be_speed = 0;         // the least beside them
  double gain = 0;             // of LC's time
};

class LcOverlap {
 public:
  // `layout`: the best without overlap; `current`: the one in force. Without `allowed` it never
  // applies.
  LcOverlap(const Snapshot& snapshot, const Layout& layout, int32_t current, bool allowed);

  // Whether BE shares SMs with LC work, on the whole device.
  bool applies() const { return applies_; }
  // What the choice is worth, in the unit of a layout's value.
  double value() const { return value_; }

  // Evicts what may not stay beside active LC work: all but the workers of one task.
  void EvictForLc(Plan& plan) const;
  // Beside active LC work, where no BE task is on the device: the head that is next by weight.
  // Null: none is launched.
  const HeadView* LaunchBeside(Plan& plan) const;

 private:
  bool ReadLc();
  double MeanGain();
  BesideLc FindBeside(const HeadView& be) const;
  BesideLc AtRatio(const HeadView& be, size_t ratio, std::array<double, kMaxApps>& speeds) const;
  // Of a BE kernel with a row.
  const BesideLc& BesideOf(const HeadView& be) const {
    return beside_[static_cast<size_t>(be.overlap_index)];
  }
  bool IsStable(const std::array<double, kMaxApps>& speeds) const;
  double P99Alone(const LcAppView& view) const;
  // For how long every active query, and one that arrives now, still ends in time beside BE work
  // that slows LC so; below 0: one does not.
  int64_t SlackNs(const HeadView& be, const BesideLc& beside) const;
  // Workers on the whole device, in one part.
  static bool IsWhole(const RunningView& running);
  void LookAgain(int64_t slack_ns, Plan& plan) const;

  const Snapshot& snapshot_;
  std::array<int32_t, kMaxApps> rows_{};             // of the LC apps' main kernels
  std::bitset<kMaxOverlapKernels> known_;            // rows of `beside_`
  std::array<BesideLc, kMaxOverlapKernels> beside_;  // by row
  double load_ = 0;                                  // of the LC apps
  double service_ns_ = 0;                            // mean of their queries, weighted by load
  bool applies_ = false;
  double value_ = 0;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_LC_OVERLAP_H_
