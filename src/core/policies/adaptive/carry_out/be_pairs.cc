// The gain of a pair, and who may be in one (be_pairs.h).

#include "src/core/policies/adaptive/carry_out/be_pairs.h"

#include <algorithm>
#include <bitset>

#include "src/core/base/tuning.h"
#include "src/core/policies/adaptive/arrangement/tuning.h"
#include "src/core/policies/parts/launch_form.h"

namespace gpushare::core {
namespace {

// A speed with the gap in which a queue's next task comes.
double SteadySpeed(const HeadView& task, double speed) {
  if (!(speed > 0)) return 0;
  const double pair_ns = static_cast<double>(task.remaining.duration_ns) / speed;
  return speed * pair_ns / (pair_ns + kSliceGapNs);
}

// The speeds of two tasks by their rows' order in the table.
struct PairSides {
  size_t task;
  size_t partner;
};

PairSides PairSidesOf(const HeadView& task, const HeadView& partner) {
  return task.overlap_index >= partner.overlap_index ? PairSides{0, 1} : PairSides{1, 0};
}

double GainOf(const CoScheduleOption& option, const PairSides& sides, const HeadView& task,
              const HeadView& partner, bool runs) {
  const double sure = 1 - option.speed_error;
  const double task_speed = option.speed[sides.task] * sure;
  // Of a task that runs nobody knows here how long it was, and its gap is another decision's.
  return (runs ? task_speed : SteadySpeed(task, task_speed)) +
         SteadySpeed(partner, option.speed[sides.partner] * sure) - 1;
}

// Of a task's pairs: which rows of the co-schedule table may gain beside it. Most rows do not, and
// many heads have the same row. A pair of tasks gains no more than their kernels do without gaps.
class GainingRows {
 public:
  GainingRows(const CoScheduleTable& table, const HeadView& task, int32_t workers_per_sm)
      : table_(table), task_(task), workers_per_sm_(workers_per_sm) {}

  bool May(const HeadView& partner) {
    const auto row = static_cast<size_t>(partner.overlap_index);
    if (row >= asked_.size()) return false;  // -1 too
    if (!asked_[row]) {
      asked_.set(row);
      gains_[row] = Gains(partner);
    }
    return gains_[row];
  }

 private:
  bool Gains(const HeadView& partner) const {
    const PairSides sides = PairSidesOf(task_, partner);
    const auto options = table_.Of(task_.overlap_index, partner.overlap_index);
    return std::any_of(options.begin(), options.end(), [&](const CoScheduleOption& option) {
      return Fits(option, sides) && SpeedSum(option, sides) - 1 > kGainMin;
    });
  }
  bool Fits(const CoScheduleOption& option, const PairSides& sides) const {
    return workers_per_sm_ <= 0 || option.workers_per_sm[sides.task] == workers_per_sm_;
  }
  static double SpeedSum(const CoScheduleOption& option, const PairSides& sides) {
    const double sure = 1 - option.speed_error;
    return option.speed[sides.task] * sure + option.speed[sides.partner] * sure;
  }

