// Greedy and assignment: BE instances onto GPUs, class by class.
//
// Both fill the GPUs evenly: as few instances on a GPU as place as many as possible. Each pair of
// classes has the value of an instance in its turn; the first instance of a GPU counts in full,
// later ones only share its turns, and the first on a GPU without an LC app costs what a free GPU
// is worth.
//   greedy       pairs by falling value
//   assignment   the flow of the largest value (flow.h), exact for classes where memory binds no
//                GPU with several instances
// A cluster with more pairs of classes than kPairsOfBlockMax is cut into blocks of GPUs and
// instances at random, and each is assigned by itself.
//
// Threads: any.

#ifndef GPUSHARE_SRC_MODELS_PLACEMENT_ASSIGN_H_
#define GPUSHARE_SRC_MODELS_PLACEMENT_ASSIGN_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/models/placement/classes.h"
#include "src/models/placement/state.h"

namespace gpushare::models::placement {

// A network simplex of 65,536 arcs takes about 0.1 s, of 1.3 million 8 s (docs/decisions/0020).
inline constexpr size_t kPairsOfBlockMax = 65'536;
// Values in a flow are whole millionths.
inline constexpr double kValueUnits = 1e6;

struct AssignOptions {
  bool greedy = false;
  // What an instance that stays on its GPU is worth on top, in BE rate: ties never move one.
  double stay_value = 1e-6;
  uint64_t seed = 1;
};

// Adds items to the state, and returns those that found no GPU. An item that may stay is not on its
// GPU in the state.
std::vector<Item> Assign(const Problem& problem, std::vector<Item> items,
                         const AssignOptions& options, State& state);

// No placement of BE instances has a larger value, where the LC apps stand as they do in `state`,
// which has no BE. On each GPU the mean is at most the best of its instances, so this is the best
// choice of at most one instance a GPU. Of a cluster that is cut into blocks it is 1 a GPU.
double UpperBound(const Problem& problem, const State& state, const std::vector<Item>& items);

}  // namespace gpushare::models::placement

#endif  // GPUSHARE_SRC_MODELS_PLACEMENT_ASSIGN_H_
