// priority: CUDA's stream priorities. LC on the highest, BE on the lowest, everything at once; BE
// is launched as ordinary grids and never evicted, so a priority acts only where a block ends.

#ifndef GPUSHARE_SRC_CORE_POLICIES_BASELINES_PRIORITY_H_
#define GPUSHARE_SRC_CORE_POLICIES_BASELINES_PRIORITY_H_

#include "src/core/seams/policy.h"

namespace gpushare::core {

class PriorityPolicy final : public Policy {
 public:
  absl::string_view name() const override { return "priority"; }
  PolicyProperties properties() const override { return {.keeps_reservations = false}; }
  void MakePlan(const Snapshot& snapshot, Plan& plan) override;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_BASELINES_PRIORITY_H_
