// The load of an LC app by its last few queries: what a lull is known by.
//
// The smoothed load (lc_load.h) looks back over half a second. A load that moves faster has lulls
// that it does not see. This one counts the time since the last 4, 8 and 16 arrivals, takes the
// highest rate of the three, and adds two standard errors: k arrivals have one of 1 / sqrt(k). So a
// lull is found after 16 queries, and its end after 4. Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_EVIDENCE_RECENT_ARRIVALS_H_
#define GPUSHARE_SRC_CORE_EVIDENCE_RECENT_ARRIVALS_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "src/core/base/types.h"
#include "src/core/evidence/tuning.h"

namespace gpushare::core {

class RecentArrivals {
 public:
  void Add(TimeNs now_ns) {
    at_ns_[static_cast<size_t>(added_ % kSamples)] = now_ns;
    ++added_;
  }

  // Arrivals a nanosecond, at most. Infinite while too few have been seen; 0 before the first, and
  // where these few are long ago.
  double RateAtMost(TimeNs now_ns) const {
    if (added_ < kSamples) {
      const TimeNs last_ns = added_ == 0 ? 0 : at_ns_[static_cast<size_t>(added_ - 1)];
      const bool silent = added_ == 0 || static_cast<double>(now_ns - last_ns) > kLoadForgottenNs;
      return silent ? 0 : std::numeric_limits<double>::infinity();
    }
    double most = 0;
    for (int64_t count = kSamples / 4; count <= kSamples; count *= 2) {
      const TimeNs since_ns = at_ns_[static_cast<size_t>((added_ - count) % kSamples)];
      const auto passed_ns = static_cast<double>(std::max<int64_t>(1, now_ns - since_ns));
      const auto arrivals = static_cast<double>(count);
      most = std::max(most, (arrivals + 2 * std::sqrt(arrivals)) / passed_ns);
    }
    return most;
  }

 private:
  std::array<TimeNs, kSamples> at_ns_ = {};
  int64_t added_ = 0;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_EVIDENCE_RECENT_ARRIVALS_H_