  const CoScheduleTable& table_;
  const HeadView& task_;
  const int32_t workers_per_sm_;
  std::bitset<kMaxOverlapKernels> asked_;
  std::bitset<kMaxOverlapKernels> gains_;
};

// Of the ratios of two tasks, the one that gains most; null: none gains more than `least`.
struct BestRatio {
  const CoScheduleOption* option = nullptr;
  double gain = 0;
};
BestRatio RatioOf(const CoScheduleTable& table, const HeadView& task, const HeadView& partner,
                  bool runs, int32_t workers_per_sm, double least) {
  const PairSides sides = PairSidesOf(task, partner);
  BestRatio best = {nullptr, least};
  for (const CoScheduleOption& option : table.Of(task.overlap_index, partner.overlap_index)) {
    if (workers_per_sm > 0 && option.workers_per_sm[sides.task] != workers_per_sm) continue;
    const double gain = GainOf(option, sides, task, partner, runs);
    if (gain > best.gain) best = {&option, gain};
  }
  return best;
}

}  // namespace

bool BePairs::Pairs(const HeadView& task) const {
  return task.kind == TaskKind::kKernel && task.kernel != nullptr && task.overlap_index >= 0 &&
         CanBeEvicted(snapshot_, task) && !places_.RunsAlone(task) &&
         !places_.quotas().IsConfined(task) && !places_.quotas().BoundsWorkers(task);
}

// Beside each other block tasks take longer than the workers' share alone explains.
bool BePairs::FitsBudget(const HeadView& task, const CoScheduleOption& option, size_t side,
                         const BePlace& place) const {
  const double share = static_cast<double>(option.workers_per_sm[side]) /
                       std::max(task.kernel->resources.workers_per_sm_max, 1);
  const double stretch = std::max(1.0, share / static_cast<double>(option.speed[side]));
  HeadView paired = task;
  paired.remaining.duration_ns = std::min(
      kMaxDurationNs, static_cast<int64_t>(static_cast<double>(task.remaining.duration_ns) /
                                           static_cast<double>(option.speed[side])));
  if (task.eviction_ns != kNever) {
    paired.eviction_ns = static_cast<int64_t>(static_cast<double>(task.eviction_ns) * stretch);
  }
  const Judgement judgement = judge_.JudgeBlocking(paired, place, Width());
  return judgement.reason == Reason::kNone && !judgement.on_credit;
}

// Nobody goes before a head that has waited so long, or waits for an empty place.
bool BePairs::GoesFirst(const HeadView& next) const {
  return snapshot_.now_ns - next.ready_ns > kBePassedNsMax || places_.RunsAlone(next);
}

// Whether the head may be in a pair with the task, and nobody waits whom it would pass.
bool BePairs::MayJoin(const HeadView& head, const HeadView& task, const HeadView& next) const {
  if (!IsBeCompute(head) || head.queue == task.queue || !Pairs(head)) return false;
  return &head == &next || &next == &task || !GoesFirst(next);
}

// Whether both may share the place so.
bool BePairs::FitsTogether(const HeadView& task, const HeadView& head,
                           const CoScheduleOption& option, const BePlace& place) const {
  const PairSides sides = PairSidesOf(task, head);
  return judge_.JudgeRoom(head, place).reason == Reason::kNone &&
         FitsBudget(task, option, sides.task, place) &&
         FitsBudget(head, option, sides.partner, place);
}

BePair BePairs::FindPartner(const HeadView& task, bool runs, int32_t workers_per_sm,
                            const HeadView& next, const BePlace& place) const {
  BePair best;
  if (!Pairs(task)) return best;
  GainingRows rows(snapshot_.co_schedules, task, workers_per_sm);
  for (const HeadView& head : snapshot_.heads) {
    if (!rows.May(head) || !MayJoin(head, task, next)) continue;
    const double least = std::max(best.runner_up_gain, kGainMin);
    const BestRatio ratio =
        RatioOf(snapshot_.co_schedules, task, head, runs, workers_per_sm, least);
    if (ratio.option == nullptr) continue;
    if (&head != &next && shares_.LeavesTo(head, next.app)) continue;
    if (!FitsTogether(task, head, *ratio.option, place)) continue;
    if (ratio.gain <= best.gain) {
      best.runner_up = &head;
      best.runner_up_gain = ratio.gain;
      continue;
    }
    const PairSides sides = PairSidesOf(task, head);
    best = {.partner = &head,
            .workers_per_sm = ratio.option->workers_per_sm[sides.task],
            .partner_workers_per_sm = ratio.option->workers_per_sm[sides.partner],
            .gain = ratio.gain,
            .runner_up = best.partner,
            .runner_up_gain = best.gain};
  }
  return best;
}

int32_t BePairs::WidthOf(const RunningView& running) const {
  if (running.parts.size() != 1 || running.parts[0].form != Form::kWorkers) return 0;
  return running.parts[0].workers / std::max(snapshot_.sm_count, 1);
}

bool BePairs::IsNarrow(const RunningView& running) const {
  const int32_t width = WidthOf(running);
  const HeadView& task = running.task;
  return width > 0 && Pairs(task) && width < task.kernel->resources.workers_per_sm_max &&
         task.blocks_left > running.parts[0].workers;
}

}  // namespace gpushare::core
