// LC kernels with BE partners in fused launches (candidates/fused.h).
//
//   LC head   with the partner that gains most, where no other LC work is on the device, and where
//             the lag of every app and every headroom have room for the longer kernel. While a
//             partner is there or about to be, a kernel waits for the one before it: a fused launch
//             begins behind none, because LC work that is on the device closes the gate for BE
//             work. It never waits on an idle device.
//   partner   stays beside its LC kernel only, and leaves by its own eviction word: at once where a
//             query runs late, and before the LC kernel's predicted end where another one follows,
//             so that its rest is ready for that one
//
// The lag: of a query alone that takes S, with age a and at a slowdown of s, the evidence counts
// all of the first S as served. So D = lag + min(S, a) - min(S, a / s), less half of the eviction
// that every budget accepts, and D + the kernel's own delay may be the app's slack (lag.h).
//
// Threads: the planner's. Pure; nothing allocates.

#ifndef GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_CARRY_OUT_FUSED_HEADS_H_
#define GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_CARRY_OUT_FUSED_HEADS_H_

#include <cstdint>

#include "src/core/policies/adaptive/candidates/fused.h"
#include "src/core/policies/parts/fair_share.h"
#include "src/core/policies/parts/lc_activity.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

class FusedHeads {
 public:
  // The partners apply, where any of the calls below is made.
  FusedHeads(const Snapshot& snapshot, const FusedPartners& partners, const FairShare& shares)
      : snapshot_(snapshot), partners_(partners), shares_(shares) {}

  // Launches or holds the LC heads. Takes the fast path from apps whose kernels may have partners:
  // the scheduler must see each kernel before it is launched. After PublishRoutes.
  void PlanLc(Plan& plan);
  // Evicts BE work that is no partner of an LC kernel on the device, and partners that leave.
  void EvictForLc(Plan& plan) const;
  // While LC work is active, holds every BE head but copies and the partner. Else evicts partners
  // whose LC kernel has ended and that do better alone, and returns false: BE work has the device.
  bool PlanBe(const LcActivity& lc, Plan& plan) const;

 private:
  void ReturnAlone(Plan& plan) const;
  void HoldBe(Plan& plan) const;
  struct Partner {
    const HeadView* be = nullptr;
    FusedWay way;
  };

  void ReadSnapshot();
  void PlanLcHead(const HeadView& lc, bool is_only, Plan& plan);
  Partner FindPartner(const HeadView& lc) const;
  bool HasRoomFor(const HeadView& lc, const FusedWay& way, int turns) const;
  bool IsLate() const;
  int64_t LagOf(size_t lc_app) const;
  bool MayExpectPartner(const HeadView& lc) const;
  void LaunchAlone(const HeadView& lc, int32_t count, Plan& plan) const;
  void LaunchFused(const HeadView& lc, Plan& plan);
  void PlanRunning(const RunningView& running, Plan& plan) const;
  TimeNs LeavesAt(const RunningView& running) const;
  TimeNs LateAt() const;

  const Snapshot& snapshot_;
  const FusedPartners& partners_;
  const FairShare& shares_;
  int32_t lc_in_flight_ = 0;
  int64_t accepted_ns_ = 0;  // of a lag, for the eviction that a busy period begins with
  Partner partner_;          // of the fused launch of this plan
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_CARRY_OUT_FUSED_HEADS_H_
