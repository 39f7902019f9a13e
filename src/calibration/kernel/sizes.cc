// Durations of a kernel at several sizes, as rows for models. Threads: one.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "src/calibration/kernel/kernel_stages.h"
#include "src/calibration/launch/request.h"
#include "src/core/base/status.h"

namespace gpushare::models {
namespace {

// Shares of the sample task, whose whole is timed with its durations. They give rounds that are not
// whole, as the tasks of users have.
constexpr double kShares[] = {0.07, 0.12, 0.21, 0.34, 0.53, 0.73, 0.91};
constexpr int kRepeatsMost = 5;

absl::Status MeasureSize(KernelRun& run, int64_t block_tasks, KernelMeasurement& out) {
  const double share = static_cast<double>(block_tasks) / static_cast<double>(run.item.block_tasks);
  const int batch = run.BatchFor(static_cast<double>(out.solo_ns) * share);
  const core::LaunchRequest grid = SliceRequest(run.item, run.plain_lane, 0, block_tasks);
  std::vector<double> grids;
  std::vector<double> workers;
  for (int i = 0; i < std::min(run.options.repeats, kRepeatsMost); ++i) {
    GPUSHARE_RETURN_IF_ERROR(run.timer.CheckCancelled());
    GPUSHARE_ASSIGN_OR_RETURN(const double each, run.timer.TimePerLaunch(grid, batch));
    grids.push_back(each);
    GPUSHARE_ASSIGN_OR_RETURN(const TimedLaunch one, run.timer.RunOne(run.Workers(block_tasks)));
    workers.push_back(one.duration_ns());
  }
  AddSoloSize(block_tasks, grids, out);
  run.Sample(run.SoloRow(grid, std::move(grids)));
  run.Sample(run.SoloRow(run.Workers(block_tasks), std::move(workers)));
  return absl::OkStatus();
}

}  // namespace

absl::Status MeasureSizes(KernelRun& run, KernelMeasurement& out) {
  if (!run.wants_samples() || !run.evictable()) return absl::OkStatus();
  int64_t last = 0;
  for (const double share : kShares) {
    const auto block_tasks =
        static_cast<int64_t>(std::ceil(share * static_cast<double>(run.item.block_tasks)));
    if (block_tasks == last) continue;
    last = block_tasks;
    GPUSHARE_RETURN_IF_ERROR(MeasureSize(run, block_tasks, out));
  }
  return absl::OkStatus();
}

}  // namespace gpushare::models
