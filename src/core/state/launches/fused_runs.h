// Fused launches in flight, until both parts have ended: what the cost model learns of them.
//
// The fused launch begins a run, every other launch may spoil it, and the complete stage ends its
// parts. A run tells something only if both parts executed all that they were asked for, and if
// nothing else was on the device. Invariant: a run ends with its second part. Threads: the one that
// runs Tick.

#ifndef GPUSHARE_SRC_CORE_STATE_LAUNCHES_FUSED_RUNS_H_
#define GPUSHARE_SRC_CORE_STATE_LAUNCHES_FUSED_RUNS_H_

#include <algorithm>
#include <array>
#include <cstdint>

#include "src/core/base/containers/bounded_list.h"
#include "src/core/base/limits.h"
#include "src/core/base/types.h"
#include "src/core/seams/cost_model.h"

namespace gpushare::core {

struct FusedRun {
  FusedFeatures features;
  std::array<LaunchId, 2> launches;  // none: that part has ended
  LaneIndex order_lane = kNoLane;    // what comes later on it starts after the run
  bool useful = true;
  TimeNs start_ns = kNever;
  TimeNs end_ns = 0;
};

// The end of one part of a run. `whole`: it executed all block tasks that it was asked for, and the
// device reported the times.
struct FusedPartEnd {
  LaunchId launch;
  TimeNs start_ns = kNever;
  TimeNs end_ns = 0;
  bool whole = false;
};

class FusedRuns {
 public:
  // More runs than a device holds are not followed.
  void Begin(const FusedRun& run) { runs_.TryAdd(run); }

  // A launch on another lane than the run's is beside it.
  void Spoil(LaunchId launch, LaneIndex lane) {
    for (FusedRun& run : runs_) {
      const bool own = run.launches[0] == launch || run.launches[1] == launch;
      if (!own && lane != run.order_lane) run.useful = false;
    }
  }

  // Returns whether the part was the last of a run that tells something; `out` is that run then.
  // Nothing happens at the end of any other launch.
  bool End(const FusedPartEnd& part, FusedRun& out) {
    for (int i = 0; i < runs_.size(); ++i) {
      FusedRun& run = runs_[i];
      const auto ended = std::find(run.launches.begin(), run.launches.end(), part.launch);
      if (ended == run.launches.end()) continue;
      *ended = LaunchId{};
      run.start_ns = std::min(run.start_ns, part.start_ns);
      run.end_ns = std::max(run.end_ns, part.end_ns);
      run.useful = run.useful && part.whole;
      if (run.launches[0] || run.launches[1]) return false;
      out = run;
      runs_.RemoveAt(i);
      return out.useful && out.end_ns > out.start_ns;
    }
    return false;
  }

  int size() const { return runs_.size(); }

 private:
  BoundedList<FusedRun, kMaxRunning> runs_;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_STATE_LAUNCHES_FUSED_RUNS_H_
