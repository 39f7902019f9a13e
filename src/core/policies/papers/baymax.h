// baymax: BE work that fits every headroom, by prediction (Baymax 5 and 6).
//
// LC is launched at once in order of submission. A BE kernel or library call is launched when its
// whole predicted duration, with the prediction's error, fits the headroom of every active query
// and T_q stays under the gate; a launch is debited from both (headroom_ledger.h). Copies: N_tr a
// direction, and pinned ones are charged to headroom. Nothing is ever evicted. Without an LC target
// a small window bounds what is issued ahead. Where a target is below the solo time, BE runs one
// task at a time while no query is active. BE apps share by weight (fair_share.h).
//
// baymax:np is the paper's ablation without management of PCIe (7.3): copies are launched as they
// come and charged to nothing.

#ifndef GPUSHARE_SRC_CORE_POLICIES_BAYMAX_H_
#define GPUSHARE_SRC_CORE_POLICIES_BAYMAX_H_

#include "src/core/seams/policy.h"

namespace gpushare::core {

class BaymaxPolicy final : public Policy {
 public:
  explicit BaymaxPolicy(bool manages_copies) : manages_copies_(manages_copies) {}
  absl::string_view name() const override { return manages_copies_ ? "baymax" : "baymax:np"; }
  PolicyProperties properties() const override { return {.keeps_reservations = false}; }
  void MakePlan(const Snapshot& snapshot, Plan& plan) override;

 private:
  const bool manages_copies_;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_BAYMAX_H_
