// Measures eviction latencies of one kernel: whole tasks, evicted at random moments and resumed
// until they are done.
//
// The last stage of a kernel. Invariant: the block tasks of all launches of a task add up to the
// task; if they do not, the calibration fails. Threads: one.

#ifndef GPUSHARE_SRC_CALIBRATION_KERNEL_EVICTIONS_H_
#define GPUSHARE_SRC_CALIBRATION_KERNEL_EVICTIONS_H_

#include "absl/status/status.h"
#include "src/calibration/base/measurement.h"
#include "src/calibration/kernel/kernel_run.h"

namespace gpushare::models {

// Fills eviction_p50_ns, eviction_p99_ns and eviction_ns of a kernel whose block task is measured.
absl::Status MeasureEvictions(KernelRun& run, KernelMeasurement& out);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_CALIBRATION_KERNEL_EVICTIONS_H_
