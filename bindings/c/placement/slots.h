// Slots: an entry of gpushare_place's arrays for each replica of each LC app, then for each
// instance of each BE app. What runs goes from them into a cluster, a placement into them.
//
// Instances of an app are alike to a placement, and not to the caller: one that keeps its GPU keeps
// its slot, and a new one takes a new place before a running one does, so that as many slots change
// as the placement counts moves. Threads: any; pure.

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

// Adds to the cluster what runs. `running` is a GPU for each slot. INVALID_ARGUMENT: no such GPU.
absl::Status AddRunning(absl::Span<const int32_t> running, models::placement::Cluster& cluster);

// The GPU of each slot, GPUSHARE_NO_GPU for none. `running` is empty where nothing runs.
std::vector<int32_t> GpusOfSlots(const models::placement::Cluster& cluster,
                                 const models::placement::Placement& placement,
                                 absl::Span<const int32_t> running);

}  // namespace gpushare::abi

#endif  // GPUSHARE_BINDINGS_C_PLACEMENT_SLOTS_H_
