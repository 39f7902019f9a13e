// The best pair of slices (co_schedule.h).

#include "src/core/policies/papers/co_schedule.h"

#include <algorithm>
#include <cmath>

#include "src/core/base/containers/bounded_list.h"
#include "src/core/base/tuning.h"

namespace gpushare::core {
namespace {

// What a slice takes beyond its blocks at the kernel's own speed: the gap before it, its ramp and
// its tail. Behind another slice the host has the time of one slice to launch it.
double SliceCostNs(const HeadView& task, double slice_ns, int32_t ahead) {
  const SliceRecord& measured = task.kernel->slices;
  const double queued_ns =
      measured.present()
          ? measured.overhead * static_cast<double>(measured.block_tasks) * task.block_ns
          : kQueuedSliceGapNs;
  const double hidden_ns = static_cast<double>(ahead - 1) * slice_ns;
  return std::max(queued_ns, kSliceGapNs - hidden_ns);
}

// One ratio of a pair, as slices: their times while both run, P_i / speed_i (eq. 8, where
// I_i / IPC_i is a block's time), and the speeds with what slices cost.
struct Ratio {
  const CoScheduleOption* option = nullptr;
  double difference_ns = 0;
  double speeds = 0;  // the sum

  double profit() const { return 1 - 1 / speeds; }
};

// The pair's options with what its slices did. The option's first kernel is that of tasks[0].
struct PairOptions {
  absl::Span<const CoScheduleOption> options;
  absl::Span<const SlicedPair> sliced;
  std::array<const HeadView*, 2> tasks;
  int32_t sm_count = 0;
  int32_t ahead = 1;

  Ratio RatioAt(size_t index) const {
    const CoScheduleOption& option = options[index];
    if (!(option.speed[0] > 0) || !(option.speed[1] > 0)) return {};
    // Without both times there is no balance, and no profit.
    if (!(tasks[0]->block_ns > 0) || !(tasks[1]->block_ns > 0)) return {};
    std::array<double, 2> slice_ns;
    Ratio ratio = {.option = &option};
    for (size_t i = 0; i < 2; ++i) {
      const auto blocks = static_cast<double>(option.workers_per_sm[i] * sm_count);
      const double alone_ns = blocks * tasks[i]->block_ns;
      if (HasRun(index)) {
        slice_ns[i] = alone_ns / sliced[index].speed[i];
      } else {
        // One error bar better than predicted, so that what only a model knows is tried.
        slice_ns[i] = alone_ns / std::min(1.0F, option.speed[i] * (1 + option.speed_error));
        slice_ns[i] += SliceCostNs(*tasks[i], slice_ns[i], ahead);
      }
      ratio.speeds += alone_ns / slice_ns[i];
    }
    ratio.difference_ns = std::abs(slice_ns[0] - slice_ns[1]);
    return ratio;
  }

 private:
  bool HasRun(size_t index) const {
    if (sliced.empty()) return false;
    const SlicedPair& pair = sliced[index];
    return std::min(pair.runs[0], pair.runs[1]) >= kSliceRunsMin && pair.speed[0] > 0 &&
           pair.speed[1] > 0;
  }
};

Ratio BalancedRatio(const PairOptions& pair) {
  Ratio best;
  for (size_t i = 0; i < pair.options.size(); ++i) {
    const Ratio ratio = pair.RatioAt(i);
    if (ratio.option == nullptr) continue;
    if (best.option == nullptr || ratio.difference_ns < best.difference_ns) best = ratio;
  }
  return best;
}

bool WasMeasured(const CoScheduleOption& option) {
  return option.speed[0] > 0 && option.speed_error < kMeasuredPairError;
}
bool WasMeasured(absl::Span<const CoScheduleOption> options) {
  return std::any_of(options.begin(), options.end(),
                     [](const CoScheduleOption& option) { return WasMeasured(option); });
}

constexpr double kLeastThreshold = 1e-3;  // below it counters are noise

// Half of the thresholds; none where they would be noise.
PruningThresholds Loosened(const PruningThresholds& thresholds) {
  const double pur = thresholds.pur / 2;
  if (pur < kLeastThreshold) return {0, 0};
  return {pur, thresholds.mur / 2};
}

// The pairs that are left. Where every pair was measured none is pruned.
class Pruning {
 public:
  Pruning(const CoScheduleTable& table, absl::Span<const PendingKernel> kernels) {
    for (const PendingKernel& kernel : kernels) {
      known_.TryAdd(UtilizationOf(*kernel.task->kernel));
    }
    const auto was_measured = [&](int i, int j) {
      return WasMeasured(table.Of(kernels[static_cast<size_t>(i)].task->overlap_index,
                                  kernels[static_cast<size_t>(j)].task->overlap_index));
    };
    if (EveryPair(was_measured)) return;
    thresholds_ = ThresholdsFor(table);
    while (EveryPairIsPruned()) thresholds_ = Loosened(thresholds_);
  }
  bool Drops(int i, int j) const {
    const std::optional<Utilization>& a = known_[i];
    const std::optional<Utilization>& b = known_[j];
    return a && b && IsPruned(*a, *b, thresholds_);
  }

