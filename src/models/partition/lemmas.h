// Lemmas 1 to 3 of the thesis (3.5), as they hold.
//
// Lemma 1 is necessary only with the least of m C(m) / T over the sizes, because C(m) is measured
// and m C(m) may fall. Lemma 2's binary search needs a C(m) that does not rise, which Workload
// gives. Lemma 3 is the sum of sizes. Pure; any thread.

#ifndef GPUSHARE_SRC_MODELS_PARTITION_LEMMAS_H_
#define GPUSHARE_SRC_MODELS_PARTITION_LEMMAS_H_

#include <vector>

#include "src/models/partition/schedulability.h"
#include "src/models/partition/workload.h"

namespace gpushare::models::partition {

// SMs that the tasks need on average: sum over tasks of the least of m C^n(m) / T. Above the SMs of
// the device no plan exists (lemma 1). With `tester` concurrent, two tasks of a kind are in
// conflict wherever they share a partition, and at most sizes() partitions exist; so all but
// sizes() tasks of each kind count with C^c.
double LeastSms(const Tester& tester);

// A partition: its tasks, its size, and how it treats a running job.
struct Partition {
  TaskList tasks;
  int size = 0;
  Mode mode = Mode::kRunToEnd;
};

// Lemma 2: each task in a partition of its own, as small as keeps its deadline. Empty: the task
// `unrunnable` has none.
std::vector<Partition> OneEach(Tester& tester, int& unrunnable);

// Lemma 3: the sizes of all; the plan fits if they are at most sizes() of the workload.
int SizeOf(const std::vector<Partition>& partitions);

}  // namespace gpushare::models::partition

#endif  // GPUSHARE_SRC_MODELS_PARTITION_LEMMAS_H_
