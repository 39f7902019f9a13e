// The predicted latency of the LC app that a BE kernel on a split, or BE copies, harm most: why
// they are held.
//
// Pure; threads: the planner's.

#ifndef GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_ARRANGEMENT_WORST_LATENCY_H_
#define GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_ARRANGEMENT_WORST_LATENCY_H_

#include <cstdint>

#include "src/core/promise/promise.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

// Predicted p99 of the LC app that comes closest to its limit, or furthest beyond it, while
// `kernel` runs on `split`. Zeros when no app has a limit.
LatencyEstimate WorstLatency(const Snapshot& snapshot, int32_t kernel, int32_t split);

// The same while BE copies run in these directions beside the apps on the whole device.
LatencyEstimate WorstLatencyBesideCopies(const Snapshot& snapshot, LinkUse copies);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_ARRANGEMENT_WORST_LATENCY_H_
