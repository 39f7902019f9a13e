// bare: the reference 'alone'. Everything is launched at once, on plain lanes and in order of
// submission, as a program without the library does; the model learns nothing from it.

#ifndef GPUSHARE_SRC_CORE_POLICIES_BASELINES_BARE_H_
#define GPUSHARE_SRC_CORE_POLICIES_BASELINES_BARE_H_

#include "src/core/seams/policy.h"

namespace gpushare::core {

class BarePolicy final : public Policy {
 public:
  absl::string_view name() const override { return "bare"; }
  PolicyProperties properties() const override {
    return {.learns = false, .keeps_reservations = false, .lets_lc_yield = false};
  }
  void MakePlan(const Snapshot& snapshot, Plan& plan) override;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_BASELINES_BARE_H_
