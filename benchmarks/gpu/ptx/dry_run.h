// What the benchmark of fused twins can do without a GPU: reads a folder, chooses pairs by what the
// files tell, fuses every ratio, and assembles as many as the time allows where nvJitLink is
// installed. Threads: one.

#ifndef GPUSHARE_BENCHMARKS_GPU_PTX_DRY_RUN_H_
#define GPUSHARE_BENCHMARKS_GPU_PTX_DRY_RUN_H_

#include <cstddef>
#include <vector>

#include "benchmarks/gpu/ptx/fused_ratios.h"
#include "benchmarks/gpu/ptx/recorded_folder.h"

namespace gpushare::benchmarks {

// Prints a report with a row for each pair, in about so many seconds. Returns the exit code: 0
// where a pair was fused. Registers are not known without a GPU, so that no ratio is capped.
int DryRun(const std::vector<RecordedFile>& files, size_t pairs, const RatioBounds& bounds,
           double seconds);

}  // namespace gpushare::benchmarks

#endif  // GPUSHARE_BENCHMARKS_GPU_PTX_DRY_RUN_H_
