// The bounds that LC apps and queries put on BE work, and arithmetic that keeps kNever as 'none'.

#ifndef GPUSHARE_SRC_CORE_POLICIES_PARTS_BOUNDS_H_
#define GPUSHARE_SRC_CORE_POLICIES_PARTS_BOUNDS_H_

#include <algorithm>
#include <cstdint>

#include "src/core/base/types.h"
#include "src/core/promise/tuning.h"
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

// Whether the app's load is not rounded to 0 (RoundLoad).
inline bool HasLoad(const LcAppView& app) { return app.load * kLoadSteps >= 0.5; }

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
