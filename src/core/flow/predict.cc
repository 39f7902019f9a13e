// Predictions of tasks and the pair table. See predict.h.

#include "src/core/flow/predict.h"

#include <algorithm>

#include "src/core/base/tuning.h"

namespace gpushare::core {
namespace {

// The row of a BE kernel in the pair table; -1 when the table is full.
int32_t PairRow(Flow& flow, const KernelDesc& kernel) {
  int16_t& entry = flow.pair_row[kernel.id.value];
  if (entry == 0 && flow.pair_kernel_count < kMaxPairKernels) {
    flow.pair_kernels[static_cast<size_t>(flow.pair_kernel_count)] = &kernel;
    entry = static_cast<int16_t>(++flow.pair_kernel_count);
    flow.pairs_stale = true;
  }
  return entry - 1;
}

// Majority vote weighted by time: the kernel that most of the app's device time goes to.
void VoteMainKernel(Flow& flow, App& app, const Task& task) {
  if (task.kernel == nullptr) return;
  const int64_t weight = std::max<int64_t>(task.predicted.duration_ns, 1);
  if (app.main_kernel == task.kernel) {
    app.main_kernel_credit = std::min(app.main_kernel_credit + weight, kMaxDurationNs);
    return;
  }
  app.main_kernel_credit -= weight;
  if (app.main_kernel_credit >= 0 && app.main_kernel != nullptr) return;
  app.main_kernel = task.kernel;
  app.main_kernel_credit = weight;
  flow.pairs_stale = true;
}

// Apps in dense order, by class: the rows of the snapshot and of the pair table.
void IndexApps(Flow& flow) {
  flow.lc_app_count = flow.be_app_count = 0;
  for (int slot = 0; slot < flow.tables.app_slots(); ++slot) {
    App& app = flow.tables.app_slot(slot);
    app.plan_index = App::kNoIndex;
    if (app.id.load() == 0) continue;
    const bool lc = app.options.app_class == AppClass::kLatencyCritical;
    int& count = lc ? flow.lc_app_count : flow.be_app_count;
    (lc ? flow.buffers.lc_owner : flow.buffers.be_owner)[static_cast<size_t>(count)] = &app;
    app.plan_index = count++;
  }
}

PairOption OptionOf(const CostModel& model, const KernelDesc& lc, const KernelDesc& be,
                    const SplitView& split) {
  PairOption option;
  const double lc_alone = model.SpeedOn(lc, split.lc_sms);
  option.lc_speed_alone = static_cast<float>(lc_alone);
  option.lc_speed =
      static_cast<float>(lc_alone * model.SpeedBeside(lc, split.lc_sms, be, split.be_sms));
  option.be_speed_be_side = static_cast<float>(
      model.SpeedOn(be, split.be_sms) * model.SpeedBeside(be, split.be_sms, lc, split.lc_sms));
  option.be_speed_lc_side = static_cast<float>(model.SpeedOn(be, split.lc_sms));
  return option;
}

void RebuildPairs(Flow& flow) {
  const auto splits = flow.lanes.splits();
  const size_t size = static_cast<size_t>(flow.lc_app_count) *
                      static_cast<size_t>(flow.pair_kernel_count) * splits.size();
  // Grows with the first tasks of a new app or kernel only.
  if (flow.buffers.pairs.size() < size) flow.buffers.pairs.resize(size);
  size_t next = 0;
  for (int app = 0; app < flow.lc_app_count; ++app) {
    const KernelDesc* lc = flow.buffers.lc_owner[static_cast<size_t>(app)]->main_kernel;
    for (int kernel = 0; kernel < flow.pair_kernel_count; ++kernel) {
      const KernelDesc& be = *flow.pair_kernels[static_cast<size_t>(kernel)];
      for (const SplitView& split : splits) {
        flow.buffers.pairs[next++] =
            lc == nullptr ? PairOption() : OptionOf(*flow.model, *lc, be, split);
      }
    }
  }
  PairTable& table = flow.buffers.snapshot.pairs;
  table.options = absl::MakeConstSpan(flow.buffers.pairs.data(), size);
  table.kernels = flow.pair_kernel_count;
  table.splits = static_cast<int32_t>(splits.size());
  ++table.version;
  flow.pairs_stale = false;
}

void EmitAdmitted(const Flow& flow, const Task& task) {
  EventRecord event;
  event.type = static_cast<uint8_t>(EventType::kAdmitted);
  event.time_ns = flow.now_ns;
  event.id = task.record.ticket.value;
  event.app = task.record.app.value;
  event.app_class = static_cast<uint8_t>(task.app->options.app_class);
  event.kernel = task.record.kernel.value;
  event.a = task.predicted.duration_ns;
  event.b = task.predicted.error_ns;
  flow.Emit(event);
}

}  // namespace

TaskFeatures FeaturesOf(const Task& task) {
  TaskFeatures features;
  features.kernel = task.kernel;
  features.kind = task.kind;
  features.app = task.app->slot + 1;
  features.block_tasks = task.kind == TaskKind::kKernel ? task.blocks : 0;
  features.bytes = task.kind == TaskKind::kMemcpy ? task.blocks : 0;
  features.direction = task.copy.direction;
  features.pinned = task.copy.pinned;
  features.declared_ns = task.declared_ns;
  return features;
}

Prediction RemainingOf(const Task& task) {
  Prediction left = task.predicted;
  if (task.blocks_done > 0 && task.blocks > 0) {
    const double share =
        static_cast<double>(task.blocks - task.blocks_done) / static_cast<double>(task.blocks);
    left.duration_ns = static_cast<int64_t>(static_cast<double>(left.duration_ns) * share);
    left.error_ns = static_cast<int64_t>(static_cast<double>(left.error_ns) * share);
  }
  return left;
}

void PredictTask(Flow& flow, Task& task) {
  task.predicted = flow.model->PredictSolo(FeaturesOf(task));
  task.record.predicted_ns = task.predicted.duration_ns;
  task.record.predicted_error_ns = task.predicted.error_ns;
  if (task.IsEvictable() && flow.device->capabilities().eviction) {
    const Prediction eviction = flow.model->PredictEviction(*task.kernel);
    // Two standard deviations: near the p99, which is what a bound on p99 can stand.
    task.eviction_p99_ns = eviction.duration_ns + 2 * eviction.error_ns;
    // A kernel of which nothing is known runs until it was measured: held for a guess, it would
    // never be measured and starve.
    if (!eviction.trained && !task.kernel->simulation.present) {
      task.eviction_p99_ns = flow.device->capabilities().profile.eviction_write_latency_ns;
    }
    // A delay at the start of a busy period adds its mean to every quantile of the latency.
    task.blocking_ns =
        std::min(task.eviction_p99_ns, flow.model->PredictBlocking(*task.kernel).duration_ns);
  }
  if (task.app->options.app_class == AppClass::kBestEffort) {
    if (task.kernel != nullptr) task.kernel_row = PairRow(flow, *task.kernel);
  } else {
    VoteMainKernel(flow, *task.app, task);
    if (task.query != nullptr) task.query->solo_ns += task.predicted.duration_ns;
  }
  EmitAdmitted(flow, task);
}

void Predict(Flow& flow) {
  for (int i = 0; i < flow.fresh_count; ++i) {
    PredictTask(flow, *flow.fresh[static_cast<size_t>(i)]);
  }
  if (const uint64_t version = flow.tables.version(); version != flow.tables_version) {
    flow.tables_version = version;
    IndexApps(flow);
    flow.pairs_stale = true;
  }
  if (const uint64_t version = flow.model->version(); version != flow.model_version) {
    flow.model_version = version;
    flow.pairs_stale = true;
  }
  if (flow.pairs_stale) RebuildPairs(flow);
}

}  // namespace gpushare::core
