// The link between host and device: copies in flight and the rate of each.
//
// Full duplex. In each direction, pinned copies run one after another at the full rate. Pageable
// copies share a smaller total rate, and wait while a pinned copy moves (Baymax 6.1, observation
// 2). Observation 1, that pageable copies alone slow each other only beyond a number of them,
// follows from the total rate: on this GPU one copy already reaches it (docs/hardware.md). The
// duplex rate bounds both directions together.
// Invariant: a direction never exceeds its rate.
// Threads: used under the device's mutex.

#ifndef GPUSHARE_SRC_SIM_PHYSICS_LINK_H_
#define GPUSHARE_SRC_SIM_PHYSICS_LINK_H_

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
    core::TimeNs start_ns = core::kNever;  // when its first byte moves
  };

  void Add(core::TimeNs now, const Copy& copy);
  // Removes a copy, finished or not.
  void Remove(core::TimeNs now, int32_t launch);
  // Ends one copy that is due at `now`; false if none is.
  bool TakeFinished(core::TimeNs now, Copy& finished);
  core::TimeNs NextEventNs() const { return next_ns_; }
  // Directions of the pinned copies in flight.
  core::LinkUse Use() const;
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

#endif  // GPUSHARE_SRC_SIM_PHYSICS_LINK_H_
