// tacker:direct: fuses whatever can be fused, without a decision.
//
// Tacker's motivation is that "blindly fusing the active kernels" does not always raise the
// throughput and may violate the QoS (II-C). This is that comparison: every LC kernel goes with the
// first ready BE kernel that it has a fused kernel with, the first one registered. Neither eq. 8's
// profit nor its headroom is asked for, nor pruning or worker pairs. Nothing is reordered: other BE
// work runs only while no query is active, as under baymax; a graph in segments is evicted then.
// Copies are planned as under baymax.
//
// Pure; nothing allocates.

#ifndef GPUSHARE_SRC_CORE_POLICIES_PAPERS_TACKER_DIRECT_H_
#define GPUSHARE_SRC_CORE_POLICIES_PAPERS_TACKER_DIRECT_H_

#include "src/core/seams/policy.h"

namespace gpushare::core {

class TackerDirectPolicy final : public Policy {
 public:
  absl::string_view name() const override { return "tacker:direct"; }
  PolicyProperties properties() const override { return {.keeps_reservations = false}; }
  void MakePlan(const Snapshot& snapshot, Plan& plan) override;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_PAPERS_TACKER_DIRECT_H_
