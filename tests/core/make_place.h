// A place under the lowest index that the device has not given to another one.

#ifndef GPUSHARE_TESTS_CORE_MAKE_PLACE_H_
#define GPUSHARE_TESTS_CORE_MAKE_PLACE_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/core/base/limits.h"
#include "src/core/seams/device.h"

namespace gpushare::core {

inline absl::StatusOr<PlaceIndex> MakePlace(Device& device, const PlaceSpec& spec) {
  for (PlaceIndex place = kWholeDevice + 1; place < kMaxPlaces; ++place) {
    const absl::Status status = device.CreatePlace(place, spec);
    if (status.ok()) return place;
    if (!absl::IsAlreadyExists(status)) return status;
  }
  return absl::ResourceExhaustedError("Every index of a place is taken.");
}

}  // namespace gpushare::core

#endif  // GPUSHARE_TESTS_CORE_MAKE_PLACE_H_
