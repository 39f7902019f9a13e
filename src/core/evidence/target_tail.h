// What an LC app's late queries say about the estimate of its p99 (queueing/queue_tail.h).
//
// The factor rises with each query that misses the target and falls with each that meets it, so
// that it rests where kTargetLateShare of them are late: the p99. Where the p99 alone is stated, it
// starts at 1: a p99 of some hundred queries is as likely too low as too high. The highest load of
// late keeps a lull from looking like a low load: queries that meet a side chosen in the lull stay
// on it. Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_EVIDENCE_TARGET_TAIL_H_
#define GPUSHARE_SRC_CORE_EVIDENCE_TARGET_TAIL_H_

#include <algorithm>
#include <cstdint>

#include "src/core/base/types.h"
#include "src/core/evidence/tuning.h"
#include "src/core/promise/promise.h"
#include "src/core/promise/tuning.h"

namespace gpushare::core {

struct TargetTail {
  double factor = kTargetTailStart;
  double peak_load = 1;
  TimeNs peak_updated_ns = 0;
};

// Nothing is known of the load of an app that states only a target. A stated p99 alone was measured
// at some load.
inline TargetTail TargetTailAtFirst(const Promise& promise) {
  if (promise.p99_alone_ns > 0) return {.factor = 1, .peak_load = kTargetLoadFloor};
  return {};
}

// A query has ended.
inline void LearnLateness(TargetTail& tail, const Promise& promise, int64_t latency_ns) {
  if (!promise.HasTarget()) return;
  const bool late = latency_ns > promise.target_ns;
  tail.factor *= 1 + kTargetTailStep * (late ? 1 - kTargetLateShare : -kTargetLateShare);
  tail.factor = std::clamp(tail.factor, kTargetTailMin, kTargetTailMax);
}

// The app's highest load of late: `load`, or what is left of a higher one before. An estimate from
// a short time (`load_weight`, lc_load.h) raises nothing: it is 1 in the first busy period.
inline double PeakLoad(TargetTail& tail, double load, double load_weight, TimeNs now_ns) {
  if (load_weight < kPeakWeightMin) load = std::min(load, tail.peak_load);
  if (tail.peak_updated_ns == 0) tail.peak_updated_ns = now_ns;
  const double passed = static_cast<double>(now_ns - tail.peak_updated_ns) / kLoadForgottenNs;
  tail.peak_load =
      std::max(load, tail.peak_load - (tail.peak_load - load) * std::clamp(passed, 0.0, 1.0));
  tail.peak_updated_ns = now_ns;
  return tail.peak_load;
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_EVIDENCE_TARGET_TAIL_H_
