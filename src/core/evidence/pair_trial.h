// Trials of pairs that nobody measured: an LC app beside a BE kernel on a split.
//
// The planner counts on a pessimistic speed for such a pair. A trial uses the split all the same,
// for kTrialQueries queries. A query of a trial costs credit, which each query earns kTrialShare
// of; one that ends within its app's bound (LatencyLimit) gives it back. So trials make no more
// than kTrialShare of all queries late, and a looser bound allows more of them. A bad split costs
// its app the queries of one trial. After the trial the pair is known: by what it did to the
// queries, or, if none could be attributed, by the pessimistic guess. The cost model keeps it, and
// a profile what the model keeps.
//
// A query belongs to the trial if it arrived since the trial began, and ends while the kernel has a
// part on the split's BE place. The first such query says which kernel that is. Without enough of
// them in kTrialTimeNs the trial ends, and says nothing about the pair.
//
// Where in the flow: EarnTrialCredit and NoteTrialQuery at a query's end, the rest in plan.
// Threads: the scheduler's.

#ifndef GPUSHARE_SRC_CORE_EVIDENCE_PAIR_TRIAL_H_
#define GPUSHARE_SRC_CORE_EVIDENCE_PAIR_TRIAL_H_

#include <algorithm>
#include <cstdint>

#include "src/core/base/types.h"
#include "src/core/evidence/tuning.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

struct PairTrial {
  double credit = kTrialQueries;  // queries that trials may still make late
  int32_t left = 0;               // queries of the trial that is under way
  int32_t split = -1;             // what is tried; -1: nothing
  int32_t kernel = -1;            // row of the pair table
  uint64_t apps = 0;              // bit per slot of an app with a query of the trial
  TimeNs begin_ns = 0;
  bool over = false;  // its last query has ended
};

// Whether the trial goes on; without one, whether the next may begin.
inline bool AreOpen(const PairTrial& trial) {
  return trial.split >= 0 ? !trial.over : trial.credit >= kTrialQueries;
}

// A query has ended, of whatever app.
inline void EarnTrialCredit(PairTrial& trial) {
  constexpr double kRounding = 1e-9;  // of 1 / kTrialShare additions
  trial.credit = std::min(trial.credit + kTrialShare * (1 + kRounding), double{kTrialQueries});
}

// A query has ended beside `kernel`, on the split's BE place. `on_time`: its app has a bound, and
// the query kept it.
inline void NoteTrialQuery(PairTrial& trial, int32_t app_slot, int32_t kernel, bool on_time) {
  if (trial.apps == 0) trial.kernel = kernel;
  if (trial.over || trial.kernel != kernel) return;
  trial.apps |= uint64_t{1} << app_slot;
  if (on_time) trial.credit = std::min(trial.credit + 1, double{kTrialQueries});
  if (--trial.left <= 0) trial.over = true;
}

inline bool TrialTimedOut(const PairTrial& trial, TimeNs now_ns) {
  return trial.split >= 0 && !trial.over && now_ns - trial.begin_ns >= kTrialTimeNs;
}

// The planner's answer: what is tried from now on. Queries that a trial did not need stay.
inline void FollowPlan(PairTrial& trial, int32_t split, int32_t kernel, TimeNs now_ns) {
  if (split == trial.split) return;
  trial.credit += trial.left;
  trial.split = split;
  trial.kernel = kernel;
  trial.left = split < 0 ? 0 : kTrialQueries;
  trial.credit -= trial.left;
  trial.apps = 0;
  trial.begin_ns = now_ns;
  trial.over = false;
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_EVIDENCE_PAIR_TRIAL_H_
