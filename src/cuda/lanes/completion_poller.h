// Turns the records and the marks of launches into completions.
//
// Where in the flow: PollCompletions calls Collect for each busy lane. A worker launch ends when
// its last worker writes its record; the record has the device's own times. Any other launch ends
// when the host sees a mark behind it. Its times are then the host's, shortened by the profile's
// latencies; launches that share a mark share its time.
//
// Invariants: each launch is reported once. Launches of a lane are reported in order, except that
// either part of a fused launch may be first. Ends never go backwards.
// Threads: one thread polls.

#ifndef GPUSHARE_SRC_CUDA_LANES_COMPLETION_POLLER_H_
#define GPUSHARE_SRC_CUDA_LANES_COMPLETION_POLLER_H_

#include <cstdint>

#include "absl/types/span.h"
#include "src/core/seams/device.h"
#include "src/cuda/driver/places.h"
#include "src/cuda/lanes/busy_time.h"
#include "src/cuda/lanes/cuda_lane.h"
#include "src/cuda/lanes/device_clock.h"

namespace gpushare::cuda {

class CompletionPoller {
 public:
  CompletionPoller(const core::DeviceProfile& profile, const Places& places, BusyTime& busy_time)
      : profile_(profile), places_(places), busy_time_(busy_time) {}

  // Appends the launches of the lane that have ended to `out`, starting at `count`; returns the new
  // count.
  size_t Collect(const DriverApi& api, CudaLane& lane, core::TimeNs now_ns,
                 absl::Span<core::DeviceCompletion> out, size_t count);
  // Reports the lane's launch in segments, whose feed has ended. The caller takes the feed, and
  // then counts the launch as reported.
  void CollectSegments(CudaLane& lane, core::TimeNs now_ns, core::DeviceCompletion& out);
  // Reports every launch of the lane as ended by the loss of the device.
  static size_t CollectLost(CudaLane& lane, int32_t error_code,
                            absl::Span<core::DeviceCompletion> out, size_t count);
  // Sorts completions of all lanes by their ends, oldest first.
  void SortByEnd(absl::Span<core::DeviceCompletion> completions);

 private:
  size_t CollectMarked(CudaLane& lane, core::TimeNs now_ns, uint64_t last,
                       absl::Span<core::DeviceCompletion> out, size_t count);
  // Fills `out` and returns true if the worker launch has written its record.
  bool CollectWorkers(CudaLane& lane, uint64_t sequence, core::TimeNs now_ns,
                      core::DeviceCompletion& out);
  // Corrects the times and adds them to the busy time. A launch starts after the lane's previous
  // one has ended, unless it runs `beside` that one as part of a fused launch.
  void Finish(CudaLane& lane, core::DeviceCompletion& completion, bool beside);

  const core::DeviceProfile& profile_;
  const Places& places_;
  BusyTime& busy_time_;
  DeviceClock clock_;
  core::TimeNs last_end_ns_ = 0;
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_LANES_COMPLETION_POLLER_H_
