// Measures a kernel beside copies, and copies beside the kernel: rows for models, nothing else.
//
// A stage of a kernel (kernel.h), after its evictions and sizes. Threads: one.

#ifndef GPUSHARE_SRC_CALIBRATION_KERNEL_BESIDE_COPIES_H_
#define GPUSHARE_SRC_CALIBRATION_KERNEL_BESIDE_COPIES_H_

#include "absl/status/status.h"
#include "src/calibration/base/measurement.h"
#include "src/calibration/kernel/kernel_run.h"

namespace gpushare::models {

// Only where samples are wanted, of kernels with workers that can be evicted.
absl::Status MeasureBesideCopies(KernelRun& run, KernelMeasurement& out);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_CALIBRATION_KERNEL_BESIDE_COPIES_H_
