// Rows of the pair table. See pair_table.h.

#include "src/core/flow/planning/pair_table.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "src/core/base/tuning.h"
#include "src/core/flow/planning/head_views.h"

namespace gpushare::core {
namespace {

PairOption OptionOf(const Durations& durations, const Neighbours& neighbours, const KernelDesc& lc,
                    const KernelDesc& be, const SplitView& split) {
  PairOption option;
  const double lc_alone = durations.SpeedOn(lc, split.lc_sms);
  option.lc_speed_alone = static_cast<float>(lc_alone);
  option.lc_speed =
      static_cast<float>(lc_alone * neighbours.SpeedBeside(lc, split.lc_sms, be, split.be_sms));
  option.be_speed_be_side =
      static_cast<float>(durations.SpeedOn(be, split.be_sms) *
                         neighbours.SpeedBeside(be, split.be_sms, lc, split.lc_sms));
  option.be_speed_lc_side = static_cast<float>(durations.SpeedOn(be, split.lc_sms));
  return option;
}

// What the splits where the pair was measured say of one where it was not: beside as many SMs of
// the neighbour, or more, the LC app keeps no more of its speed. Beside fewer it loses less: at
// best the loss falls twice as fast as the SMs.
float HopeFor(absl::Span<const SplitView> splits, const PairOption* options, const float* hoped,
              size_t split) {
  float hope = 1;
  for (size_t s = 0; s < splits.size(); ++s) {
    if (hoped[s] > 0 || !(options[s].lc_speed_alone > 0)) continue;
    const float loss = 1 - options[s].lc_speed / options[s].lc_speed_alone;
    const float sms =
        static_cast<float>(splits[split].be_sms) / static_cast<float>(splits[s].be_sms);
    hope = std::min(hope, 1 - loss * std::clamp(1 - 2 * (1 - sms), 0.0F, 1.0F));
  }
  return hope;
}

// The splits of one pair that nobody measured. The planner gets a pessimistic speed: the prediction
// minus kUnmetErrorBars error bars, or a fixed speed if the model knows nothing of the neighbour. A
// trial hopes for the prediction itself, as far as the splits where the pair was measured allow it.
void JudgeUnknown(const Neighbours& neighbours, const KernelDesc& lc, const KernelDesc& be,
                  absl::Span<const SplitView> splits, PairOption* options, float* hoped) {
  std::array<float, kMaxSplits> pessimistic;
  for (size_t s = 0; s < splits.size(); ++s) {
    const SplitView& split = splits[s];
    const bool known = neighbours.KnowsBeside(lc, split.lc_sms, be);
    const auto error =
        static_cast<float>(neighbours.ErrorBeside(lc, split.lc_sms, be, split.be_sms));
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

// The row of LC app `app` beside BE kernel `kernel`; returns whether a number has changed.
bool FillRow(Flow& flow, int32_t app, int32_t kernel) {
  const auto splits = flow.lanes.splits();
  std::array<PairOption, kMaxSplits> options{};
  std::array<float, kMaxSplits> hoped{};
  const App& owner = *flow.lc_apps[app];
  // A graph that yields runs on the whole device alone: it makes no progress on a side.
  const bool yields = owner.options.Yields() && flow.lets_lc_yield.load(std::memory_order_relaxed);
  const KernelDesc* const lc = owner.evidence.main_kernel.kernel;
  if (lc != nullptr && !(yields && lc->kind() == TaskKind::kGraph && lc->segments() > 1)) {
    const KernelDesc& be = flow.pair_kernels.kernel(kernel);
    for (size_t s = 0; s < splits.size(); ++s) {
      options[s] = OptionOf(flow.model->durations(), flow.model->neighbours(), *lc, be, splits[s]);
    }
    JudgeUnknown(flow.model->neighbours(), *lc, be, splits, options.data(), hoped.data());
  }
  const size_t first = static_cast<size_t>(app * flow.pair_kernels.size() + kernel) * splits.size();
  PairOption* const kept = flow.buffers.pairs.data() + first;
  float* const kept_hopes = flow.buffers.hoped.data() + first;
  static_assert(sizeof(PairOption) == 4 * sizeof(float), "no padding is compared");
  const size_t bytes = splits.size() * sizeof(PairOption);
  const size_t hoped_bytes = splits.size() * sizeof(float);
  if (std::memcmp(kept, options.data(), bytes) == 0 &&
      std::memcmp(kept_hopes, hoped.data(), hoped_bytes) == 0) {
    return false;
  }
  std::memcpy(kept, options.data(), bytes);
  std::memcpy(kept_hopes, hoped.data(), hoped_bytes);
  return true;
}

// The rows of an app stand together, so that a new BE kernel moves those of all apps but the first.
void MoveRows(Flow& flow, int32_t from_kernels, int32_t to_kernels) {
  const size_t splits = flow.lanes.splits().size();
  const size_t from = static_cast<size_t>(from_kernels) * splits;
  const size_t to = static_cast<size_t>(to_kernels) * splits;
  for (size_t app = static_cast<size_t>(flow.pair_apps); app-- > 1;) {
    PairOption* const options = flow.buffers.pairs.data();
    std::memmove(options + app * to, options + app * from, from * sizeof(PairOption));
    float* const hoped = flow.buffers.hoped.data();
    std::memmove(hoped + app * to, hoped + app * from, from * sizeof(float));
  }
}

// Gives the table room for all rows. Returns how many BE kernels have rows that still count.
int32_t Reshape(Flow& flow) {
  const size_t splits = flow.lanes.splits().size();
  const size_t size =
      flow.lc_apps.span().size() * static_cast<size_t>(flow.pair_kernels.size()) * splits;
  // Within what PlanBuffers reserves.
  if (flow.buffers.pairs.size() < size) flow.buffers.pairs.resize(size);
  if (flow.buffers.hoped.size() < size) flow.buffers.hoped.resize(size);
  const PairTable& table = flow.buffers.snapshot.pairs;
  if (table.splits != static_cast<int32_t>(splits)) return 0;
  flow.pair_apps = std::min(flow.pair_apps, flow.lc_apps.size());
  if (table.kernels < flow.pair_kernels.size()) {
    MoveRows(flow, table.kernels, flow.pair_kernels.size());
  }
  return table.kernels;
}

// Rows of apps and BE kernels that are new, or of which anything may have changed.
bool FillNewRows(Flow& flow, int32_t kernels_kept, bool all) {
  bool changed = false;
  for (int32_t a = 0; a < flow.lc_apps.size(); ++a) {
    const KernelDesc*& computed_for = flow.pair_lc_kernels[static_cast<size_t>(a)];
    const KernelDesc* const lc = flow.lc_apps[a]->evidence.main_kernel.kernel;
    const bool kept = !all && a < flow.pair_apps && computed_for == lc;
    computed_for = lc;
    for (int32_t k = 0; k < flow.pair_kernels.size(); ++k) {
      if (kept && k < kernels_kept && !flow.pair_kernels.IsTaken(k)) continue;
      changed = FillRow(flow, a, k) || changed;
    }
  }
  return changed;
}

// Rows in which `be` runs on the BE side of an app whose main kernel is `lc`.
bool FillRowsOf(Flow& flow, KernelId lc, KernelId be) {
  const int32_t row = flow.pair_kernels.RowOf(be);
  if (row < 0) return false;
  bool changed = false;
  for (int32_t a = 0; a < flow.lc_apps.size(); ++a) {
    const KernelDesc* const main = flow.lc_apps[a]->evidence.main_kernel.kernel;
    if (main != nullptr && main->id == lc) changed = FillRow(flow, a, row) || changed;
  }
  return changed;
}

}  // namespace

void UpdatePairs(Flow& flow) {
  PairChanges& changes = flow.pair_changes;
  flow.model->neighbours().TakePairChanges(changes);
  PairTable& table = flow.buffers.snapshot.pairs;
  const int32_t apps_before = flow.pair_apps;
  const int32_t kernels_kept = Reshape(flow);
  bool changed = FillNewRows(flow, kernels_kept, changes.all);
  if (flow.pair_kernels.AnyTaken()) {
    ForgetHeadViews(flow);  // they have the rows of their kernels
    flow.pair_kernels.ForgetTaken();
    changed = true;
  }
  if (!changes.all) {
    // A pair is in the rows of either as the LC kernel.
    for (const PairChanges::Pair& pair : changes.pairs) {
      changed = FillRowsOf(flow, pair.kernel, pair.neighbour) || changed;
      changed = FillRowsOf(flow, pair.neighbour, pair.kernel) || changed;
    }
  }
  const size_t splits = flow.lanes.splits().size();
  const size_t size =
      flow.lc_apps.span().size() * static_cast<size_t>(flow.pair_kernels.size()) * splits;
  changed = changed || apps_before != flow.lc_apps.size() ||
            table.kernels != flow.pair_kernels.size() ||
            table.splits != static_cast<int32_t>(splits);
  flow.pair_apps = flow.lc_apps.size();
  table.options = absl::MakeConstSpan(flow.buffers.pairs.data(), size);
  table.hoped = absl::MakeConstSpan(flow.buffers.hoped.data(), size);
  table.kernels = flow.pair_kernels.size();
  table.splits = static_cast<int32_t>(splits);
  if (changed) ++table.version;
  flow.pairs_stale = false;
}

}  // namespace gpushare::core
