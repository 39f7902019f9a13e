// The limit of a launch that may hang. See hang_limit.h.

#include "src/core/flow/verbs/hang_limit.h"

#include <algorithm>

#include "src/core/flow/verbs/predict_task.h"
#include "src/core/seams/launch_claims.h"

namespace gpushare::core {
namespace {

// Block tasks run side by side on the place, as many as it holds and the task has.
int64_t SideBySide(const Flow& flow, const Part& part, int64_t blocks_left) {
  const int64_t holds = int64_t{flow.lanes.place(part.place).sms} * part.workers_per_sm;
  return std::max<int64_t>(1, std::min(holds, blocks_left));
}

}  // namespace

bool ShowsClaims(const Flow& flow, const Part& part) {
  return ClaimsBlockTasks(part.form) && flow.device->capabilities().reads_claims;
}

int64_t HangLimitNs(const Flow& flow, const Task& task, const Part& part) {
  double ns = static_cast<double>(RemainingOf(task).duration_ns);
  const KernelDesc* const kernel = task.work.kernel;
  if (kernel != nullptr && part.place != kWholeDevice) {
    const double speed = flow.model->durations().SpeedOn(*kernel, flow.lanes.place(part.place).sms);
    if (speed > 0) ns /= speed;
  }
  if (HasWorkers(part.form)) {
    const int64_t left = std::max<int64_t>(1, task.work.block_tasks - task.progress.blocks_done);
    const int64_t workers = std::max(1, part.workers);
    const int64_t most = SideBySide(flow, part, left);
    if (workers < most) ns *= static_cast<double>(most) / static_cast<double>(workers);
    if (ShowsClaims(flow, part) && left > workers) {
      ns *= static_cast<double>(workers) / static_cast<double>(left);
    }
  }
  const double limit_ns =
      std::min(flow.options.hang_factor * ns, static_cast<double>(kMaxHangLimitNs));
  return std::max(flow.options.hang_floor_ns, static_cast<int64_t>(limit_ns));
}

}  // namespace gpushare::core
