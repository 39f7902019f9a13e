// Which resource of the SM two instances of a kernel keep busy, and for which share of their time.
//
// A work-conserving order of warps cannot end the last kernel sooner than the busiest resource
// needs for all work. So where round robin keeps one busy all the time, no policy improves both
// kernels.

#ifndef GPUSHARE_BENCHMARKS_WARP_BOTTLENECK_H_
#define GPUSHARE_BENCHMARKS_WARP_BOTTLENECK_H_

#include <string>

#include "src/sim/warp/machine.h"
#include "src/sim/warp/program.h"
#include "src/sim/warp/records.h"

namespace gpushare::warp_experiments {

struct Bottleneck {
  std::string resource;  // issue, a unit's word in traces, lsu, l2 or dram
  double share = 0;      // of the cycles until the last completion
};

// Of `instances` of the program, whose warps are spread evenly over the schedulers.
Bottleneck FindBottleneck(const sim::warp::Machine& machine, const sim::warp::Program& program,
                          int instances, const sim::warp::SimulationResult& result);

}  // namespace gpushare::warp_experiments

#endif  // GPUSHARE_BENCHMARKS_WARP_BOTTLENECK_H_
