// What every device checks of a launch before it touches anything: the arguments alone.
//
// All three devices use it, so they refuse the same requests with the same messages. A device adds
// the checks of its own lanes, places and functions.
//
// Threads: any. Allocates only the message of a failure.

#ifndef GPUSHARE_SRC_CORE_CHECKS_LAUNCH_CHECK_H_
#define GPUSHARE_SRC_CORE_CHECKS_LAUNCH_CHECK_H_

#include "absl/status/status.h"
#include "src/core/seams/device.h"

namespace gpushare::core {

// INVALID_ARGUMENT: no launch identifier; no kernel where the form needs one; block tasks, slice,
// workers, counter, copy or arguments out of range; a fused launch whose parts are not those of its
// pair, or share an identifier or a counter. Opaque work may come without a host function:
// the end of a region, whose work is on the lane's stream already.
absl::Status CheckLaunchRequest(const LaunchRequest& request);

// INVALID_ARGUMENT: empty, negative or beyond the device; without partitions only the whole device.
absl::Status CheckPlaceSpec(const PlaceSpec& spec, const DeviceProfile& profile);
// The same for a new place under this index; an index that no place but the whole device may have
// is INVALID_ARGUMENT too.
absl::Status CheckNewPlace(PlaceIndex place, const PlaceSpec& spec, const DeviceProfile& profile);
// What CreatePlace answers for an index that is taken, and DestroyPlace for one that is free.
absl::Status PlaceExists(PlaceIndex place);
absl::Status NoSuchPlace(PlaceIndex place);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_CHECKS_LAUNCH_CHECK_H_
