// The slots of one GPU: each simulated by itself, or drawn from the runs of its pair.
//
// A GPU's arrivals depend on the seed, its service, its number among that service's GPUs and the
// slot, so that every policy and placement has the same.
//
// Threads: any.

#ifndef GPUSHARE_TOOLS_GPUSHARE_DATACENTER_GPU_RUN_H_
#define GPUSHARE_TOOLS_GPUSHARE_DATACENTER_GPU_RUN_H_

#include <string>

#include "tools/gpushare/datacenter/gpu_figures.h"
#include "tools/gpushare/datacenter/pair_runs.h"
#include "tools/gpushare/datacenter/placing.h"

namespace gpushare::tool {

// Where the limit is a bound over the p99 alone, the LC app runs alone on the same arrivals too.
GpuFigures SimulateGpu(const RunContext& context, const PlacedGpu& gpu, const std::string& policy);

GpuFigures DrawGpu(const RunContext& context, const PlacedGpu& gpu, const PairRuns& alone,
                   const PairRuns& pairs);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_DATACENTER_GPU_RUN_H_
