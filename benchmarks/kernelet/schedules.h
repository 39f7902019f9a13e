// One experiment of Kernelet 5.4: the total time that a scheduler needs for a mix's arrivals.

#ifndef GPUSHARE_BENCHMARKS_KERNELET_SCHEDULES_H_
#define GPUSHARE_BENCHMARKS_KERNELET_SCHEDULES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "benchmarks/kernelet/mixes.h"
#include "benchmarks/kernelet/oracle.h"
#include "benchmarks/kernelet/rig.h"

namespace gpushare::kernelet {

inline constexpr char kBase[] = "base";
inline constexpr char kKernelet[] = "kernelet";
inline constexpr char kOpt[] = "opt";
inline constexpr char kAdaptive[] = "adaptive";
inline constexpr char kApart[] = "apart";  // adaptive:apart: never two kernels on an SM

// All of them, in the order of results.
std::vector<std::string> SchedulerNames();
// The library's policy behind a scheduler.
const char* PolicyOf(const std::string& scheduler);

// What runs a mix's arrivals.
struct Contest {
  std::vector<std::string> schedulers = SchedulerNames();
  int rounds = 1;  // each runs all schedulers once, beginning with another one
  int random_runs = 0;
  int random_instances = 0;  // of each kernel; 0: as many as the load has
  int threads = 1;           // of the random runs
};

// From the first arrival until the last instance is complete. Fails where an instance does not
// complete with all of its block tasks, or wrote a wrong result.
int64_t TotalNs(const Mix& mix, const Load& load, const Scheduler& scheduler,
                const RigOptions& options);

struct Comparison {
  std::map<std::string, std::vector<int64_t>> total_ns;  // by scheduler; one a round
  std::vector<int64_t> random_ns;                        // ascending, one a run
  // What the random schedules are compared with: kernelet's time for their number of instances; 0:
  // no random schedule ran.
  int64_t kernelet_beside_random_ns = 0;

  bool Has(const std::string& scheduler) const { return total_ns.count(scheduler) > 0; }
  int64_t MedianNs(const std::string& scheduler) const;  // over the rounds
};
// All runs are of the same arrivals. `oracle` may be null where no scheduler is opt. In real time
// each run prints a line on stderr.
Comparison Compare(const Mix& mix, const Load& load, const Contest& contest, const Oracle* oracle,
                   const RigOptions& options);
// The time of a random schedule: of all pairs and all slice ratios.
int64_t RandomNs(const Mix& mix, const Load& load, uint64_t seed, const RigOptions& options);

}  // namespace gpushare::kernelet

#endif  // GPUSHARE_BENCHMARKS_KERNELET_SCHEDULES_H_
