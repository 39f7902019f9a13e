// Places: the whole device, and green contexts over unions of SM groups.
//
// The device is split once into the smallest groups that the hardware grants: on an H200, 15 groups
// of 8 SMs and a remainder of 12. A place is a contiguous range of groups, optionally with the
// remainder. Unions are made ahead and may overlap, because a green context only confines work and
// reserves nothing.
// Invariants: place 0 is the whole device. A place never moves in memory.
// Threads: one at a time makes and destroys places; any reads one that has lanes.

#ifndef GPUSHARE_SRC_CUDA_DRIVER_PLACES_H_
#define GPUSHARE_SRC_CUDA_DRIVER_PLACES_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/core/base/limits.h"
#include "src/core/seams/device.h"
#include "src/cuda/driver/context.h"

namespace gpushare::cuda {

struct Place {
  core::PlaceSpec spec;
  int32_t sms = 0;
  CUgreenCtx green = nullptr;  // null for the whole device
  CUcontext context = nullptr;
};

class Places {
 public:
  explicit Places(const Context& context) : context_(context) {}
  ~Places();
  Places(const Places&) = delete;
  Places& operator=(const Places&) = delete;

  // Splits the device.
  // Errors: UNIMPLEMENTED if the driver or the GPU has no green contexts; then place 0 is the only
  // place.
  absl::Status Split(int32_t sm_count);

  int32_t granularity() const { return granularity_; }
  int32_t groups() const { return static_cast<int32_t>(groups_.size()); }
  // Every place has an index below this one. Some of these indices may have no place.
  int32_t count() const { return count_.load(std::memory_order_acquire); }
  bool Has(core::PlaceIndex place) const {
    return place >= 0 && place < count() && places_[static_cast<size_t>(place)].context != nullptr;
  }
  // How many there are, the whole device included.
  int32_t made() const;
  const Place& place(core::PlaceIndex place) const { return places_[static_cast<size_t>(place)]; }

  // `index` has no place yet.
  absl::Status Create(core::PlaceIndex index, const core::PlaceSpec& spec);
  // The place has no stream and no graph instance any more.
  void Destroy(core::PlaceIndex index);
  // A stream whose work stays in the place. `priority` is CUDA's number.
  absl::StatusOr<CUstream> MakeStream(core::PlaceIndex place, int priority) const;

  void Leak() { leaked_ = true; }

 private:
  const Context& context_;
  bool leaked_ = false;
  int32_t sm_count_ = 0;
  int32_t granularity_ = 0;
  std::vector<CUdevResource> groups_;
  CUdevResource remainder_ = {};
  std::array<Place, core::kMaxPlaces> places_;
  std::atomic<int32_t> count_{1};
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_DRIVER_PLACES_H_
