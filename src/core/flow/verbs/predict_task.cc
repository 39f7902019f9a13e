// The verb "predict" of one task. See predict_task.h.

#include "src/core/flow/verbs/predict_task.h"

#include <algorithm>

#include "src/core/flow/learn/learn.h"
#include "src/core/log/label.h"
#include "src/core/seams/width.h"
#include "src/core/state/features.h"

namespace gpushare::core {
namespace {

// A BE kernel gets a row in the pair table. That of a trial under way stays.
void UsePairRow(Flow& flow, const Task& task) {
  if (task.work.kernel == nullptr) return;
  const KernelDesc& kernel = *task.work.kernel;
  const int32_t before = flow.pair_kernels.RowOf(kernel.id);
  const int32_t row = flow.pair_kernels.Use(kernel, task.app->slot, flow.now_ns,
                                            flow.evidence.in_force.trial_kernel);
  flow.pairs_stale = flow.pairs_stale || row != before;
}

// A kernel gets a row in the co-schedule table, if it has workers.
void UseOverlapRow(Flow& flow, const Task& task) {
  const KernelDesc* const kernel = task.work.kernel;
  if (kernel == nullptr || kernel->kind() != TaskKind::kKernel || !kernel->evictable) return;
  flow.overlap_kernels.Use(*kernel, task.app->slot, flow.now_ns);
}

// Whether another BE part that is no copy is on SMs of the part.
bool SharesSms(const Flow& flow, const Part& part) {
  const uint64_t shared = flow.lanes.place(part.place).overlaps;
  for (const Task* const task : flow.running_be) {
    if (task->work.kind == TaskKind::kMemcpy) continue;
    for (const Part& other : task->progress.parts) {
      if (&other != &part && (shared >> other.place & 1) != 0) return true;
    }
  }
  return false;
}

}  // namespace

Prediction RemainingOf(const Task& task) {
  Prediction left = task.progress.predicted;
  if (task.progress.blocks_done > 0 && task.work.block_tasks > 0) {
    const double share = static_cast<double>(task.work.block_tasks - task.progress.blocks_done) /
                         static_cast<double>(task.work.block_tasks);
    left.duration_ns = static_cast<int64_t>(static_cast<double>(left.duration_ns) * share);
    left.error_ns = static_cast<int64_t>(static_cast<double>(left.error_ns) * share);
  }
  return left;
}

void PredictTask(Flow& flow, Task& task) {
  task.progress.predicted = flow.model->durations().PredictSolo(FeaturesOf(task));
  task.record.predicted_ns = task.progress.predicted.duration_ns;
  task.record.predicted_error_ns = task.progress.predicted.error_ns;
  if (task.IsEvictable() && flow.device->capabilities().eviction) {
    const Prediction eviction = flow.model->durations().PredictEviction(*task.work.kernel);
    // Mean plus two standard deviations is about the p99, and LC bounds limit the p99.
    task.progress.eviction_p99_ns = eviction.duration_ns + 2 * eviction.error_ns;
    // An unknown kernel is assumed to leave at once: if a guess held it, it would never be
    // measured. That of a graph is no guess: its segments have the length that was asked for.
    task.progress.eviction_known =
        eviction.trained || task.work.kernel->simulation.present || task.IsSegmented();
    // What longer segments teach says nothing of its own ones, so those are seen first.
    task.progress.eviction_learned =
        eviction.trained || task.work.kernel->known_blocking() != nullptr;
    if (!task.progress.eviction_known) {
      task.progress.eviction_p99_ns = flow.device->capabilities().profile.eviction_write_latency_ns;
    }
    // A delay at the start of a busy period adds its mean to every quantile of the latency, if it
    // is nearly the same each time. That of a graph whose segments are known is not
    // (planning/head_views.cc).
    const Prediction blocking = flow.model->durations().PredictBlocking(*task.work.kernel);
    if (task.IsSegmented() && task.work.kernel->known_blocking() != nullptr) {
      task.progress.blocking_ns = task.progress.eviction_p99_ns;
      task.progress.blocking_mean_ns = blocking.trained ? blocking.duration_ns : 0;
    } else {
      task.progress.blocking_ns = std::min(task.progress.eviction_p99_ns, blocking.duration_ns);
    }
  }
  UseOverlapRow(flow, task);
  if (task.app->options.app_class == AppClass::kBestEffort) {
    UsePairRow(flow, task);
  } else {
    LearnPrediction(flow, task);
    if (task.query != nullptr) task.query->solo_ns += task.progress.predicted.duration_ns;
  }
  if (flow.HasEvents()) {
    flow.Emit(Admitted{.task = LabelOf(task),
                       .predicted_ns = task.progress.predicted.duration_ns,
                       .error_ns = task.progress.predicted.error_ns});
  }
}

double SpeedOn(const Flow& flow, const Task& task, PlaceIndex place) {
  if (task.work.kernel == nullptr || place == kWholeDevice || place == kNoPlace) return 1;
  const double speed =
      flow.model->durations().SpeedOn(*task.work.kernel, flow.lanes.place(place).sms);
  return speed > 0 ? speed : 1;
}

double RoomSpeed(const Flow& flow, const Task& task, const Part& part) {
  const double share = RoomShare(part, flow.lanes.place(part.place).sms);
  const KernelDesc* const kernel = task.work.kernel;
  if (share >= 1 || kernel == nullptr || !SaysWhatFewerWorkersDo(*kernel)) return share;
  return SharesSms(flow, part) ? share : SpeedOfShare(*kernel, share);
}

}  // namespace gpushare::core
