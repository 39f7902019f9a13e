// Counts busy SM time as a union: two launches on one group of SMs count once while they overlap.
//
// Where in the flow: the completion poller adds each launch that it reports. Launches arrive in
// about the order of their ends, so each group needs only one "busy until" time.
// Threads: the polling thread calls Add; any thread calls Total.

#ifndef GPUSHARE_SRC_CUDA_LANES_BUSY_TIME_H_
#define GPUSHARE_SRC_CUDA_LANES_BUSY_TIME_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "src/core/seams/device.h"

namespace gpushare::cuda {

class BusyTime {
 public:
  BusyTime(int32_t groups, int32_t sms_per_group, int32_t remainder)
      : groups_(std::min<int32_t>(groups, kGroupsMax - 1)),
        sms_per_group_(sms_per_group),
        remainder_(remainder) {}

  void Add(const core::PlaceSpec& place, core::TimeNs start_ns, core::TimeNs end_ns) {
    const int32_t end = std::min(groups_, place.first_group + place.groups);
    int64_t busy = 0;
    for (int32_t group = place.first_group; group < end; ++group) {
      busy += Extend(group, start_ns, end_ns) * sms_per_group_;
    }
    if (place.with_remainder) busy += Extend(groups_, start_ns, end_ns) * remainder_;
    total_.fetch_add(busy, std::memory_order_relaxed);
  }
  int64_t Total() const { return total_.load(std::memory_order_relaxed); }

 private:
  // A GPU of 256 SMs in groups of 2 has 128 groups, more than any GPU today; one more entry holds
  // the remainder.
  static constexpr int32_t kGroupsMax = 129;

  int64_t Extend(int32_t group, core::TimeNs start_ns, core::TimeNs end_ns) {
    core::TimeNs& until = until_ns_[static_cast<size_t>(group)];
    const int64_t added = std::max<int64_t>(0, end_ns - std::max(start_ns, until));
    until = std::max(until, end_ns);
    return added;
  }

  const int32_t groups_;
  const int32_t sms_per_group_;
  const int32_t remainder_;
  std::array<core::TimeNs, kGroupsMax> until_ns_{};
  std::atomic<int64_t> total_{0};
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_LANES_BUSY_TIME_H_
