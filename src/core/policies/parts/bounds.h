// The bounds that LC apps and queries put on BE work, and arithmetic that keeps kNever as 'none'.

#ifndef GPUSHARE_SRC_CORE_POLICIES_PARTS_BOUNDS_H_
#define GPUSHARE_SRC_CORE_POLICIES_PARTS_BOUNDS_H_

#include <algorithm>
#include <cstdint>

#include "src/core/base/tuning.h"
#include "src/core/base/types.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

// a + b for a, b >= 0; kNever absorbs.
constexpr int64_t SumNs(int64_t a, int64_t b) { return a > kNever - b ? kNever : a + b; }

// bound - used, where the bound kNever stays kNever.
constexpr int64_t LeftNs(int64_t bound, int64_t used) {
  return bound == kNever ? kNever : bound - std::min(used, kNever / 2);
}

// What every LC app tolerates as a delay of its next query; kNever when none states a bound.
inline int64_t MinBlockingBudget(const Snapshot& snapshot) {
  int64_t budget_ns = kNever;
  for (const LcAppView& app : snapshot.lc_apps) {
    budget_ns = std::min(budget_ns, app.blocking_budget_ns);
  }
  return budget_ns;
}

// The least budgets of the LC apps: of evictions, and of launches that nothing evicts.
struct Budgets {
  int64_t eviction_ns = kNever;
  int64_t uncuttable_ns = kNever;

  explicit Budgets(const Snapshot& snapshot) : eviction_ns(MinBlockingBudget(snapshot)) {
    for (const LcAppView& app : snapshot.lc_apps) {
      uncuttable_ns =
          std::min(uncuttable_ns, std::max(app.blocking_budget_ns, app.uncuttable_budget_ns));
    }
  }

  // The delay that counts as much as launches of `uncuttable_ns` that nothing evicts. The shift of
  // the p99 is convex in their length, so that a part of the budget shifts by at most that part.
  int64_t AsEviction(int64_t fixed_ns) const {
    if (fixed_ns <= 0 || eviction_ns == kNever || uncuttable_ns <= eviction_ns) return fixed_ns;
    const double part = static_cast<double>(fixed_ns) / static_cast<double>(uncuttable_ns);
    return fixed_ns >= kNever / 2 ? fixed_ns
                                  : static_cast<int64_t>(part * static_cast<double>(eviction_ns));
  }
  // The inverse.
  int64_t AsUncuttable(int64_t delay_ns) const {
    if (eviction_ns <= 0 || uncuttable_ns <= eviction_ns || delay_ns >= kNever / 4) return delay_ns;
    const double part = static_cast<double>(delay_ns) / static_cast<double>(eviction_ns);
    return static_cast<int64_t>(part * static_cast<double>(uncuttable_ns));
  }
};

// The longest delay that still meets the tails of all LC apps that limit BE work, so that it moves
// their p99 by its mean; 0: a tail is unknown. A random arrival's tail is assumed of an app that
// has shown none yet.
inline int64_t LongestInTails(const Snapshot& snapshot) {
  int64_t longest_ns = kNever;
  for (const LcAppView& app : snapshot.lc_apps) {
    if (app.blocking_budget_ns == kNever) continue;
    longest_ns = std::min(longest_ns, app.tail_rate > 0 ? app.late_delay_ns : 0);
  }
  return longest_ns;
}

// Whether the app's load is not rounded to 0 (RoundLoad).
inline bool HasLoad(const LcAppView& app) { return app.load * kLoadSteps >= 0.5; }

// What the tail accounts say to BE work that blocks for `blocking_ns`.
struct CreditAnswer {
  bool covered = true;  // every app whose budget is shorter has the credit
  // Of the app that lacks most, in queries. need 0: it has no account.
  double need = 0;
  double credit = 0;
};
inline CreditAnswer AskTailAccounts(const Snapshot& snapshot, int64_t blocking_ns) {
  CreditAnswer answer;
  for (const LcAppView& app : snapshot.lc_apps) {
    if (blocking_ns <= app.blocking_budget_ns) continue;
    const double delayed = app.tail_need_per_ns * static_cast<double>(blocking_ns);
    const double least = HasLoad(app) ? kTailCreditMin : 0;
    const double need = delayed > 0 ? std::clamp(delayed, least, kTailCreditMax) : 0;
    if (need > 0 && app.tail_credit >= need) continue;
    if (answer.covered || need - app.tail_credit > answer.need - answer.credit) {
      answer = {false, need, app.tail_credit};
    }
  }
  return answer;
}

// What every active query can still give away (Baymax eq. 3-4, Tacker eq. 7-9); kNever without a
// query that has a target.
inline int64_t MinHeadroom(const Snapshot& snapshot) {
  int64_t headroom_ns = kNever;
  for (const QueryView& query : snapshot.queries) {
    headroom_ns = std::min(headroom_ns, query.headroom_ns);
  }
  return headroom_ns;
}

// Whether a query of the app misses its target even alone on the device.
inline bool TargetIsLost(const LcAppView& app) { return app.promise.TargetIsLost(app.solo_ns); }

// Whether the app has never sent a query.
inline bool HasNeverSent(const LcAppView& app) {
  return app.main_kernel.value == 0 && !(app.load > 0);
}

// Bound on T_q that lets a query that arrives now meet its target (Baymax 5.2.1 as corrected:
// T_q <= T_tgt alone would make it miss); kNever when no LC app has a target that can be met.
inline int64_t MaxQueuedTime(const Snapshot& snapshot) {
  int64_t queued_ns = kNever;
  for (const LcAppView& app : snapshot.lc_apps) {
    if (app.promise.HasTarget() && !TargetIsLost(app)) {
      queued_ns = std::min(queued_ns, app.promise.target_ns - app.solo_ns);
    }
  }
  return queued_ns;
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_PARTS_BOUNDS_H_
