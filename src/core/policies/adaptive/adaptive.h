// adaptive: BE wherever its blocking time fits, by the mechanism with the largest predicted
// throughput. The default policy.
//
// 1. choose an arrangement (choose.h): whole device, or a split, elastic or static; on the whole
//    device BE work may stay beside LC work (candidates/beside.h), or go with LC kernels as their
//    fused partner (candidates/fused.h)
// 2. publish the LC routes and launch every LC head at once, or with its partner
// 3. evict BE parts that overlap active LC work and may not stay, or an arrangement that is left
// 4. launch BE on the places that the arrangement opens (be_places.h), copies in pieces
// (be_copies.h)
//
// Invariants: no LC head is held but behind its own queue's work, for a partner; no BE launch on a
// place that overlaps active LC work, but what all queries have time for; BE's blocking time stays
// within the least blocking budget, also while no query is active. A forced mechanism
// ("adaptive:evict") runs evictable BE work also where LC apps miss their bounds: for measurements
// only.

#ifndef GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_ADAPTIVE_H_
#define GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_ADAPTIVE_H_

#include <cstdint>

#include "src/core/policies/adaptive/arrangement/shift.h"
#include "src/core/policies/adaptive/choose.h"
#include "src/core/policies/parts/fair_share.h"
#include "src/core/policies/parts/lc_activity.h"
#include "src/core/seams/policy.h"

namespace gpushare::core {

// Whether kernels share SMs where that pays (candidates/beside.h, be_pairs.h), or never: to measure
// what it gains.
enum class SmSharing : uint8_t { kWhereItPays, kNone };

class AdaptivePolicy final : public Policy {
 public:
  explicit AdaptivePolicy(Mechanism mechanism, SmSharing sharing = SmSharing::kWhereItPays)
      : mechanism_(mechanism), sharing_(sharing), chooser_(mechanism) {}
  absl::string_view name() const override;
  void MakePlan(const Snapshot& snapshot, Plan& plan) override;

 private:
  const Arrangement& Choose(const Snapshot& snapshot, Plan& plan);
  bool HasDuty(int32_t split) const;
  bool IsPaused(const Snapshot& snapshot, int32_t split) const;
  // Whether no BE work for the SMs is launched now.
  bool HoldsAll(const Snapshot& snapshot, bool change_waits, int32_t split) const;
  bool SharesSms() const;
  // Launches or holds BE work on the places that the arrangement opens.
  void FillPlaces(const Snapshot& snapshot, const Arrangement& arrangement, const LcActivity& lc,
                  FairShare& shares, Plan& plan);

  Mechanism mechanism_;
  SmSharing sharing_;
  const Arrangement whole_{};
  Arrangement left_;  // the whole device, where queries have left the best split
  Shifts shifts_;
  Chooser chooser_;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_ADAPTIVE_H_
