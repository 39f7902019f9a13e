// The best pair of slices (co_schedule.h).

#include "src/core/policies/papers/co_schedule.h"

#include <algorithm>
#include <cmath>

#include "src/core/base/containers/bounded_list.h"
#include "src/core/base/tuning.h"

namespace gpushare::core {
namespace {

// What a pair's evaluation needs of each of its two tasks.
struct Side {
  const HeadView* task = nullptr;
  double block_ns = 0;  // alone on the whole device, for one block task of all
};

double BlockNs(const HeadView& task) {
  return static_cast<double>(task.remaining.duration_ns) /
         static_cast<double>(std::max<int64_t>(task.blocks_left, 1));
}

// Times of both slices while both run: P_i / speed_i (eq. 8, where I_i / IPC_i is a block's time).
struct SliceTimes {
  double first_ns = 0;
  double second_ns = 0;
  double Difference() const { return std::abs(first_ns - second_ns); }
};

struct Ratio {
  const CoScheduleOption* option = nullptr;
  SliceTimes times;
};

// The balanced ratio of a pair; the option's first kernel is sides[0]'s.
Ratio BalancedRatio(absl::Span<const CoScheduleOption> options, const std::array<Side, 2>& sides,
                    int32_t sm_count) {
  Ratio best;
  for (const CoScheduleOption& option : options) {
    if (!(option.speed[0] > 0) || !(option.speed[1] > 0)) continue;
    const auto slice_ns = [&](size_t i) {
      const auto blocks = static_cast<double>(option.workers_per_sm[i] * sm_count);
      return blocks * sides[i].block_ns / option.speed[i];
    };
    const SliceTimes times{slice_ns(0), slice_ns(1)};
    if (best.option != nullptr && times.Difference() >= best.times.Difference()) continue;
    best = {&option, times};
  }
  return best;
}

// Between two slices of a kernel its SMs' room is empty for a gap.
double ProfitWithGaps(const Ratio& ratio) {
  const auto with_gaps = [](double speed, double slice_ns) {
    return speed * slice_ns / (slice_ns + kSliceGapNs);
  };
  const double sum = with_gaps(ratio.option->speed[0], ratio.times.first_ns) +
                     with_gaps(ratio.option->speed[1], ratio.times.second_ns);
  return 1 - 1 / sum;
}

// The pairs that are left when the thresholds are loosened enough to leave any.
class Pruning {
 public:
  explicit Pruning(absl::Span<const PendingKernel> kernels) {
    for (const PendingKernel& kernel : kernels) {
      known_.TryAdd(UtilizationOf(*kernel.task->kernel));
    }
    while (EveryPairIsPruned()) {
      thresholds_.pur /= 2;
      thresholds_.mur /= 2;
      if (thresholds_.pur < kLeast) thresholds_ = {0, 0};
    }
  }
  bool Drops(int i, int j) const {
    const std::optional<Utilization>& a = known_[i];
    const std::optional<Utilization>& b = known_[j];
    return a && b && IsPruned(*a, *b, thresholds_);
  }

 private:
  static constexpr double kLeast = 1e-3;  // below it counters are noise

  bool EveryPairIsPruned() const {
    if (known_.size() < 2) return false;
    for (int i = 0; i < known_.size(); ++i) {
      for (int j = 0; j < i; ++j) {
        if (!Drops(i, j)) return false;
      }
    }
    return true;
  }

  BoundedList<std::optional<Utilization>, kMaxOverlapKernels> known_;
  PruningThresholds thresholds_;
};

bool LargestProfitIsBelow(absl::Span<const CoScheduleOption> options, double profit) {
  return std::all_of(options.begin(), options.end(),
                     [&](const CoScheduleOption& option) { return option.profit <= profit; });
}

void Consider(const Snapshot& snapshot, const HeadView& a, const HeadView& b, CoSchedule& best) {
  const auto options = snapshot.co_schedules.Of(a.overlap_index, b.overlap_index);
  // Gaps only make it less.
  if (LargestProfitIsBelow(options, best.runner_up_profit)) return;
  const bool a_first = a.overlap_index >= b.overlap_index;
  const HeadView* const first = a_first ? &a : &b;
  const HeadView* const second = a_first ? &b : &a;
  const std::array<Side, 2> sides = {Side{first, BlockNs(*first)}, Side{second, BlockNs(*second)}};
  const Ratio ratio = BalancedRatio(options, sides, snapshot.sm_count);
  if (ratio.option == nullptr) return;
  const double profit = ProfitWithGaps(ratio);
  if (profit <= best.profit) {
    if (profit <= best.runner_up_profit) return;
    best.runner_up = {first, second};
    best.runner_up_profit = profit;
    return;
  }
  best.runner_up = best.tasks;
  best.runner_up_profit = best.profit;
  best.tasks = {first, second};
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

CoSchedule FindCoSchedule(const Snapshot& snapshot, absl::Span<const PendingKernel> kernels,
                          const HeadView* must) {
  const Pruning pruning(kernels);
  CoSchedule best;
  const auto allowed = [&](const HeadView* a, const HeadView* b) {
    return must == nullptr || a == must || b == must;
  };
  for (size_t i = 0; i < kernels.size(); ++i) {
    const PendingKernel& kernel = kernels[i];
    if (kernel.second != nullptr && allowed(kernel.task, kernel.second) &&
        !pruning.Drops(static_cast<int>(i), static_cast<int>(i))) {
      Consider(snapshot, *kernel.task, *kernel.second, best);
    }
    for (size_t j = 0; j < i; ++j) {
      if (!allowed(kernel.task, kernels[j].task)) continue;
      if (pruning.Drops(static_cast<int>(i), static_cast<int>(j))) continue;
      Consider(snapshot, *kernel.task, *kernels[j].task, best);
    }
  }
  return best;
}

}  // namespace gpushare::core
