// What quotas and reservations leave to BE work under tacker.
//
// Nothing of tacker leaves for a query but segments and late partners, so a reservation is kept
// free at all times: BE work holds no more than the rest. Kernels with workers run as so many
// workers as their quota and that rest have left, alone, beside an LC grid or as fused partners.
// Other work runs in the BE side of a split within the limit, its home (parts/be_quota.h), and work
// without one alone while no query is active. A reservation's LC part of a fused launch has as many
// CapSMs.
//
// Threads: the planner's. Nothing allocates.

#ifndef GPUSHARE_SRC_CORE_POLICIES_PAPERS_TACKER_ROOM_H_
#define GPUSHARE_SRC_CORE_POLICIES_PAPERS_TACKER_ROOM_H_

#include <array>
#include <cstdint>

#include "src/core/base/limits.h"
#include "src/core/policies/papers/overlap_pair.h"
#include "src/core/policies/parts/be_quota.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

class TackerRoom {
 public:
  explicit TackerRoom(const Snapshot& snapshot);

  // Whether an app has a quota or a reservation. What follows is for that case.
  bool any() const { return quotas_.any(); }
  // Workers that a launch of the kernel may have; 0: none now.
  int32_t WorkersOf(const HeadView& be) const;
  // Whether the overlap leaves LC its reservation and BE its quota: its workers, or the LC part.
  bool Allows(const HeadView& lc, const HeadView& be, const Overlap& overlap) const;
  // The workers of a fused overlap's BE part, of all that it would have.
  struct Partner {
    int32_t workers = 0;  // 0: all
    double share = 1;
  };
  Partner PartnerOf(const HeadView& be, const Overlap& overlap) const;
  // How the task is launched by itself: the place, and the workers of a kernel that has some.
  // False: it waits for what `hold` says.
  bool Fit(const HeadView& be, PlannedLaunch& launch, PlannedHold& hold) const;
  // A launch of the task was planned.
  void Take(const HeadView& be, const PlannedLaunch& launch);

 private:
  const FusedView* Find(KernelId fused) const;
  bool IsLimited(const HeadView& be) const;
  double LeftCapSms(const HeadView& be) const;

  const Snapshot& snapshot_;
  const BeQuotas quotas_;
  int32_t reserved_ = 0;
  double unreserved_ = 0;  // CapSMs that neither a reservation nor a launch of BE work has
  std::array<double, kMaxApps> taken_{};  // by this plan
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_PAPERS_TACKER_ROOM_H_
