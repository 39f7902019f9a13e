// Measures one kernel: durations, block tasks and speeds; then, once all kernels have these, slices
// and evictions.
//
// It runs the stages of kernel_stages.h. Threads: one.

#ifndef GPUSHARE_SRC_CALIBRATION_KERNEL_KERNEL_H_
#define GPUSHARE_SRC_CALIBRATION_KERNEL_KERNEL_H_

#include "absl/status/statusor.h"
#include "src/calibration/base/measurement.h"
#include "src/calibration/kernel/kernel_run.h"

namespace gpushare::models {

// Durations, workers and speeds.
absl::StatusOr<KernelMeasurement> MeasureBasics(KernelRun run);

// `basics` with the slices and evictions of the kernel.
absl::StatusOr<KernelMeasurement> MeasureRest(KernelRun run, KernelMeasurement basics);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_CALIBRATION_KERNEL_KERNEL_H_
