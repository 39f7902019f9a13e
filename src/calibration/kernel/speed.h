// Measures the speed of a kernel over its workers an SM, and over numbers of SMs.
//
// After its durations (durations.h). curves.h says what the curves mean. Invariants: at most
// kMaxSpeedPoints sizes, the whole device the last of them; a partition that does not confine the
// kernel is not measured. Threads: one.

#ifndef GPUSHARE_SRC_CALIBRATION_KERNEL_SPEED_H_
#define GPUSHARE_SRC_CALIBRATION_KERNEL_SPEED_H_

#include "absl/status/status.h"
#include "src/calibration/base/measurement.h"
#include "src/calibration/kernel/kernel_run.h"

namespace gpushare::models {

// Fills saturating_occupancy and workers_per_sm_least of a kernel with workers.
absl::Status MeasureSpeedOverWorkers(KernelRun& run, KernelMeasurement& out);

// Fills speed, knees, intensity and flat_from_sms of a kernel that can be confined.
absl::Status MeasureSpeedOverSms(KernelRun& run, KernelMeasurement& out);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_CALIBRATION_KERNEL_SPEED_H_
