// Moves and swaps of single tasks, for a partitioning whose sizes do not fit yet.
//
// A step takes a random task to another partition, or exchanges two, and keeps what does not grow
// the sum of sizes. Steps that leave the sum equal are kept too: they are what leads out of the
// heuristic's result. Seeded, and bounded by tests, so that a plan is the same everywhere. Threads:
// one a call.

#ifndef GPUSHARE_SRC_MODELS_PARTITION_IMPROVE_H_
#define GPUSHARE_SRC_MODELS_PARTITION_IMPROVE_H_

#include <cstdint>
#include <vector>

#include "src/models/partition/lemmas.h"

namespace gpushare::models::partition {

struct ImproveOptions {
  int size_goal = 0;
  int64_t tests_max = 0;  // of the tester, those before the call included
  uint64_t seed = 1;
};

// `partitions` stays valid and never grows; ends at the goal or at the bound.
void Improve(Tester& tester, std::vector<Partition>& partitions, const ImproveOptions& options);

}  // namespace gpushare::models::partition

#endif  // GPUSHARE_SRC_MODELS_PARTITION_IMPROVE_H_
