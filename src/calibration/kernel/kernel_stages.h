// The stages of measuring a kernel, in the order in which kernel.cc runs them; each is a file of
// its name, which says what it measures and how. Threads: one.

#ifndef GPUSHARE_SRC_CALIBRATION_KERNEL_KERNEL_STAGES_H_
#define GPUSHARE_SRC_CALIBRATION_KERNEL_KERNEL_STAGES_H_

#include "absl/status/status.h"
#include "src/calibration/base/measurement.h"
#include "src/calibration/kernel/kernel_run.h"

namespace gpushare::models {

// Fills solo_ns, worker_solo_ns, worker_overhead, block_task_ns and block_task_spread.
absl::Status MeasureDurations(KernelRun& run, KernelMeasurement& out);

// Fills saturating_occupancy and workers_per_sm_least of a kernel with workers.
absl::Status MeasureSpeedOverWorkers(KernelRun& run, KernelMeasurement& out);

// Fills speed, knees, intensity and flat_from_sms of a kernel that can be confined.
absl::Status MeasureSpeedOverSms(KernelRun& run, KernelMeasurement& out);

// Fills slice_block_tasks and slice_overhead of an evictable kernel; others may not be launched in
// parts. Sizes are multiples of the SM count, up to half of the sample task. The overhead is the
// median of the possible samples of a size; a size without one is too slow. If no size keeps the
// limit, the overhead is that of the last size tried.
absl::Status MeasureSlice(KernelRun& run, KernelMeasurement& out);

// Fills eviction_p50_ns, eviction_p99_ns and eviction_ns of a kernel whose block task is measured.
absl::Status MeasureEvictions(KernelRun& run, KernelMeasurement& out);

// Times parts of the sample task, as an ordinary grid and as workers, after the stages that a
// profile needs and on top of the kernel's share of the time. Does nothing unless samples are
// wanted and the kernel has both, and changes nothing in `out`.
absl::Status MeasureSizes(KernelRun& run, KernelMeasurement& out);

// Only where samples are wanted, of kernels with workers that can be evicted.
absl::Status MeasureBesideCopies(KernelRun& run, KernelMeasurement& out);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_CALIBRATION_KERNEL_KERNEL_STAGES_H_
