// The least number of SMs that any partitioning needs: how far the heuristics are from it.
//
// Up to kExactTasksMax tasks: the least size of every subset, then the cheapest cover by subsets
// (3^n / 2 steps; 16 tasks take about 0.1 s). Beyond: a search over the tasks in decreasing size,
// each into a partition that exists or a new one, cut where the sizes reach the best so far. It is
// bounded by tests, and says whether it came to its end. Threads: one a call.

#ifndef GPUSHARE_SRC_MODELS_PARTITION_EXACT_H_
#define GPUSHARE_SRC_MODELS_PARTITION_EXACT_H_

#include <cstdint>
#include <vector>

#include "src/models/partition/lemmas.h"

namespace gpushare::models::partition {

inline constexpr int kExactTasksMax = 16;

struct Exact {
  std::vector<Partition> partitions;  // the smallest found; empty: a task has no size
  int size = 0;                       // theirs
  int least = 0;  // no partitioning is smaller; equal to size: the answer is exact
};

// `start`: a valid partitioning to beat, of any size; needed beyond kExactTasksMax. `tests_max`
// bounds the tests of the call there.
Exact SearchExact(Tester& tester, const std::vector<Partition>& start, int64_t tests_max);

}  // namespace gpushare::models::partition

#endif  // GPUSHARE_SRC_MODELS_PARTITION_EXACT_H_
