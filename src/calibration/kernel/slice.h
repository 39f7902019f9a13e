// Measures the smallest slice of a kernel whose overhead is small enough (Kernelet 4.1).
//
// A slice is a part of the original grid, launched behind the slice before it. Threads: one.

#ifndef GPUSHARE_SRC_CALIBRATION_KERNEL_SLICE_H_
#define GPUSHARE_SRC_CALIBRATION_KERNEL_SLICE_H_

#include "absl/status/status.h"
#include "src/calibration/base/measurement.h"
#include "src/calibration/kernel/kernel_run.h"

namespace gpushare::models {

// Fills slice_block_tasks and slice_overhead of an evictable kernel; others may not be launched in
// parts. Sizes are multiples of the SM count, up to half of the sample task. The overhead is the
// median of the possible samples of a size; a size without one is too slow. If no size keeps the
// limit, the overhead is that of the last size tried.
absl::Status MeasureSlice(KernelRun& run, KernelMeasurement& out);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_CALIBRATION_KERNEL_SLICE_H_
