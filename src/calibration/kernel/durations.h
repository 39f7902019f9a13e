// Measures how long a kernel and its block tasks take on the whole device.
//
// The first stage of a kernel. Ordinary and worker launches are timed in turn, so that a drift of
// the clocks affects both alike. Threads: one.

#ifndef GPUSHARE_SRC_CALIBRATION_KERNEL_DURATIONS_H_
#define GPUSHARE_SRC_CALIBRATION_KERNEL_DURATIONS_H_

#include "absl/status/status.h"
#include "src/calibration/base/measurement.h"
#include "src/calibration/kernel/kernel_run.h"

namespace gpushare::models {

// Fills solo_ns, worker_solo_ns, worker_overhead, block_task_ns and block_task_spread.
absl::Status MeasureDurations(KernelRun& run, KernelMeasurement& out);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_CALIBRATION_KERNEL_DURATIONS_H_
