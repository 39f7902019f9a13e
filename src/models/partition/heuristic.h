// The thesis's heuristic (3.5): a partition for each task, then merges until the sizes fit.
//
// Algorithm 1 is the loop, algorithm 2 one merge, algorithm 3 the choice of what to merge. Where
// the text is open or contradicts itself: the list of partitions is in decreasing utilisation, and
// a merged one takes its place in it; algorithm 3 leaves the chosen partition out of the eligible
// ones and ends when no candidate is left; definition 4 divides by the period, and its key needs no
// merge. docs/partition-planner.md has what each choice changes. Threads: one a call.

#ifndef GPUSHARE_SRC_MODELS_PARTITION_HEURISTIC_H_
#define GPUSHARE_SRC_MODELS_PARTITION_HEURISTIC_H_

#include <cstdint>
#include <vector>

#include "src/models/partition/forbidden.h"
#include "src/models/partition/lemmas.h"

namespace gpushare::models::partition {

// Which of the eligible partitions is merged with the chosen one.
enum class Order : uint8_t {
  kSmallest,   // SMS, definition 3: whose union is smallest
  kBestFit,    // BF, definition 4 to the letter: least utilisation of the union at the larger size
  kMostSaved,  // whose merge saves the most SMs
  kFullest,    // what best fit usually means: the most utilisation that still merges
};

struct HeuristicOptions {
  Order order = Order::kSmallest;
  bool increasing = false;  // the list of partitions in increasing utilisation
  int size_goal = 0;        // merges end once the sizes are at most this; 0: at no valid merge
  int64_t tests_max = INT64_MAX;  // of the tester, those before the call included
};

// Merges `singles`, which OneEach made. `pairs`: ACT's list, null for INA. The result is valid
// whether or not it reaches the goal.
std::vector<Partition> MergePartitions(Tester& tester, const std::vector<Partition>& singles,
                                       const PairFlags* pairs, const HeuristicOptions& options);

}  // namespace gpushare::models::partition

#endif  // GPUSHARE_SRC_MODELS_PARTITION_HEURISTIC_H_
