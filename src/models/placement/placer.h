// Placement of a cluster: which GPU has which LC replica and which BE instances, what that is
// worth, and who has no GPU and why.
//
//   Check(cluster)                     ranges (cluster.h)
//   Place(cluster, pairs, options)     also from what runs already, with a bounded number of moves
//
// Placed instances come first, then the value: the sum over GPUs of the mean of BE rate less the
// risk, and what a free GPU is worth for each that nothing is on. A pure function, deterministic by
// its seed, bounded by counts and never by time. Threads: any.

#ifndef GPUSHARE_SRC_MODELS_PLACEMENT_PLACER_H_
#define GPUSHARE_SRC_MODELS_PLACEMENT_PLACER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "src/models/placement/cluster.h"
#include "src/models/placement/pair_table.h"
#include "src/models/placement/running.h"
#include "src/models/placement/state.h"

namespace gpushare::models::placement {

enum class Algorithm : uint8_t { kRandom = 0, kFirstFit = 1, kGreedy = 2, kAssignment = 3 };

struct PlaceOptions {
  Algorithm algorithm = Algorithm::kAssignment;
  Valuation valuation;
  uint64_t seed = 1;
  // Most running BE instances that change their GPU. LC replicas never do.
  int64_t moves_max = 0;
  bool explain = true;  // false: `unplaced` stays empty, and nothing is searched for it
};

struct Unplaced {
  std::string app;
  bool lc = false;
  int64_t count = 0;
  std::string reason;  // one sentence
};

struct Placement {
  std::vector<GpuLoad> gpus;
  std::vector<GpuEffect> effects;  // by GPU
  std::vector<Unplaced> unplaced;
  // A running BE instance that left its GPU and is not here stops.
  std::vector<Move> moves;
  int64_t lc_placed = 0;
  int64_t be_placed = 0;
  int64_t free_gpus = 0;  // with nothing on them
  double be_rate = 0;     // sum over GPUs
  double value = 0;
  double upper_bound = 0;     // of the value of any placement of BE beside these LC replicas
  int64_t moved = 0;          // running BE instances on another GPU than before: moves
  int64_t bounds_broken = 0;  // LC replicas whose predicted p99 is above what they allow
};

// INVALID_ARGUMENT: Check, an option outside its range, or what runs cannot: an unknown GPU or app,
// two LC replicas on a GPU, or less memory than they need.
absl::StatusOr<Placement> Place(const Cluster& cluster, const PairSource& pairs,
                                const PlaceOptions& options);
// The same of a cluster that Check accepts.
absl::StatusOr<Placement> PlaceChecked(const Cluster& cluster, const PairSource& pairs,
                                       const PlaceOptions& options);

}  // namespace gpushare::models::placement

#endif  // GPUSHARE_SRC_MODELS_PLACEMENT_PLACER_H_
