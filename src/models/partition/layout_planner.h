// The planner behind the core's seam (core/seams/partitions.h): from the jobs of periodic apps to a
// layout with bounds, or no with the reason.
//
// Jobs run to their end, so the analysis is the exclusive one; the seam's overhead is added to each
// worst case. Threads: any.

#ifndef GPUSHARE_SRC_MODELS_PARTITION_LAYOUT_PLANNER_H_
#define GPUSHARE_SRC_MODELS_PARTITION_LAYOUT_PLANNER_H_

#include "absl/status/statusor.h"
#include "src/core/seams/partitions.h"

namespace gpushare::models::partition {

class LayoutPlanner final : public core::PartitionPlanner {
 public:
  absl::StatusOr<core::PartitionLayout> Plan(const core::PartitionRequest& request) const override;
};

}  // namespace gpushare::models::partition

#endif  // GPUSHARE_SRC_MODELS_PARTITION_LAYOUT_PLANNER_H_
