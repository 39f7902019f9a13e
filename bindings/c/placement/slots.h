// Slots: an entry of gpushare_place's arrays for each replica of each LC app, then for each
// instance of each BE app. A cluster takes what runs from the caller's slots, and a placement fills
// the slots of the answer.
//
// Instances of an app are alike to a placement, and not to the caller. A running slot keeps its
// GPU, or changes it by a move of the placement, or has none; new slots take the other places.
// Threads: any; pure.

#ifndef GPUSHARE_BINDINGS_C_PLACEMENT_SLOTS_H_
#define GPUSHARE_BINDINGS_C_PLACEMENT_SLOTS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "src/models/placement/cluster.h"
#include "src/models/placement/placer.h"

namespace gpushare::abi {

int64_t SlotsOf(const models::placement::Cluster& cluster);

// Adds to the cluster what runs. `running` is a GPU for each slot, or empty where nothing runs.
// INVALID_ARGUMENT: no such GPU.
absl::Status AddRunning(absl::Span<const int32_t> running, models::placement::Cluster& cluster);

// The GPU of each slot, GPUSHARE_NO_GPU for none. `running` is empty where nothing runs.
std::vector<int32_t> GpusOfSlots(const models::placement::Cluster& cluster,
                                 const models::placement::Placement& placement,
                                 absl::Span<const int32_t> running);

}  // namespace gpushare::abi

#endif  // GPUSHARE_BINDINGS_C_PLACEMENT_SLOTS_H_
