// Launches of workers on the whole device, and which one kernel ran beside each: what the cost
// model learns of co-schedules.
//
// "Enter running" begins every launch here, the complete stage ends it, and DropPart drops it. A
// launch is a sample of its kernel beside another one if nothing but workers of that other kernel
// ran beside it, always as many an SM, on the same SMs. Times are the device's own. Invariant: a
// launch is in the list until it ends or is dropped. Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_STATE_LAUNCHES_CO_RUNS_H_
#define GPUSHARE_SRC_CORE_STATE_LAUNCHES_CO_RUNS_H_

#include <algorithm>
#include <cstdint>

#include "src/core/base/containers/bounded_list.h"
#include "src/core/base/limits.h"
#include "src/core/base/types.h"

namespace gpushare::core {

struct WorkersOf {
  KernelId kernel;  // none: work that nothing is learned of, and beside which nothing is learned
  int32_t per_sm = 0;
  bool operator==(const WorkersOf&) const = default;
};

struct CoRunLaunch {
  LaunchId launch;
  LaneIndex lane = kNoLane;  // launches on one lane run one after the other
  WorkersOf workers;
  TimeNs launched_ns = 0;
};

// `whole`: it executed all block tasks that it was asked for. Without times nothing is learned of
// it, nor of what ran beside it.
struct CoRunEnd {
  LaunchId launch;
  TimeNs start_ns = 0;
  TimeNs end_ns = 0;
  bool whole = false;
};

// A launch that ran `ns`, of these `beside_ns` beside the neighbour's workers.
struct CoRunTimes {
  WorkersOf own;
  WorkersOf neighbour;
  int64_t ns = 0;
  int64_t beside_ns = 0;
};

class CoRuns {
 public:
  // Returns whether the list has room for the launch. Drop asks for the answer.
  bool Begin(const CoRunLaunch& launch) {
    Run run;
    run.launch = launch;
    run.useful = unseen_ == 0;
    for (Run& other : runs_) {
      if (other.launch.lane == launch.lane) continue;
      Meet(run, other.launch);
      Meet(other, launch);
    }
    if (runs_.TryAdd(run)) return true;
    // More than a device holds: nothing is learned while one is on the device that is not seen.
    ++unseen_;
    for (Run& other : runs_) other.useful = false;
    return false;
  }

  // Returns whether the launch is a sample, which goes to `out`. A launch that had no room, or that
  // has ended before, is none.
  bool End(const CoRunEnd& end, CoRunTimes& out) {
    for (int i = 0; i < runs_.size(); ++i) {
      if (runs_[i].launch.launch != end.launch) continue;
      const Run run = runs_[i];
      runs_.RemoveAt(i);
      return EndRun(run, end, out);
    }
    return false;
  }

  // The launch leaves the device: after End, or without a completion, which tells nothing. `seen`
  // is what Begin returned. Each launch that began is dropped once.
  void Drop(LaunchId launch, bool seen) {
    if (!seen) {
      unseen_ = std::max(0, unseen_ - 1);
      return;
    }
    CoRunTimes nothing;
    End({.launch = launch}, nothing);
  }

  // The launch goes on with fewer workers, or its kernel's identifier is another one's.
  void Spoil(LaunchId launch) {
    for (Run& run : runs_) {
      if (run.launch.launch == launch) SpoilRun(run);
    }
  }
  void Forget(KernelId kernel) {
    for (Run& run : runs_) {
      if (run.launch.workers.kernel == kernel || run.neighbour.kernel == kernel) SpoilRun(run);
    }
  }

  int size() const { return runs_.size(); }

 private:
  struct Run {
    CoRunLaunch launch;
    WorkersOf neighbour;
    bool useful = true;
    // Launches of the neighbour that have ended: the first one, which may have begun before this
    // launch, and the time of the others.
    TimeNs first_start_ns = kNever;
    TimeNs first_end_ns = 0;
    TimeNs last_end_ns = 0;
    int64_t others_ns = 0;
  };

  static void Meet(Run& run, const CoRunLaunch& other) {
    if (!run.neighbour.kernel) run.neighbour = other.workers;
    run.useful = run.useful && other.workers.kernel && run.neighbour == other.workers;
  }

  void SpoilRun(Run& run) {
    run.useful = false;
    run.launch.workers = {};
    for (Run& other : runs_) {
      if (other.launch.lane != run.launch.lane) other.useful = false;
    }
  }

  static void Ended(Run& run, const CoRunEnd& neighbour) {
    if (run.first_start_ns == kNever) {
      run.first_start_ns = neighbour.start_ns;
      run.first_end_ns = neighbour.end_ns;
    } else {
      run.others_ns += neighbour.end_ns - neighbour.start_ns;
    }
    run.last_end_ns = std::max(run.last_end_ns, neighbour.end_ns);
  }

  bool EndRun(const Run& run, const CoRunEnd& end, CoRunTimes& out) {
    const bool timed = end.end_ns > end.start_ns;
    TimeNs neighbour_since_ns = kNever;
    for (Run& other : runs_) {
      if (other.launch.lane == run.launch.lane) continue;
      neighbour_since_ns = std::min(neighbour_since_ns, other.launch.launched_ns);
      if (timed) {
        Ended(other, end);
      } else {
        other.useful = false;
      }
    }
    if (!run.useful || !timed || !end.whole) return false;
    if (!run.launch.workers.kernel || !run.neighbour.kernel) return false;
    int64_t beside_ns = run.others_ns;
    if (run.first_start_ns != kNever) {
      beside_ns += std::max<int64_t>(
          0, std::min(run.first_end_ns, end.end_ns) - std::max(run.first_start_ns, end.start_ns));
    }
    if (neighbour_since_ns != kNever) {
      const TimeNs since_ns = std::max({end.start_ns, neighbour_since_ns, run.last_end_ns});
      beside_ns += std::max<int64_t>(0, end.end_ns - since_ns);
    }
    out = {.own = run.launch.workers,
           .neighbour = run.neighbour,
           .ns = end.end_ns - end.start_ns,
           .beside_ns = std::min(beside_ns, end.end_ns - end.start_ns)};
    return true;
  }

  BoundedList<Run, kMaxRunning> runs_;
  int32_t unseen_ = 0;  // launches on the device that had no room
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_STATE_LAUNCHES_CO_RUNS_H_
