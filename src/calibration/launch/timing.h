// Launches for calibration: one launch or a batch on one lane, timed, with bounded waits.
//
// Invariants: at most kBatchMax launches are in flight. If a launch is not reported within the hang
// limit, its lane is given up and the wait fails. Times are those of the device's clock. Start and
// end of worker launches are exact; of other forms they may be the host's view, so that short work
// is timed as the difference of two batches. Threads: one.

#ifndef GPUSHARE_SRC_CALIBRATION_LAUNCH_TIMING_H_
#define GPUSHARE_SRC_CALIBRATION_LAUNCH_TIMING_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/calibration/base/options.h"
#include "src/core/seams/device.h"
#include "src/core/state/lanes.h"

namespace gpushare::models {

// Launches of one batch. Each worker launch of a batch has a claim counter of its own.
inline constexpr int kBatchMax = 16;

// Tries of one sample. When the host stalls in the shorter of two batches, their difference is 0 or
// less. Five such differences in a row are not a stall.
inline constexpr int kTimingTriesMax = 5;

struct TimedLaunch {
  core::TimeNs called_ns = 0;  // before the launch call
  core::TimeNs issued_ns = 0;  // after it
  core::TimeNs seen_ns = 0;    // the host had the completion
  core::DeviceCompletion completion;

  double duration_ns() const {
    return static_cast<double>(completion.end_ns - completion.start_ns);
  }
  double round_trip_ns() const { return static_cast<double>(seen_ns - called_ns); }
};

class LaunchTimer {
 public:
  LaunchTimer(core::Device& device, const CalibrationOptions& options)
      : device_(device), options_(options) {}

  core::Device& device() { return device_; }
  bool virtual_time() const { return device_.capabilities().virtual_time; }

  // CANCELLED once the caller has asked for it.
  absl::Status CheckCancelled() const;

  // Launches; the timer fills identifiers and epochs. A fused launch counts as two.
  absl::Status Begin(core::LaunchRequest request);
  // Writes the eviction word for the last worker launch on the lane. `issue_ns`, if given: host
  // time of the call. Returns the time of the call.
  absl::StatusOr<core::TimeNs> Evict(core::LaneIndex lane, int64_t* issue_ns = nullptr);
  // The same for the next worker launch on the lane.
  absl::StatusOr<core::TimeNs> EvictNext(core::LaneIndex lane);
  // Waits until the clock is at `time`.
  void WaitUntil(core::TimeNs time);
  // Waits `ns` from now on.
  void Wait(core::TimeNs ns) { WaitUntil(device_.NowNs() + ns); }
  // Waits until everything in flight is reported and returns it in the order of Begin. A failed
  // launch is an error.
  absl::StatusOr<std::vector<TimedLaunch>> Finish();

  // One launch to its end. Anything but kFinished is an error.
  absl::StatusOr<TimedLaunch> RunOne(const core::LaunchRequest& request);
  // The time of `count` launches back to back: of workers from the first start to the last end, of
  // other forms from the first call to the last completion as the host sees it.
  absl::StatusOr<double> RunBatch(const core::LaunchRequest& request, int count);
  // The time of one launch among several: the difference of a batch of `count` and one of 1, over
  // count - 1. A difference below 1 ns is dropped, counted and taken again; FAILED_PRECONDITION
  // after kTimingTriesMax of them.
  absl::StatusOr<double> TimePerLaunch(const core::LaunchRequest& request, int count);
  // Samples that TimePerLaunch has dropped since the last call.
  size_t TakeDropped() { return std::exchange(dropped_, 0); }

  // The time of one fused launch, from the start of the first part to the end of the last.
  absl::StatusOr<double> RunFused(const core::LaunchRequest& request);

  // Begins a worker launch beside which others are timed, and waits `settle_ns` so that it runs on
  // every SM. Finish() does not wait for it.
  absl::Status BeginBackground(const core::LaunchRequest& request, core::TimeNs settle_ns);
  bool BackgroundRuns();
  // Evicts it and waits until it has left. Returns whether it still ran at the eviction.
  absl::StatusOr<bool> EndBackground(core::LaneIndex lane);

  // After an error: waits for launches in flight, and abandons the lanes of those that do not end.
  void Drain();

 private:
  struct InFlight {
    TimedLaunch timed;
    core::LaneIndex lane = core::kNoLane;
    std::string name;
    bool done = false;
    bool background = false;
  };

  void Poll();
  // On a virtual clock advances to the next event, at most to `until`; else yields or spins.
  void PassTime(core::TimeNs until, bool spin);
  bool AllDone(bool background) const;
  absl::StatusOr<std::vector<TimedLaunch>> TakeFinished(bool background);
  absl::StatusOr<std::vector<TimedLaunch>> FinishAll(bool background);
  // One launch to its end, as Finish returns it. An eviction is an error.
  absl::StatusOr<std::vector<TimedLaunch>> RunToEnd(const core::LaunchRequest& request);
  absl::StatusOr<core::TimeNs> WriteWord(core::LaneIndex lane, uint64_t epoch, int64_t* issue_ns);
  absl::Status GiveUp(bool background);

  core::Device& device_;
  const CalibrationOptions& options_;
  std::vector<InFlight> in_flight_;
  std::array<uint64_t, core::kMaxLanes> epochs_{};  // of the last worker launch of each lane
  uint64_t next_launch_ = 1;
  size_t dropped_ = 0;
};

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_CALIBRATION_LAUNCH_TIMING_H_
