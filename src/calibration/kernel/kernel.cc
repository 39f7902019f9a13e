// The stages of one kernel; see kernel.h.

#include "src/calibration/kernel/kernel.h"

#include <initializer_list>
#include <utility>

#include "src/calibration/kernel/kernel_stages.h"
#include "src/core/base/status.h"

namespace gpushare::models {
namespace {

using KernelStage = absl::Status (*)(KernelRun& run, KernelMeasurement& out);

absl::StatusOr<KernelMeasurement> RunStages(KernelRun& run, std::initializer_list<KernelStage> all,
                                            KernelMeasurement out) {
  for (const KernelStage stage : all) {
    GPUSHARE_RETURN_IF_ERROR(run.timer.CheckCancelled());
    GPUSHARE_RETURN_IF_ERROR(stage(run, out));
  }
  out.spent_ns += run.SpentNs();
  return out;
}

}  // namespace

absl::StatusOr<KernelMeasurement> MeasureBasics(KernelRun run) {
  KernelMeasurement out;
  out.name = run.item.kernel.name;
  out.kind = run.item.kernel.kind();
  out.block_tasks = run.item.has_block_tasks() ? run.item.block_tasks : 0;
  out.workers_per_sm = run.workers_per_sm;
  return RunStages(run, {MeasureDurations, MeasureSpeedOverWorkers, MeasureSpeedOverSms},
                   std::move(out));
}

absl::StatusOr<KernelMeasurement> MeasureRest(KernelRun run, KernelMeasurement basics) {
  basics.rest_measured = true;
  return RunStages(run, {MeasureSlice, MeasureEvictions, MeasureSizes, MeasureBesideCopies},
                   std::move(basics));
}

}  // namespace gpushare::models
