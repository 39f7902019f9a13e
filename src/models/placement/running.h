// What runs already, on the GPUs of a problem, and which of it a placement moves.
//
//   ReadRunning(problem)                   before the placement
//   ChangesOf(before, fits, after)         by app: GPUs that instances leave and come to
//   MovesOf(before, changes, moves_max)    which running instances take the places
//
// Instances of an app are alike: one that ends on a GPU where another began stays. A running
// instance that leaves its GPU takes a place of its app before a new one does.
//
// Threads: any.

#ifndef GPUSHARE_SRC_MODELS_PLACEMENT_RUNNING_H_
#define GPUSHARE_SRC_MODELS_PLACEMENT_RUNNING_H_

#include <algorithm>
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

// A running BE instance that changes its GPU.
struct Move {
  int32_t be = 0;
  int32_t from = 0;
  int32_t to = 0;
};

// Of one BE app, with a GPU for each instance, ascending.
struct Change {
  std::vector<int32_t> left_fitting;    // running instances left, although they fit there
  std::vector<int32_t> left_displaced;  // they no longer fit there
  std::vector<int32_t> come;            // instances came, running or new

  int64_t left() const { return static_cast<int64_t>(left_fitting.size() + left_displaced.size()); }
  // Moves where each running instance that finds a place takes it.
  int64_t moves() const { return std::min(left(), static_cast<int64_t>(come.size())); }
};

// By BE app. `fits`: by GPU, the instances of `before` that still fit there.
std::vector<Change> ChangesOf(const RunningNow& before,
                              const std::vector<std::vector<int32_t>>& fits,
                              const std::vector<GpuLoad>& after);

// At most moves_max. Where that is too few, new instances take the other places. Needs no more
// places than new instances and moves_max can take.
std::vector<Move> MovesOf(const RunningNow& before, const std::vector<Change>& changes,
                          int64_t moves_max);

}  // namespace gpushare::models::placement

#endif  // GPUSHARE_SRC_MODELS_PLACEMENT_RUNNING_H_
