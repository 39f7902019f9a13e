// The best layout, and the memory of the last answers (adaptive_layout.h).

#include "src/core/policies/adaptive/layout/adaptive_layout.h"

#include <algorithm>

#include "src/core/policies/adaptive/layout/layout_trial.h"
#include "src/core/policies/adaptive/layout/layout_value.h"

namespace gpushare::core {
namespace {

struct BestSplit {
  int32_t split = kWholeLayout;
  double value = 0;
  int32_t runner_up = kUnknownLayout;
  double runner_up_value = 0;

  void Beat(int32_t better, double better_value) { *this = {better, better_value, split, value}; }
};

// The layout of the largest predicted throughput. Near a tie the layout in force wins, else the
// whole device, where LC is fastest.
BestSplit BestLayout(const LayoutQuestion& question, const LayoutEvaluation& evaluation,
                     SplitValues& values) {
  const int32_t current = std::max(question.current, kWholeLayout);  // unknown: the whole device
  if (question.be_count == 0) return {current, 0};
  const auto bonus = [&](int32_t split) { return split == current ? kLayoutHysteresis : 0.0; };
  BestSplit best = {kWholeLayout, evaluation.WholeValue()};
  best.value += best.value > 0 ? bonus(kWholeLayout) : 0;
  values.Update(question, evaluation);
  const SplitValues::Values all = values.All(question, evaluation);
  // From the largest LC side on: a quota makes BE sides equally good.
  for (int32_t split = question.splits - 1; split >= question.first_split; --split) {
    double value = all[static_cast<size_t>(split)];
    value += value > 0 ? bonus(split) : 0;
    if (value > best.value + 1e-9) {
      best.Beat(split, value);
    } else if (value > best.runner_up_value) {
      best.runner_up = split;
      best.runner_up_value = value;
    }
  }
  return best;
}

// The best split for a forced mechanism: the split of the largest value. Where no split keeps the
// LC bounds, the value counts as if the BE side were empty (the knee); failing that, the split
// where LC is fastest.
int32_t ForcedSplit(const LayoutQuestion& question, Mechanism mechanism,
                    const LayoutEvaluation& evaluation) {
  if (question.be_count == 0) return std::max(question.current, kWholeLayout);
  int32_t best = kWholeLayout;
  double best_value = 0;
  const auto take = [&](int32_t split, double value) {
    if (value > 0 && split == question.current) value += kLayoutHysteresis;
    if (value > best_value + 1e-9) {
      best = split;
      best_value = value;
    }
  };
  for (const Speeds speeds : {Speeds::kPlanned, Speeds::kAlone}) {
    for (int32_t split = question.splits - 1; split >= question.first_split; --split) {
      take(split, evaluation.SplitValue(split, mechanism, speeds, nullptr));
    }
    if (best != kWholeLayout) return best;
  }
  for (int32_t split = question.first_split; split < question.splits; ++split) {
    take(split, evaluation.Knee(split));
  }
  return best;
}

void Answer(const LayoutQuestion& question, const PairTable& pairs, Mechanism mechanism,
            SplitValues& values, Layout& layout) {
  const LayoutEvaluation evaluation(question, pairs);
  layout.trial_kernel = -1;
  layout.value = layout.runner_up_value = 0;
  layout.runner_up = kUnknownLayout;
  layout.whole_value = evaluation.WholeValue();
  if (mechanism == Mechanism::kEvict || question.splits == 0) {
    layout.split = kWholeLayout;
  } else if (mechanism == Mechanism::kBest) {
    const BestSplit known = BestLayout(question, evaluation, values);
    layout.split = known.split;
    layout.value = known.value;
    layout.runner_up = known.runner_up;
    layout.runner_up_value = known.runner_up_value;
    if (question.trial.open && values.any_unknown()) {
      const int32_t trial = TrialSplit(question, evaluation, known.value);
      if (trial >= 0) return AnswerTrial(question, evaluation, trial, layout);
    }
    // A current split below the first one has no values.
    if (layout.split >= question.first_split) {
      return values.FillSides(question, evaluation, layout);
    }
  } else {
    layout.split = ForcedSplit(question, mechanism, evaluation);
  }
  if (layout.split >= 0) evaluation.SplitValue(layout.split, mechanism, Speeds::kPlanned, &layout);
}

int32_t SplitOf(const Snapshot& snapshot, PlaceIndex place) {
  for (size_t s = 0; s < snapshot.splits.size(); ++s) {
    if (snapshot.splits[s].lc_place == place || snapshot.splits[s].be_place == place) {
      return static_cast<int32_t>(s);
    }
  }
  return kWholeLayout;
}

}  // namespace

LayoutChooser::LayoutChooser(Mechanism mechanism)
    : mechanism_(mechanism), remembered_(kLayoutsRemembered) {}

const Layout& LayoutChooser::Choose(const Snapshot& snapshot, int32_t current,
                                    IdleShares& idle_shares) {
  const LayoutQuestion& question = question_.Ask(snapshot, current, idle_shares);
  // The newest first: most plans ask what the last one asked.
  for (size_t age = 1; age <= remembered_.size(); ++age) {
    const Remembered& entry = remembered_[(next_ + remembered_.size() - age) % remembered_.size()];
    if (entry.used && entry.question == question) return entry.answer;
  }
  Remembered& entry = remembered_[next_];
  next_ = (next_ + 1) % remembered_.size();
  entry.used = true;
  entry.question.CopyFrom(question);
  Answer(question, snapshot.pairs, mechanism_, values_, entry.answer);
  return entry.answer;
}

int32_t CurrentLayout(const Snapshot& snapshot) {
  int32_t by_lc = kUnknownLayout;
  int32_t by_leaving = kUnknownLayout;
  for (const RunningView& running : snapshot.running) {
    if (running.task.kind == TaskKind::kMemcpy || !running.task.confinable) continue;
    for (const PartView& part : running.parts) {
      if (part.place < 0) continue;
      const int32_t split = SplitOf(snapshot, part.place);
      if (running.task.app_class == AppClass::kLatencyCritical) {
        by_lc = split;
      } else if (part.evicting) {
        by_leaving = split;
      } else {
        return split;
      }
    }
  }
  return by_leaving != kUnknownLayout ? by_leaving : by_lc;
}

}  // namespace gpushare::core
