// Slices of a task in a user's plan, two deep: one runs and one waits behind it on its lane.
//
// Threads: those of a policy's make_plan. Pure.

#ifndef GPUSHARE_BENCHMARKS_KERNELET_SLICE_QUEUE_H_
#define GPUSHARE_BENCHMARKS_KERNELET_SLICE_QUEUE_H_

#include <gpushare/gpushare_policy.h>

#include <cstdint>

namespace gpushare::kernelet {

inline constexpr int32_t kSlicesAhead = 2;  // as policy kernelet has (src/core/base/tuning.h)

// A task that is pending: the head of its queue, or on the device.
struct PendingTask {
  const gpushare_head_view* view = nullptr;
  int32_t slices = 0;  // on the device
};

// Adds the launches that are missing. `blocks`: of a slice; 0: the task runs whole.
inline void FillSlices(const PendingTask& task, int64_t blocks, gpushare_plan& plan) {
  const int32_t most = blocks > 0 ? kSlicesAhead : 1;
  for (int32_t i = task.slices; i < most; ++i) {
    gpushare_planned_launch launch = {};
    launch.task = task.view->task;
    launch.form = blocks > 0 ? GPUSHARE_FORM_SLICE : GPUSHARE_FORM_ORIGINAL;
    launch.blocks_max = blocks;
    launch.lane_class = GPUSHARE_LANE_PLAIN;
    plan.launches[plan.launch_count++] = launch;
  }
}

}  // namespace gpushare::kernelet

#endif  // GPUSHARE_BENCHMARKS_KERNELET_SLICE_QUEUE_H_
