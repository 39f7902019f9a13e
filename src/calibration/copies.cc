// Copies of a device; see copies.h.

#include "src/calibration/copies.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/calibration/repeat.h"
#include "src/calibration/request.h"
#include "src/calibration/statistics.h"
#include "src/core/base/status.h"
#include "src/models/samples/row_times.h"

namespace gpushare::models {
namespace {

using core::CopyDirection;

// Large against the latency, and small against the rate.
constexpr int64_t kLargeBytes = int64_t{64} << 20;
constexpr int64_t kSmallBytes = int64_t{64} << 10;
// Sizes from 4 KB to 64 MB in eight steps. Models are fitted to twice as many.
constexpr int64_t kSizeLeastBytes = int64_t{4} << 10;
constexpr int64_t kSizeStep = 4;
constexpr int64_t kFineSizeStep = 2;
// Ten times what the memory of any GPU moves.
constexpr double kRateMaxBytesPerNs = 1e5;

void* At(void* buffer, int64_t offset) {
  return buffer == nullptr ? nullptr : static_cast<char*>(buffer) + offset;
}

}  // namespace

bool CopyMeter::HasBuffers(bool pinned) const {
  const CalibrationBuffers& buffers = options_.buffers;
  const void* const host = pinned ? buffers.pinned_host : buffers.pageable_host;
  return timer_.device().capabilities().simulated || (buffers.device != nullptr && host != nullptr);
}

// Copies to the host use the second halves of the buffers, so that both directions can run
// together.
core::LaunchRequest CopyMeter::RequestOf(const Copy& copy, core::LaneIndex lane,
                                         int64_t bytes) const {
  const CalibrationBuffers& buffers = options_.buffers;
  const bool to_device = copy.direction == CopyDirection::kHostToDevice;
  const int64_t offset = to_device ? 0 : buffers.bytes / 2;
  void* const host = At(copy.pinned ? buffers.pinned_host : buffers.pageable_host, offset);
  void* const device = At(buffers.device, offset);
  core::CopyRequest request;
  request.direction = copy.direction;
  request.pinned = copy.pinned;
  request.bytes = bytes;
  request.destination = to_device ? device : host;
  request.source = to_device ? host : device;
  return CopyLaunchRequest(request, lane);
}

absl::StatusOr<double> CopyMeter::TimeCopies(absl::Span<const Copy> copies, int64_t bytes) {
  for (size_t i = 0; i < copies.size(); ++i) {
    const core::LaneIndex lane =
        lanes_.Pick(core::kWholeDevice, core::LaneClass::kCopy, static_cast<uint32_t>(i));
    GPUSHARE_RETURN_IF_ERROR(timer_.Begin(RequestOf(copies[i], lane, bytes)));
  }
  GPUSHARE_ASSIGN_OR_RETURN(const std::vector<TimedLaunch> done, timer_.Finish());
  core::TimeNs last = 0;
  for (const TimedLaunch& timed : done) last = std::max(last, timed.seen_ns);
  return static_cast<double>(last - done.front().called_ns);
}

// From the difference of a large copy and a quarter of it, which is free of latencies.
absl::StatusOr<double> CopyMeter::RateOf(absl::Span<const Copy> copies, int64_t bytes) {
  const int64_t quarter = bytes / 4;
  const auto moved = static_cast<double>((bytes - quarter) * static_cast<int64_t>(copies.size()));
  const auto take = [&]() -> absl::StatusOr<Sample<1>> {
    GPUSHARE_ASSIGN_OR_RETURN(const double small, TimeCopies(copies, quarter));
    GPUSHARE_ASSIGN_OR_RETURN(const double large, TimeCopies(copies, bytes));
    return Sample<1>{moved / std::max(1.0, large - small)};
  };
  // The warm-up touches the pages and wakes the link from its idle state.
  GPUSHARE_ASSIGN_OR_RETURN(const auto medians,
                            MediansOf<1>(timer_, options_.repeats, take, /*warm_ups=*/1));
  if (medians[0] <= kRateMaxBytesPerNs) return medians[0];
  return absl::FailedPreconditionError(absl::StrCat(
      "A copy of ", bytes, " bytes takes no time, and a device on which work takes no ",
      "time has nothing to calibrate."));
}

absl::StatusOr<double> CopyMeter::MeasureSize(absl::Span<const Copy> copies, int64_t bytes) {
  const auto take = [&]() -> absl::StatusOr<Sample<1>> {
    GPUSHARE_ASSIGN_OR_RETURN(const double one, TimeCopies(copies, bytes));
    return Sample<1>{one};
  };
  GPUSHARE_ASSIGN_OR_RETURN(auto repeats,
                            RepeatsOf<1>(timer_, options_.repeats, take, /*warm_ups=*/1));
  if (options_.sample) {
    SampleRow row;
    row.what = SampleKind::kCopy;
    row.to_device = copies[0].direction == CopyDirection::kHostToDevice;
    row.pinned = copies[0].pinned;
    row.bytes = bytes;
    row.both_ways = copies.size() > 1;
    row.ns = repeats[0];
    options_.sample(row);
  }
  return Median(std::move(repeats[0]));
}

absl::Status CopyMeter::MeasureSizes(const Copy& copy, int64_t bytes_most) {
  for (int64_t bytes = kSizeLeastBytes; bytes <= bytes_most; bytes *= kSizeStep) {
    GPUSHARE_ASSIGN_OR_RETURN(const double median, MeasureSize({copy}, bytes));
    points_.push_back(
        {copy.direction == CopyDirection::kHostToDevice, copy.pinned, bytes, std::llround(median)});
  }
  return absl::OkStatus();
}

// Sizes between those of the profile, up to half of the buffers, and both directions at once.
absl::Status CopyMeter::MeasureSamples(bool pinned) {
  const Copy to_device{CopyDirection::kHostToDevice, pinned};
  const Copy to_host{CopyDirection::kDeviceToHost, pinned};
  int64_t known = kSizeLeastBytes;
  for (int64_t bytes = kSizeLeastBytes; bytes <= options_.buffers.bytes / 2;
       bytes *= kFineSizeStep) {
    const bool in_profile = bytes == known && bytes <= kLargeBytes;
    if (in_profile) known *= kSizeStep;
    if (!in_profile) GPUSHARE_RETURN_IF_ERROR(MeasureSize({to_device}, bytes).status());
    if (!in_profile) GPUSHARE_RETURN_IF_ERROR(MeasureSize({to_host}, bytes).status());
    GPUSHARE_RETURN_IF_ERROR(MeasureSize({to_device, to_host}, bytes).status());
  }
  return absl::OkStatus();
}

absl::Status CopyMeter::MeasurePageable(int64_t bytes, core::DeviceProfile& device) {
  constexpr Copy kToDevice{CopyDirection::kHostToDevice, false};
  constexpr Copy kToHost{CopyDirection::kDeviceToHost, false};
  GPUSHARE_ASSIGN_OR_RETURN(device.pageable_h2d_bytes_per_ns, RateOf({kToDevice}, bytes));
  GPUSHARE_ASSIGN_OR_RETURN(device.pageable_d2h_bytes_per_ns, RateOf({kToHost}, bytes));
  GPUSHARE_RETURN_IF_ERROR(MeasureSizes(kToDevice, bytes));
  return MeasureSizes(kToHost, bytes);
}

absl::Status CopyMeter::MeasurePinned(int64_t bytes, core::DeviceProfile& device) {
  constexpr Copy kToDevice{CopyDirection::kHostToDevice, true};
  constexpr Copy kToHost{CopyDirection::kDeviceToHost, true};
  GPUSHARE_ASSIGN_OR_RETURN(const double to_device, RateOf({kToDevice}, bytes));
  GPUSHARE_ASSIGN_OR_RETURN(const double to_host, RateOf({kToHost}, bytes));
  GPUSHARE_ASSIGN_OR_RETURN(device.duplex_bytes_per_ns, RateOf({kToDevice, kToHost}, bytes));
  // A profile has one rate for both directions: the slower, so that no copy is predicted too early.
  device.pinned_bytes_per_ns = std::min(to_device, to_host);
  GPUSHARE_RETURN_IF_ERROR(MeasureSizes(kToDevice, bytes));
  GPUSHARE_RETURN_IF_ERROR(MeasureSizes(kToHost, bytes));
  return MeasureLatency(device);
}

absl::Status CopyMeter::MeasureLatency(core::DeviceProfile& device) {
  const auto completion_ns = static_cast<double>(device.completion_latency_ns);
  const double transfer_ns = static_cast<double>(kSmallBytes) / device.pinned_bytes_per_ns;
  const auto take = [&]() -> absl::StatusOr<Sample<1>> {
    GPUSHARE_ASSIGN_OR_RETURN(const double one,
                              TimeCopies({{CopyDirection::kHostToDevice, true}}, kSmallBytes));
    return Sample<1>{one - completion_ns - transfer_ns};
  };
  GPUSHARE_ASSIGN_OR_RETURN(const auto medians,
                            MediansOf<1>(timer_, kLatencySamples * options_.repeats, take));
  SetMeasured(medians[0], device.copy_latency_ns);
  return absl::OkStatus();
}

absl::Status CopyMeter::Measure(core::DeviceProfile& device) {
  const bool simulated = timer_.device().capabilities().simulated;
  const int64_t half = options_.buffers.bytes / 2;
  const int64_t bytes =
      simulated && options_.buffers.bytes == 0 ? kLargeBytes : std::min(kLargeBytes, half);
  if (bytes < 4 * kSmallBytes || (!HasBuffers(true) && !HasBuffers(false))) {
    notes_.push_back("No buffers are given for copies, whose rates are those of the base profile.");
    return absl::OkStatus();
  }
  if (HasBuffers(false)) GPUSHARE_RETURN_IF_ERROR(MeasurePageable(bytes, device));
  if (HasBuffers(true)) GPUSHARE_RETURN_IF_ERROR(MeasurePinned(bytes, device));
  if (!options_.sample) return absl::OkStatus();
  for (const bool pinned : {false, true}) {
    if (HasBuffers(pinned)) GPUSHARE_RETURN_IF_ERROR(MeasureSamples(pinned));
  }
  return absl::OkStatus();
}

}  // namespace gpushare::models
