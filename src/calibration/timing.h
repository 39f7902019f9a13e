// Launching and waiting for calibration: one launch or a batch on one lane, timed, bounded.
//
// Invariants: at most kBatchMax launches are in flight; a launch that is not reported within the
// hang limit makes its lane be given up and the wait fail. Times are the device's clock; start and
// end of worker launches are exact, of other forms they may be the host's view, so that short work
// is timed as the difference of two batches. Threads: one.

#ifndef GPUSHARE_SRC_CALIBRATION_TIMING_H_
#define GPUSHARE_SRC_CALIBRATION_TIMING_H_

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/calibration/calibration.h"
#include "src/core/seams/device.h"
#include "src/core/state/lanes.h"

namespace gpushare::models {

// Launches of one batch. Each worker launch of a batch has a claim counter of its own.
inline constexpr int kBatchMax = 16;

// Tries of one sample. A host's hiccup in the shorter of two batches makes their difference nothing
// or less; five in a row are no hiccup.
inline constexpr int kTimingTriesMax = 5;

struct TimedLaunch {
  core::TimeNs called_ns = 0;  // before the launch call
  core::TimeNs issued_ns = 0;  // after it
  core::TimeNs seen_ns = 0;    // the host had the completion
  core::DeviceCompletion completion;

  double duration_ns() const {
    return static_cast<double>(completion.end_ns - completion.start_ns);
  }
};

class LaunchTimer {
 public:
  LaunchTimer(core::Device& device, const CalibrationOptions& options)
      : device_(device), options_(options) {}

  core::Device& device() { return device_; }
  bool virtual_time() const { return device_.capabilities().virtual_time; }

  // CANCELLED once the caller asked for it.
  absl::Status CheckCancelled() const;

  // Launches; the timer fills identifiers and epochs. A fused launch counts as two.
  absl::Status Begin(core::LaunchRequest request);
  // Writes the eviction word for the last worker launch on the lane. `issue_ns`, if given: host
  // time of the call. Returns the time of the call.
  absl::StatusOr<core::TimeNs> Evict(core::LaneIndex lane, int64_t* issue_ns = nullptr);
  // The same for the worker launch that comes next on the lane.
  absl::StatusOr<core::TimeNs> EvictNext(core::LaneIndex lane);
  // Until the clock is at `time`.
  void WaitUntil(core::TimeNs time);
  // Until everything in flight is reported, in the order of Begin. A failed launch is an error.
  absl::StatusOr<std::vector<TimedLaunch>> Finish();

  // One launch to its end. Anything but kFinished is an error.
  absl::StatusOr<TimedLaunch> RunOne(const core::LaunchRequest& request);
  // `count` launches back to back: workers from the first start to the last end, other forms from
  // the first call to the last completion as the host sees it.
  absl::StatusOr<double> RunBatch(const core::LaunchRequest& request, int count);
  // Time of one launch among several: the difference of two batches over the difference of counts.
  // A difference that no launch can have is dropped, counted and taken again; FAILED_PRECONDITION
  // after kTimingTriesMax of them.
  absl::StatusOr<double> TimePerLaunch(const core::LaunchRequest& request, int count);
  // Samples that TimePerLaunch has dropped since the last call.
  int TakeDropped() { return std::exchange(dropped_, 0); }

  // One fused launch: from the start of the first part to the end of the last.
  absl::StatusOr<double> RunFused(const core::LaunchRequest& request);

  // One worker launch beside which others are timed; Finish does not wait for it.
  absl::Status BeginBackground(const core::LaunchRequest& request);
  bool BackgroundRuns();
  // Tells it to leave and waits until it has left. Whether it still ran when told.
  absl::StatusOr<bool> EndBackground(core::LaneIndex lane);

  // After an error: lets what is in flight end, gives up the lanes of what does not.
  void Drain();

 private:
  struct InFlight {
    TimedLaunch timed;
    core::LaneIndex lane = core::kNoLane;
    std::string name;
    bool done = false;
    bool background = false;
  };

  InFlight EntryOf(core::LaunchId launch, core::LaneIndex lane, const std::string& name) const;
  void Poll();
  bool AllDone(bool background) const;
  absl::StatusOr<std::vector<TimedLaunch>> FinishAll(bool background);
  absl::StatusOr<core::TimeNs> WriteWord(core::LaneIndex lane, uint64_t epoch, int64_t* issue_ns);
  absl::Status GiveUp(bool background);

  core::Device& device_;
  const CalibrationOptions& options_;
  std::vector<InFlight> in_flight_;
  std::array<uint64_t, core::kMaxLanes> epochs_{};  // of the last worker launch of each lane
  uint64_t next_launch_ = 1;
  int dropped_ = 0;
};

double Median(std::vector<double> values);
// Of `values`, between 0 and 1: the smallest value that so large a share does not exceed.
double Quantile(std::vector<double> values, double share);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_CALIBRATION_TIMING_H_
