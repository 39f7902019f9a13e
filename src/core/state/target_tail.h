// What an LC app's late queries say about the estimate of its p99 (queueing/queue_tail.h).
//
// The factor rises with each query that misses the target and falls with each that meets it, so
// that it rests where kTargetLateShare of them are late: the p99. Where the p99 alone is stated, it
// starts at 1: a p99 of some hundred queries is as likely too low as too high. The highest load of
// late keeps a lull from looking like a low load: queries that meet a side chosen in the lull stay
// on it. Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_STATE_TARGET_TAIL_H_
#define GPUSHARE_SRC_CORE_STATE_TARGET_TAIL_H_

#include <algorithm>
#include <cstdint>

#include "src/core/base/tuning.h"
#include "src/core/state/task.h"

namespace gpushare::core {

inline double TargetTailAtFirst(const Promise& promise) {
  return promise.p99_alone_ns > 0 ? 1 : kTargetTailStart;
}

// Nothing is known of the load of an app that states only a target. A stated p99 alone was measured
// at some load.
inline double PeakLoadAtFirst(const Promise& promise) {
  return promise.p99_alone_ns > 0 ? kTargetLoadFloor : 1;
}

inline void LearnLateness(App& app, int64_t latency_ns) {
  if (!app.options.promise.HasTarget()) return;
  const bool late = latency_ns > app.options.promise.target_ns;
  app.target_tail *= 1 + kTargetTailStep * (late ? 1 - kTargetLateShare : -kTargetLateShare);
  app.target_tail = std::clamp(app.target_tail, kTargetTailMin, kTargetTailMax);
}

// The app's highest load of late: `load`, or what is left of a higher one before. An estimate from
// a short time raises nothing: it is 1 in the first busy period.
inline double PeakLoad(App& app, double load, TimeNs now_ns) {
  if (app.load_weight < kPeakWeightMin) load = std::min(load, app.peak_load);
  if (app.peak_updated_ns == 0) app.peak_updated_ns = now_ns;
  const double passed = static_cast<double>(now_ns - app.peak_updated_ns) / kTargetPeakNs;
  app.peak_load =
      std::max(load, app.peak_load - (app.peak_load - load) * std::clamp(passed, 0.0, 1.0));
  app.peak_updated_ns = now_ns;
  return app.peak_load;
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_STATE_TARGET_TAIL_H_
