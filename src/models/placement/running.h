// What runs already, on the GPUs of a problem: what stays, what left, what no longer fits.
//
// Threads: any.

#ifndef GPUSHARE_SRC_MODELS_PLACEMENT_RUNNING_H_
#define GPUSHARE_SRC_MODELS_PLACEMENT_RUNNING_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "src/models/placement/state.h"

namespace gpushare::models::placement {

struct RunningNow {
  std::vector<GpuLoad> gpus;         // without what left
  std::vector<int32_t> lc_arriving;  // replicas by app, that have no GPU yet
  std::vector<int32_t> be_arriving;  // instances by app
};

// An app that runs more often than it is stated has left as often, from its last GPUs.
absl::StatusOr<RunningNow> ReadRunning(const Problem& problem);

// Running BE instances that changed their GPU from `before` to `after`. Instances of an app are
// alike: one that ends on a GPU where another began does not count, and an arriving one takes a new
// place before a running one does.
int64_t MovesOf(const RunningNow& before, const std::vector<GpuLoad>& after);

}  // namespace gpushare::models::placement

#endif  // GPUSHARE_SRC_MODELS_PLACEMENT_RUNNING_H_
