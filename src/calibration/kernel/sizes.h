// Durations of a kernel at several sizes, as rows for models. Threads: one.

#ifndef GPUSHARE_SRC_CALIBRATION_KERNEL_SIZES_H_
#define GPUSHARE_SRC_CALIBRATION_KERNEL_SIZES_H_

#include "absl/status/status.h"
#include "src/calibration/base/measurement.h"
#include "src/calibration/kernel/kernel_run.h"

namespace gpushare::models {

// Times parts of the sample task, as an ordinary grid and as workers, after the stages that a
// profile needs and on top of the kernel's share of the time. Does nothing unless samples are
// wanted and the kernel has both, and changes nothing in `out`.
absl::Status MeasureSizes(KernelRun& run, KernelMeasurement& out);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_CALIBRATION_KERNEL_SIZES_H_
