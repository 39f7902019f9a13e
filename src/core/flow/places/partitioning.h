// A plan of partitions: from the periodic apps to places that the policy `partitioned` uses.
//
//   RequestOf        what the planner is asked: every periodic app with its worst cases
//   NamePartitions   a set of SMs for each partition, in a row from the first group on
//   MakePartitions   the device makes them, in the caller's thread
//   Publish          the plan is in force
//
// The SMs behind the last partition, and those that whole groups leave over, are the rest: BE work
// and LC apps without a partition have them at all times. Until Publish the plan before is in
// force, so a no changes nothing.
//
// Threads: the caller of the plan, under the lock of registrations. What takes `flow` alone: under
// the lock of Tick.

#ifndef GPUSHARE_SRC_CORE_FLOW_PLACES_PARTITIONING_H_
#define GPUSHARE_SRC_CORE_FLOW_PLACES_PARTITIONING_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/core/base/mutex.h"
#include "src/core/base/types.h"
#include "src/core/seams/partitions.h"
#include "src/core/state/flow.h"
#include "src/core/state/options.h"
#include "src/core/state/records.h"

namespace gpushare::core {

struct PartitionQuestion {
  PartitionRequest request;
  std::vector<AppId> apps;  // of the jobs
};

// FAILED_PRECONDITION: the device has no partitions. INVALID_ARGUMENT: reserved SMs that leave no
// partition, or a periodic app without a worst case.
absl::StatusOr<PartitionQuestion> RequestOf(Flow& flow, const PartitionOptions& options);

// The places of a layout that was admitted.
struct NamedPartitions {
  BoundedList<PartitionView, kMaxPartitions> partitions;
  PlaceIndex rest = kNoPlace;
};
// RESOURCE_EXHAUSTED: more partitions, or more sets of SMs, than there is room for; then none is
// named.
absl::StatusOr<NamedPartitions> NamePartitions(Flow& flow, const PartitionLayout& layout);

// FAILED_PRECONDITION: graphs are registered that a place made now would lack. RESOURCE_EXHAUSTED:
// there are kLivePlacesMax places, and no other one is idle. Else what the device refused. After an
// error the places that were made stay until they have been idle for long.
absl::Status MakePartitions(Flow& flow, Mutex& tick_mutex, const NamedPartitions& named)
    ABSL_LOCKS_EXCLUDED(tick_mutex);

// An app that was released since RequestOf has none. Without partitions no plan is in force.
PartitionSummary Publish(Flow& flow, const PartitionQuestion& question,
                         const PartitionLayout& layout, const NamedPartitions& named,
                         const PartitionOptions& options);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_PLACES_PARTITIONING_H_
