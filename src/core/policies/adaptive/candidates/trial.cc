// Which split to try, and how (candidates/trial.h).

#include "src/core/policies/adaptive/candidates/trial.h"

#include <algorithm>

#include "src/core/policies/adaptive/arrangement/tuning.h"

namespace gpushare::core {

int32_t TrialSplit(const Question& question, SplitValues& values, double known) {
  int32_t best = kNoSplit;
  double best_value = known + kGainMin;
  const int32_t tried = question.tried_split;
  const BySplit hoped = values.Under(Mechanism::kBest, Speeds::kHoped);
  for (int32_t split = question.splits - 1; split >= question.first_split; --split) {
    if (tried != kNoSplit && tried != split) continue;
    if (!question.Offers(split) || values.UnknownOn(split) < 0) continue;
    const double value = hoped[static_cast<size_t>(split)];
    if (value <= best_value + kTie) continue;
    best = split;
    best_value = value;
  }
  return best;
}

void AnswerTrial(const Question& question, SplitValues& values, int32_t split,
                 Arrangement& arrangement) {
  arrangement.runner_up = arrangement.split;
  arrangement.runner_up_value = arrangement.value;
  arrangement.runner_up_shift = arrangement.shift;
  arrangement.split = split;
  arrangement.shift = values.ShiftOnTrial(split);
  arrangement.trial_kernel = values.UnknownOn(split);
  arrangement.trial_value = values.Fill(split, Mechanism::kBest, Speeds::kHoped, arrangement);
  for (int32_t b = 0; b < question.be_count; ++b) {
    Sides& sides =
        arrangement.sides[static_cast<size_t>(question.be[static_cast<size_t>(b)].kernel)];
    sides = std::min(sides, Sides::kBeSide);
  }
}

}  // namespace gpushare::core
