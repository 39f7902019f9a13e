// LC work first: publishing the routes of the fast path and launching every ready LC head at once.
//
// Every policy that is not a baseline plans its LC side with this. An LC head is never held: it is
// launched at once, also while evicted BE work is still on the device.

#ifndef GPUSHARE_SRC_CORE_POLICIES_PARTS_LC_FIRST_H_
#define GPUSHARE_SRC_CORE_POLICIES_PARTS_LC_FIRST_H_

#include <cstdint>

#include "src/core/base/types.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

// The same route for every LC app. On the whole device, apps of the highest priority have the
// streams of the highest priority, and other LC apps those below, which are still above BE
// kernels'.
void PublishRoutes(const Snapshot& snapshot, const LcRoute& route, Plan& plan);

// Launches all LC heads on their app's route, in the order of the snapshot; returns the predicted
// duration of what it launched. A task that cannot be confined goes to the whole device.
int64_t LaunchLcHeads(const Snapshot& snapshot, Plan& plan);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_PARTS_LC_FIRST_H_
