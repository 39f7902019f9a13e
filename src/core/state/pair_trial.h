// Trials of pairs that nobody measured: an LC app beside a BE kernel on a split.
//
// The planner counts on a pessimistic speed for such a pair. A trial uses the split all the same,
// for kTrialQueries queries, and no more than kTrialShare of all queries belong to trials. A bad
// pair costs its app that many queries. After the trial the pair is known: by what it did to the
// queries, or, if none could be attributed, by the pessimistic guess. The cost model keeps it, and
// a profile what the model keeps.
//
// Where in the flow: NoteTrialQuery at a query's end, the rest in plan. Threads: the scheduler's.

#ifndef GPUSHARE_SRC_CORE_STATE_PAIR_TRIAL_H_
#define GPUSHARE_SRC_CORE_STATE_PAIR_TRIAL_H_

#include <algorithm>
#include <cstdint>

#include "src/core/base/tuning.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

struct PairTrial {
  double credit = kTrialQueries;  // queries that trials may still use
  int32_t left = 0;               // queries of the trial that is under way
  int32_t split = -1;             // what is tried; -1: nothing
  int32_t kernel = -1;            // row of the pair table
  bool over = false;              // its last query has ended
};

inline TrialView ViewOf(const PairTrial& trial) {
  if (trial.split >= 0) return {!trial.over, trial.split};
  return {trial.credit >= kTrialQueries, -1};
}

inline void NoteTrialQuery(PairTrial& trial) {
  constexpr double kRounding = 1e-9;  // of 1 / kTrialShare additions
  trial.credit = std::min(trial.credit + kTrialShare * (1 + kRounding), double{kTrialQueries});
  if (trial.split >= 0 && --trial.left <= 0) trial.over = true;
}

// The planner's answer: what is tried from now on. Queries that a trial did not need stay.
inline void FollowPlan(PairTrial& trial, int32_t split, int32_t kernel) {
  if (split == trial.split) return;
  trial.credit += trial.left;
  trial.split = split;
  trial.kernel = kernel;
  trial.left = split < 0 ? 0 : kTrialQueries;
  trial.credit -= trial.left;
  trial.over = false;
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_STATE_PAIR_TRIAL_H_
