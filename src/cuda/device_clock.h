// From the GPU's %globaltimer to the host's monotonic clock.
//
// Whenever the host sees a stamp, host time minus stamp is an upper bound of the offset between the
// two; the least bound of the last two windows is the offset, short of the time that a word takes
// to reach the host. Windows follow the drift between the clocks. Threads: the one that polls.

#ifndef GPUSHARE_SRC_CUDA_DEVICE_CLOCK_H_
#define GPUSHARE_SRC_CUDA_DEVICE_CLOCK_H_

#include <algorithm>
#include <cstdint>
#include <limits>

#include "src/core/base/types.h"

namespace gpushare::cuda {

class DeviceClock {
 public:
  // The host saw, at `now_ns`, that the device had been at `globaltimer_ns`.
  void Observe(uint64_t globaltimer_ns, core::TimeNs now_ns) {
    if (now_ns - window_start_ns_ > kWindowNs) {
      before_ = window_;  // never unknown: a window begins with an observation
      window_ = kUnknown;
      window_start_ns_ = now_ns;
    }
    window_ = std::min(window_, now_ns - static_cast<int64_t>(globaltimer_ns));
  }

  core::TimeNs HostTime(uint64_t globaltimer_ns) const {
    return static_cast<int64_t>(globaltimer_ns) + std::min(window_, before_) - kWordLatencyNs;
  }

 private:
  // The clocks drift by 11 us a second (docs/hardware.md): 1 us in a window.
  static constexpr int64_t kWindowNs = 100'000'000;
  // A word that the GPU writes to mapped memory needs about so long (MEASURED: 1.66 us there and
  // back).
  static constexpr int64_t kWordLatencyNs = 800;
  static constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();

  int64_t window_ = kUnknown;
  int64_t before_ = kUnknown;
  core::TimeNs window_start_ns_ = 0;
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_DEVICE_CLOCK_H_
