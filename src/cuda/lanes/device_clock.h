// Converts the GPU's %globaltimer to the host's monotonic clock.
//
// When the host sees a device time stamp, host time minus stamp is an upper bound of the clocks'
// offset. The smallest bound of the last two windows, less the time that a word needs to reach the
// host, serves as the offset. Windows let the offset follow the drift of the clocks.
// Threads: the polling thread.

#ifndef GPUSHARE_SRC_CUDA_LANES_DEVICE_CLOCK_H_
#define GPUSHARE_SRC_CUDA_LANES_DEVICE_CLOCK_H_

#include <algorithm>
#include <cstdint>
#include <limits>

#include "src/core/base/types.h"

namespace gpushare::cuda {

class DeviceClock {
 public:
  // Call when the host sees, at `now_ns`, a word that the device wrote at `globaltimer_ns`.
  void Observe(uint64_t globaltimer_ns, core::TimeNs now_ns) {
    if (now_ns - window_start_ns_ > kWindowNs) {
      before_ = window_;  // never unknown: a window starts with an observation
      window_ = kUnknown;
      window_start_ns_ = now_ns;
    }
    window_ = std::min(window_, now_ns - static_cast<int64_t>(globaltimer_ns));
  }

  core::TimeNs HostTime(uint64_t globaltimer_ns) const {
    return static_cast<int64_t>(globaltimer_ns) + std::min(window_, before_) - kWordLatencyNs;
  }

 private:
  // The clocks drift by 11 us a second (docs/hardware.md), so by 1 us in a window.
  static constexpr int64_t kWindowNs = 100'000'000;
  // About the time that a GPU's write to mapped memory needs to reach the host: half of the 1.66 us
  // there and back (docs/hardware.md).
  static constexpr int64_t kWordLatencyNs = 800;
  static constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();

  int64_t window_ = kUnknown;
  int64_t before_ = kUnknown;
  core::TimeNs window_start_ns_ = 0;
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_LANES_DEVICE_CLOCK_H_
