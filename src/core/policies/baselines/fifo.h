// fifo: CUDA's default streams through the library. Everything is launched in order of submission
// on plain lanes; the fast path is closed so that nothing overtakes.

#ifndef GPUSHARE_SRC_CORE_POLICIES_BASELINES_FIFO_H_
#define GPUSHARE_SRC_CORE_POLICIES_BASELINES_FIFO_H_

#include "src/core/seams/policy.h"

namespace gpushare::core {

class FifoPolicy final : public Policy {
 public:
  absl::string_view name() const override { return "fifo"; }
  PolicyProperties properties() const override {
    return {.keeps_reservations = false, .lets_lc_yield = false};
  }
  void MakePlan(const Snapshot& snapshot, Plan& plan) override;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_BASELINES_FIFO_H_
