// The best arrangement, and the memory of the last answers (choose.h).

#include "src/core/policies/adaptive/choose.h"

#include <algorithm>
#include <limits>

#include "src/core/policies/adaptive/arrangement/tuning.h"
#include "src/core/policies/adaptive/arrangement/value.h"
#include "src/core/policies/adaptive/candidates/trial.h"
#include "src/core/policies/adaptive/carry_out/change.h"

namespace gpushare::core {
namespace {

struct BestSplit {
  int32_t split = kNoSplit;
  double value = 0;
  int32_t runner_up = kNotCompared;
  double runner_up_value = 0;

  void Beat(int32_t better, double better_value) { *this = {better, better_value, split, value}; }
};

// The arrangement of the largest predicted throughput. Near a tie the favoured one wins. Without BE
// work LC has the whole device.
BestSplit BestKnown(const Question& question, SplitValues& values) {
  if (question.be_count == 0) return {};
  const auto bonus = [&](int32_t split) {
    return split == question.favoured ? kLayoutHysteresis : 0.0;
  };
  BestSplit best = {kNoSplit, values.Whole()};
  best.value += best.value > 0 ? bonus(kNoSplit) : 0;
  const BySplit planned = values.Planned();
  // From the largest LC side on: a quota makes BE sides equally good.
  for (int32_t split = question.splits - 1; split >= question.first_split; --split) {
    if (!question.Offers(split)) continue;
    double value = planned[static_cast<size_t>(split)];
    value += value > 0 ? bonus(split) : 0;
    if (value > best.value + kTie) {
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
int32_t ForcedSplit(const Question& question, Mechanism mechanism, SplitValues& values) {
  int32_t best = kNoSplit;
  double best_value = 0;
  const auto take = [&](int32_t split, double value) {
    if (value > 0 && split == question.favoured) value += kLayoutHysteresis;
    if (value <= best_value + kTie) return;
    best = split;
    best_value = value;
  };
  for (const Speeds speeds : {Speeds::kPlanned, Speeds::kAlone}) {
    const BySplit forced = values.Under(mechanism, speeds);
    for (int32_t split = question.splits - 1; split >= question.first_split; --split) {
      if (question.Offers(split)) take(split, forced[static_cast<size_t>(split)]);
    }
    if (best != kNoSplit) return best;
  }
  for (int32_t split = question.first_split; split < question.splits; ++split) {
    if (question.Offers(split)) take(split, values.Knee(split));
  }
  return best;
}

// The best of what is known, or a trial that hopes for more.
void AnswerBest(const Question& question, SplitValues& values, Arrangement& arrangement) {
  const BestSplit known = BestKnown(question, values);
  arrangement.split = known.split;
  arrangement.value = known.value;
  arrangement.runner_up = known.runner_up;
  arrangement.runner_up_value = known.runner_up_value;
  arrangement.shift = values.ShiftOn(known.split);
  if (known.runner_up != kNotCompared) {
    arrangement.runner_up_shift = values.ShiftOn(known.runner_up);
  }
  if (question.trials_open && values.any_unknown()) {
    const int32_t trial = TrialSplit(question, values, known.value);
    if (trial >= 0) return AnswerTrial(question, values, trial, arrangement);
  }
  if (arrangement.split != kNoSplit) values.FillSides(arrangement);
}

void Answer(const Question& question, const PairTable& pairs, Mechanism mechanism,
            SplitValues& values, Arrangement& arrangement) {
  values.Ask(question, pairs);
  arrangement.trial_kernel = -1;
  arrangement.value = arrangement.runner_up_value = 0;
  arrangement.runner_up = kNotCompared;
  arrangement.shift = arrangement.runner_up_shift = LatencyShift();
  arrangement.whole_value = values.Whole();
  arrangement.split = kNoSplit;
  if (mechanism == Mechanism::kEvict || question.splits == 0) return;
  if (mechanism == Mechanism::kBest) return AnswerBest(question, values, arrangement);
  arrangement.split = ForcedSplit(question, mechanism, values);
  if (arrangement.split >= 0) {
    values.Fill(arrangement.split, mechanism, Speeds::kPlanned, arrangement);
  }
}

// A bit each.
uint32_t ReadySplits(const Snapshot& snapshot) {
  static_assert(kMaxSplits <= std::numeric_limits<uint32_t>::digits);
  uint32_t ready = 0;
  for (size_t s = 0; s < snapshot.splits.size(); ++s) {
    const auto is_ready = [&](PlaceIndex place) {
      return snapshot.places[static_cast<size_t>(place)].ready;
    };
    const SplitView& split = snapshot.splits[s];
    if (is_ready(split.lc_place) && is_ready(split.be_place)) ready |= 1U << s;
  }
  return ready;
}

}  // namespace

Chooser::Chooser(Mechanism mechanism) : mechanism_(mechanism), remembered_(kLayoutsRemembered) {}

const Arrangement& Chooser::Choose(const Snapshot& snapshot, Shifts& shifts, Plan& plan) {
  constexpr uint32_t kAll = ~0U;
  const Arrangement& best = AnswerTo(question_.Ask(snapshot, kAll, shifts), snapshot);
  if (best.split < 0) return best;
  plan.places_wanted |= BePlacesOf(snapshot, best.split);
  const uint32_t ready = ReadySplits(snapshot);
  if ((ready >> best.split & 1) != 0) return best;
  const Arrangement& now = AnswerTo(question_.Ask(snapshot, ready, shifts), snapshot);
  plan.places_wanted |= BePlacesOf(snapshot, now.split);
  return now;
}

const Arrangement& Chooser::AnswerTo(const Question& question, const Snapshot& snapshot) {
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

}  // namespace gpushare::core
