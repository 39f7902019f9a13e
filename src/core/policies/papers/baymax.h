// baymax: BE work that fits every headroom, by prediction (Baymax 5 and 6).
//
// LC is launched at once in order of submission. A BE kernel or library call is launched when its
// whole predicted duration, with the prediction's error, fits the headroom of every active query
// and T_q stays under the gate; a launch is debited from both (headroom_ledger.h). A graph that
// runs in segments is charged what an eviction waits for, and is evicted when its next segments no
// longer fit; nothing else is ever evicted. Copies: N_tr a direction, and pinned ones are charged
// to headroom. Without an LC target a small window bounds what is issued ahead. Where a target is
// below the solo time, BE runs one task at a time while no query is active. BE apps share by weight
// (fair_share.h).
//
// The paper's ablations: baymax:nc "does not consider concurrent kernel execution" (7.3), so that
// the time which it saved does not come back to a headroom (eq. 4); each launch takes its predicted
// duration from the headroom of eq. 3 for good. baymax:np does not manage PCIe (7.4): copies are
// launched as they come, whatever the headrooms. While they run, T_q has them.

#ifndef GPUSHARE_SRC_CORE_POLICIES_PAPERS_BAYMAX_H_
#define GPUSHARE_SRC_CORE_POLICIES_PAPERS_BAYMAX_H_

#include <cstdint>

#include "src/core/seams/policy.h"

namespace gpushare::core {

enum class BaymaxForm : uint8_t { kWhole = 0, kNoRefill = 1, kNoPcie = 2 };

class BaymaxPolicy final : public Policy {
 public:
  explicit BaymaxPolicy(BaymaxForm form) : form_(form) {}
  absl::string_view name() const override {
    if (form_ == BaymaxForm::kNoRefill) return "baymax:nc";
    return form_ == BaymaxForm::kNoPcie ? "baymax:np" : "baymax";
  }
  PolicyProperties properties() const override {
    return {.keeps_reservations = false, .serial_headrooms = form_ == BaymaxForm::kNoRefill};
  }
  void MakePlan(const Snapshot& snapshot, Plan& plan) override;

 private:
  const BaymaxForm form_;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_PAPERS_BAYMAX_H_
