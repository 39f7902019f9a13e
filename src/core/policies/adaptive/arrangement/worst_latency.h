// The predicted latency of the LC app that a BE kernel on a split, BE copies or fused partners harm
// most: why they are held.
//
// Pure; threads: the planner's.

#ifndef GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_ARRANGEMENT_WORST_LATENCY_H_
#define GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_ARRANGEMENT_WORST_LATENCY_H_

#include <cstdint>

#include "absl/types/span.h"
#include "src/core/promise/promise.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

// Predicted p99 of the LC app that comes closest to its limit, or furthest beyond it, while
// `kernel` runs on `split`. Zeros when no app has a limit.
LatencyEstimate WorstLatency(const Snapshot& snapshot, int32_t kernel, int32_t split);

// The same while BE copies run in these directions beside the apps on the whole device.
LatencyEstimate WorstLatencyBesideCopies(const Snapshot& snapshot, LinkUse copies);

// Where the queries of each app take so many times as long as alone, by index into lc_apps, and BE
// work delays them by `delay_ns` on top.
struct LatencyAtSlowdowns {
  bool kept = true;    // every app that has sent a query keeps its promise
  LatencyShift shift;  // of the app that comes closest to its limit
};
LatencyAtSlowdowns LatencyAt(const Snapshot& snapshot, absl::Span<const double> slowdowns,
                             int64_t delay_ns);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_ARRANGEMENT_WORST_LATENCY_H_