 private:
  template <class Test>
  bool EveryPair(Test&& test) const {
    for (int i = 0; i < known_.size(); ++i) {
      for (int j = 0; j < i; ++j) {
        if (!test(i, j)) return false;
      }
    }
    return true;
  }
  bool EveryPairIsPruned() const {
    if (known_.size() < 2) return false;
    return EveryPair([&](int i, int j) { return Drops(i, j); });
  }

  BoundedList<std::optional<Utilization>, kMaxOverlapKernels> known_;
  PruningThresholds thresholds_ = {0, 0};
};

void Consider(const Snapshot& snapshot, const HeadView& a, const HeadView& b, int32_t ahead,
              CoSchedule& best) {
  const int32_t row = a.overlap_index;
  const int32_t column = b.overlap_index;
  const bool a_first = row >= column;
  const PairOptions pair = {.options = snapshot.co_schedules.Of(row, column),
                            .sliced = snapshot.co_schedules.SlicedOf(row, column),
                            .tasks = {a_first ? &a : &b, a_first ? &b : &a},
                            .sm_count = snapshot.sm_count,
                            .ahead = ahead};
  const Ratio ratio = BalancedRatio(pair);
  if (ratio.option == nullptr) return;
  const double profit = ratio.profit();
  if (!(profit > best.profit)) {
    if (!(profit > best.runner_up_profit)) return;
    best.runner_up = pair.tasks;
    best.runner_up_profit = profit;
    return;
  }
  best.runner_up = best.tasks;
  best.runner_up_profit = best.profit;
  best.tasks = pair.tasks;
  best.blocks_per_sm = ratio.option->workers_per_sm;
  best.profit = profit;
}

}  // namespace

std::optional<Utilization> UtilizationOf(const KernelDesc& kernel) {
  if (kernel.counters.present()) return Utilization{kernel.counters.issue, kernel.counters.dram};
  const SimulationRecord& record = kernel.simulation;
  if (record.present) return Utilization{record.demand.issue, record.demand.dram};
  return std::nullopt;
}

bool IsPruned(const Utilization& a, const Utilization& b, const PruningThresholds& thresholds) {
  return std::abs(a.pur - b.pur) < thresholds.pur && std::abs(a.mur - b.mur) < thresholds.mur;
}

PruningThresholds ThresholdsFor(const CoScheduleTable& table) {
  PruningThresholds thresholds;
  for (int32_t row = 0; row < table.kernels; ++row) {
    const std::optional<Utilization> first = UtilizationOf(*table.rows[static_cast<size_t>(row)]);
    for (int32_t column = 0; column < row; ++column) {
      const std::optional<Utilization> second =
          UtilizationOf(*table.rows[static_cast<size_t>(column)]);
      if (!first || !second) continue;
      const auto options = table.Of(row, column);
      const bool gains = std::any_of(options.begin(), options.end(), [](const auto& option) {
        return WasMeasured(option) && option.profit > 0;
      });
      while (gains && IsPruned(*first, *second, thresholds)) thresholds = Loosened(thresholds);
    }
  }
  return thresholds;
}

CoSchedule FindCoSchedule(const Snapshot& snapshot, absl::Span<const PendingKernel> kernels,
                          int32_t ahead, const HeadView* must) {
  const Pruning pruning(snapshot.co_schedules, kernels);
  CoSchedule best;
  const auto allowed = [&](const HeadView* a, const HeadView* b) {
    return must == nullptr || a == must || b == must;
  };
  for (size_t i = 0; i < kernels.size(); ++i) {
    const PendingKernel& kernel = kernels[i];
    if (kernel.second != nullptr && allowed(kernel.task, kernel.second)) {
      Consider(snapshot, *kernel.task, *kernel.second, ahead, best);
    }
    for (size_t j = 0; j < i; ++j) {
      if (!allowed(kernel.task, kernels[j].task)) continue;
      if (pruning.Drops(static_cast<int>(i), static_cast<int>(j))) continue;
      Consider(snapshot, *kernel.task, *kernels[j].task, ahead, best);
    }
  }
  return best;
}

int64_t SliceAlone(const Snapshot& snapshot, const HeadView& task, int32_t ahead) {
  const int64_t wave = int64_t{task.kernel->resources.workers_per_sm_max} * snapshot.sm_count;
  const double wave_ns = std::max(1.0, task.block_ns * static_cast<double>(wave));
  const double cost_ns = SliceCostNs(task, wave_ns / kSliceOverheadMax, ahead);
  const auto waves = static_cast<int64_t>(std::ceil(cost_ns / kSliceOverheadMax / wave_ns));
  return wave * std::max<int64_t>(1, waves);
}

}  // namespace gpushare::core
