// A partitioning after tasks came and went, with few tasks in another partition than before.
//
// A task in another partition needs its kernels and graphs prepared there, so moves have a price.
// Threads: one a call.

#ifndef GPUSHARE_SRC_MODELS_PARTITION_REPAIR_H_
#define GPUSHARE_SRC_MODELS_PARTITION_REPAIR_H_

#include <string>
#include <vector>

#include "src/models/partition/portfolio.h"
#include "src/models/partition/task_set.h"

namespace gpushare::models::partition {

struct Repaired {
  Found found;
  int moved = 0;  // tasks of before that are in another partition
};

// `before`: the names of the tasks of each partition. `tester` has the workload of `set`.
Repaired Repair(const TaskSet& set, Tester& tester,
                const std::vector<std::vector<std::string>>& before, const SearchOptions& options);

}  // namespace gpushare::models::partition

#endif  // GPUSHARE_SRC_MODELS_PARTITION_REPAIR_H_
