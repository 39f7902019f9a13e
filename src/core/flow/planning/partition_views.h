// What a policy sees of the plan of partitions: the places, and of each periodic app its job on the
// device. Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_FLOW_PLANNING_PARTITION_VIEWS_H_
#define GPUSHARE_SRC_CORE_FLOW_PLANNING_PARTITION_VIEWS_H_

#include "src/core/state/flow.h"

namespace gpushare::core {

// Fills the snapshot's `partitions`; null without a plan, and under a policy that uses none. Counts
// jobs that are beyond their worst case on the device. Behind the views of the LC apps.
void ViewPartitions(Flow& flow);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_PLANNING_PARTITION_VIEWS_H_
