// The predict stage: fresh tasks, and the pair table. See predict.h.

#include "src/core/flow/predict.h"

#include <algorithm>
#include <array>
#include <new>
#include <string>
#include <utility>

#include "src/core/base/tuning.h"
#include "src/core/flow/overlap_tables.h"
#include "src/core/flow/verbs/predict_task.h"

namespace gpushare::core {
namespace {

// Apps in dense order, by class: the rows of the snapshot and of the pair table.
void IndexApps(Flow& flow) {
  flow.lc_apps.Clear();
  flow.be_apps.Clear();
  for (int slot = 0; slot < flow.tables.app_slots(); ++slot) {
    App& app = flow.tables.app_slot(slot);
    app.plan_index = App::kNoIndex;
    if (app.id.load() == 0) continue;
    const bool lc = app.options.app_class == AppClass::kLatencyCritical;
    auto& apps = lc ? flow.lc_apps : flow.be_apps;
    app.plan_index = apps.size();
    apps.Add(&app);
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

// What the splits where the pair was measured say of one where it was not: beside as many SMs of
// the neighbour, or more, the LC app keeps no more of its speed. Beside fewer it may keep all of
// it.
float HopeFor(absl::Span<const SplitView> splits, const PairOption* options, const float* hoped,
              size_t split) {
  float hope = 1;
  for (size_t s = 0; s < splits.size(); ++s) {
    if (hoped[s] > 0 || !(options[s].lc_speed_alone > 0)) continue;
    if (splits[split].be_sms < splits[s].be_sms) continue;
    hope = std::min(hope, options[s].lc_speed / options[s].lc_speed_alone);
  }
  return hope;
}

// The splits of one pair that nobody measured. The planner gets a pessimistic speed: the prediction
// minus kUnmetErrorBars error bars, or a fixed speed if the model knows nothing of the neighbour. A
// trial hopes for the prediction itself, as far as the splits where the pair was measured allow it.
void JudgeUnknown(const CostModel& model, const KernelDesc& lc, const KernelDesc& be,
                  absl::Span<const SplitView> splits, PairOption* options, float* hoped) {
  std::array<float, kMaxSplits> pessimistic;
  for (size_t s = 0; s < splits.size(); ++s) {
    const SplitView& split = splits[s];
    const bool known = model.KnowsBeside(lc, split.lc_sms, be);
    const auto error = static_cast<float>(model.ErrorBeside(lc, split.lc_sms, be, split.be_sms));
    const float alone = options[s].lc_speed_alone;
    hoped[s] = known && !(error > 0) ? 0 : options[s].lc_speed;
    pessimistic[s] = known ? std::max(0.0F, options[s].lc_speed - kUnmetErrorBars * error * alone)
                           : static_cast<float>(kUnknownPairSpeed) * alone;
  }
  for (size_t s = 0; s < splits.size(); ++s) {
    PairOption& option = options[s];
    if (!(hoped[s] > 0)) continue;
    hoped[s] = std::min(hoped[s], option.lc_speed_alone * HopeFor(splits, options, hoped, s));
    option.lc_speed = std::min(hoped[s], pessimistic[s]);
  }
}

void RebuildPairs(Flow& flow) {
  const auto splits = flow.lanes.splits();
  const size_t size = flow.lc_apps.span().size() * flow.pair_kernels.span().size() * splits.size();
  // Within what PlanBuffers reserves.
  if (flow.buffers.pairs.size() < size) flow.buffers.pairs.resize(size);
  if (flow.buffers.hoped.size() < size) flow.buffers.hoped.resize(size);
  size_t next = 0;
  for (const App* app : flow.lc_apps) {
    const KernelDesc* lc = app->main_kernel;
    for (const KernelDesc* be : flow.pair_kernels) {
      for (const SplitView& split : splits) {
        flow.buffers.pairs[next++] =
            lc == nullptr ? PairOption() : OptionOf(*flow.model, *lc, *be, split);
      }
      const size_t first = next - splits.size();
      float* const hoped = flow.buffers.hoped.data() + first;
      std::fill_n(hoped, splits.size(), 0.0F);
      if (lc != nullptr) {
        JudgeUnknown(*flow.model, *lc, *be, splits, flow.buffers.pairs.data() + first, hoped);
      }
    }
  }
  PairTable& table = flow.buffers.snapshot.pairs;
  table.options = absl::MakeConstSpan(flow.buffers.pairs.data(), size);
  table.hoped = absl::MakeConstSpan(flow.buffers.hoped.data(), size);
  table.kernels = flow.pair_kernels.size();
  table.splits = static_cast<int32_t>(splits.size());
  ++table.version;
  flow.pairs_stale = false;
}

// Queues what the model has for the log. Without memory for the sentence it is lost.
void ReportOfModel(Flow& flow) {
  try {
    std::string sentence = flow.model->TakeReport();
    if (!sentence.empty()) flow.reports.push_back(std::move(sentence));
  } catch (const std::bad_alloc&) {  // for the sentence
  }
}

}  // namespace

void Predict(Flow& flow) {
  for (Task* task : flow.fresh) PredictTask(flow, *task);
  if (const uint64_t version = flow.tables.version(); version != flow.tables_version) {
    flow.tables_version = version;
    IndexApps(flow);
    flow.pairs_stale = true;
  }
  if (const uint64_t version = flow.model->version(); version != flow.model_version) {
    flow.model_version = version;
    flow.pairs_stale = true;
    ReportOfModel(flow);
  }
  if (flow.pairs_stale) RebuildPairs(flow);
  UpdateOverlapTables(flow);
}

}  // namespace gpushare::core
