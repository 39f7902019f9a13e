// The link between host and device: copies in flight and the rate of each.
//
// Full duplex. In each direction pinned copies go one after another at the full rate; pageable ones
// share a smaller total rate, and wait while a pinned copy moves (Baymax 6.1, observation 2;
// observation 1, that pageable copies alone slow each other only beyond a number of them, is the
// total rate: on this GPU one copy reaches it already, hardware.md). Both directions together are
// bounded by the duplex rate. Invariant: a direction never moves more than its rate. Threads: under
// the device's mutex.

#ifndef GPUSHARE_SRC_SIM_LINK_H_
#define GPUSHARE_SRC_SIM_LINK_H_

#include <array>
#include <cstdint>
#include <vector>

#include "src/core/base/types.h"
#include "src/core/seams/device_profile.h"

namespace gpushare::sim {

class Link {
 public:
  Link(const core::DeviceProfile& profile, size_t copies_max);

  struct Copy {
    int32_t launch = -1;
    core::CopyDirection direction = core::CopyDirection::kNone;
    bool pinned = true;
    double bytes_left = 0;
    double slowness = 1;                   // divides its rate
    double rate = 0;                       // bytes per ns
    core::TimeNs start_ns = core::kNever;  // first byte
  };

  void Add(core::TimeNs now, const Copy& copy);
  // Takes a copy out, finished or not.
  void Remove(core::TimeNs now, int32_t launch);
  // Ends one copy that is due at `now`; false when none is.
  bool TakeFinished(core::TimeNs now, Copy& finished);
  core::TimeNs NextEventNs() const { return next_ns_; }
  void Clear();

 private:
  void Sync(core::TimeNs now);
  void SetRates(core::TimeNs now);

  core::DeviceProfile profile_;
  std::vector<Copy> copies_;  // in order of arrival
  core::TimeNs synced_ns_ = 0;
  core::TimeNs next_ns_ = core::kNever;
};

}  // namespace gpushare::sim

#endif  // GPUSHARE_SRC_SIM_LINK_H_
