// One experiment of Kernelet 5.4: the total time that a scheduler needs for a mix's arrivals.

#ifndef GPUSHARE_BENCHMARKS_KERNELET_SCHEDULES_H_
#define GPUSHARE_BENCHMARKS_KERNELET_SCHEDULES_H_

#include <cstdint>
#include <vector>

#include "benchmarks/kernelet/mixes.h"
#include "benchmarks/kernelet/oracle.h"
#include "benchmarks/kernelet/rig.h"

namespace gpushare::kernelet {

// From the first arrival until the last instance is complete. Fails where an instance does not
// complete with all of its block tasks.
int64_t TotalNs(const Mix& mix, const Load& load, const Scheduler& scheduler,
                const RigOptions& options);

struct Comparison {
  int64_t base_ns = 0;
  int64_t kernelet_ns = 0;
  int64_t opt_ns = 0;
  int64_t adaptive_ns = 0;
  std::vector<int64_t> random_ns;  // ascending, one a run
};
// BASE, kernelet, OPT and adaptive, and `runs` random schedules on so many threads, of one mix's
// arrivals.
Comparison Compare(const Mix& mix, const Load& load, const Oracle& oracle, int runs, int threads,
                   const RigOptions& options);

}  // namespace gpushare::kernelet

#endif  // GPUSHARE_BENCHMARKS_KERNELET_SCHEDULES_H_
