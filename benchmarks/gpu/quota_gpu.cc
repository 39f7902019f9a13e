// See quota_gpu.h.

#include "benchmarks/gpu/quota_gpu.h"

#include <cuda_runtime_api.h>

#include <cstdio>
#include <utility>

#include "benchmarks/gpu/quota.h"
#include "src/cuda/cuda_device.h"

namespace gpushare::quota {

Gpu::Gpu() {
  auto device = cuda::MakeCudaDevice(0, core::DeviceProfile());
  Require(device.status());
  device_ = *std::move(device);
  Cuda(cudaSetDevice(0), "cudaSetDevice");
  Require(launcher_.Init());
  whole_.index = MakeLane(core::kWholeDevice, core::LanePriority::kLow, true);
}

std::optional<core::PlaceSpec> Gpu::SpecOf(int sms) const {
  const core::DeviceProfile& profile = device_->capabilities().profile;
  for (const bool with_remainder : {false, true}) {
    const int rest = sms - (with_remainder ? profile.Remainder() : 0);
    if (rest < 0 || rest % profile.sm_granularity != 0) continue;
    const int groups = rest / profile.sm_granularity;
    if (groups <= profile.Groups()) return core::PlaceSpec{0, groups, with_remainder};
  }
  return std::nullopt;
}

bool Gpu::MakePacked(int sms) {
  if (packed_.count(sms) != 0) return true;
  const std::optional<core::PlaceSpec> spec = SpecOf(sms);
  if (!spec.has_value()) {
    std::fprintf(stderr, "no partition has %d SMs: this quota is left out\n", sms);
    return false;
  }
  const auto place = device_->CreatePlace(*spec);
  Require(place.status());
  packed_[sms].index = MakeLane(*place, core::LanePriority::kLow, true);
  return true;
}

void Gpu::MakeLcStreams(int sms) {
  if (lc_whole_ == nullptr) lc_whole_ = MakeLcStream(core::kWholeDevice);
  if (lc_rest_.count(sms) != 0) return;
  const core::PlaceSpec taken = SpecOf(sms).value();
  const core::DeviceProfile& profile = device_->capabilities().profile;
  const auto place =
      device_->CreatePlace({taken.groups, profile.Groups() - taken.groups, !taken.with_remainder});
  Require(place.status());
  lc_rest_[sms] = MakeLcStream(*place);
}

CUstream_st* Gpu::MakeLcStream(core::PlaceIndex place) {
  const core::LaneIndex lane = MakeLane(place, core::LanePriority::kHigh, false);
  void* const stream = device_->LaneStream(lane);
  if (stream == nullptr) Fail("a lane of the device has no stream");
  return static_cast<CUstream_st*>(stream);
}

core::LaneIndex Gpu::MakeLane(core::PlaceIndex place, core::LanePriority priority, bool evictable) {
  const auto lane =
      device_->CreateLane({.place = place, .priority = priority, .evictable = evictable});
  Require(lane.status());
  return *lane;
}

}  // namespace gpushare::quota
