// From words in mapped memory and marks to completions.
//
// A worker launch's end is the record that its last worker wrote, with the device's own times.
// Every other launch ends when a mark of its lane is reached; its times are the host's view,
// shortened by the known latencies, and launches that share one mark share its time. Invariants:
// each launch is reported once, those of a lane in order, and ends never go backwards. Threads: one
// polls.

#ifndef GPUSHARE_SRC_CUDA_COMPLETION_POLLER_H_
#define GPUSHARE_SRC_CUDA_COMPLETION_POLLER_H_

#include <cstdint>

#include "absl/types/span.h"
#include "src/core/seams/device.h"
#include "src/cuda/busy_time.h"
#include "src/cuda/cuda_lane.h"
#include "src/cuda/device_clock.h"
#include "src/cuda/places.h"

namespace gpushare::cuda {

class CompletionPoller {
 public:
  CompletionPoller(const core::DeviceProfile& profile, const Places& places, BusyTime& busy_time)
      : profile_(profile), places_(places), busy_time_(busy_time) {}

  // Appends what is done on the lane to `out` from `count` on; returns the new count.
  size_t Collect(const DriverApi& api, CudaLane& lane, core::TimeNs now_ns,
                 absl::Span<core::DeviceCompletion> out, size_t count);
  // Every launch of the lane ends with the device.
  static size_t CollectLost(CudaLane& lane, int32_t error_code,
                            absl::Span<core::DeviceCompletion> out, size_t count);
  // Oldest first, across lanes.
  void Order(absl::Span<core::DeviceCompletion> completions);

  DeviceClock& clock() { return clock_; }

 private:
  size_t CollectMarked(CudaLane& lane, core::TimeNs now_ns, uint64_t last,
                       absl::Span<core::DeviceCompletion> out, size_t count);
  // The worker launch, if it has left its record.
  bool CollectWorkers(CudaLane& lane, uint64_t sequence, core::TimeNs now_ns,
                      core::DeviceCompletion& out);
  // A launch begins after the lane's last one, unless it runs `beside` it, in one fused launch.
  void Finish(CudaLane& lane, core::DeviceCompletion& completion, bool beside);

  const core::DeviceProfile& profile_;
  const Places& places_;
  BusyTime& busy_time_;
  DeviceClock clock_;
  core::TimeNs last_end_ns_ = 0;
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_COMPLETION_POLLER_H_
