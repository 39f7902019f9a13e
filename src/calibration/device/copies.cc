// Copies of a device; see copies.h.

#include "src/calibration/device/copies.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/calibration/base/statistics.h"
#include "src/calibration/launch/repeat.h"
#include "src/calibration/launch/request.h"
#include "src/core/base/status.h"
#include "src/models/samples/row_times.h"

namespace gpushare::models {
namespace {

using core::CopyDirection;

// Large against the latency, and small against the rate.
constexpr int64_t kLargeBytes = int64_t{64} << 20;
constexpr int64_t kSmallBytes = int64_t{64} << 10;
// Sizes from 4 KB to 64 MB in eight steps. Models are fitted to four times as many.
constexpr int64_t kSizeLeastBytes = int64_t{4} << 10;
constexpr int64_t kSizeStep = 4;
constexpr int64_t kFineStepFromBytes = int64_t{1} << 20;
constexpr int kFineSteps = 4;  // in an octave
// The first copies of a size touch its pages and bring the source into the host's caches: on an
// H200's host the third pageable copy was still 10 % slower than the fourth.
constexpr int kCopyWarmUps = 3;
// A copy in contention: its sizes, and how much longer the copy beside it is. A pageable copy moves
// at about a fifth of the rate of a pinned one.
constexpr int64_t kOpposedLeastBytes = int64_t{64} << 10;
constexpr int64_t kOpposedLonger = 8;
constexpr int64_t kOpposedOtherLeastBytes = int64_t{16} << 20;
// Ten times what the memory of any GPU moves.
constexpr double kRateMaxBytesPerNs = 1e5;

// Sizes whose durations models are fitted to, in a factor of 2 to 1 MB and in quarter-octaves
// above: the rate of pageable copies falls where the host's caches no longer hold the source.
std::vector<int64_t> SampledSizes(int64_t bytes_most) {
  std::vector<int64_t> sizes;
  for (int64_t bytes = kSizeLeastBytes; bytes <= bytes_most; bytes *= 2) {
    sizes.push_back(bytes);
    for (int step = 1; bytes >= kFineStepFromBytes && step < kFineSteps; ++step) {
      const auto next = static_cast<int64_t>(static_cast<double>(bytes) *
                                             std::exp2(static_cast<double>(step) / kFineSteps));
      const int64_t between = next / kSizeLeastBytes * kSizeLeastBytes;
      if (between <= bytes_most) sizes.push_back(between);
    }
  }
  return sizes;
}

bool IsInProfile(int64_t bytes) {
  int64_t known = kSizeLeastBytes;
  while (known < bytes) known *= kSizeStep;
  return known == bytes && bytes <= kLargeBytes;
}

}  // namespace

absl::StatusOr<double> CopyMeter::TimeCopies(absl::Span<const Copy> copies, int64_t bytes) {
  for (size_t i = 0; i < copies.size(); ++i) {
    GPUSHARE_RETURN_IF_ERROR(
        timer_.Begin(BufferCopyRequest(options_.buffers, copies[i], bytes, LaneOf(i))));
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
                            RepeatsOf<1>(timer_, options_.repeats, take, kCopyWarmUps));
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
  const int64_t most = options_.buffers.bytes / 2;
  for (const int64_t bytes : SampledSizes(most)) {
    if (!IsInProfile(bytes)) {
      GPUSHARE_RETURN_IF_ERROR(MeasureSize({to_device}, bytes).status());
      GPUSHARE_RETURN_IF_ERROR(MeasureSize({to_host}, bytes).status());
    }
    GPUSHARE_RETURN_IF_ERROR(MeasureSize({to_device, to_host}, bytes).status());
  }
  if (!Has(true)) return absl::OkStatus();
  for (int64_t bytes = kOpposedLeastBytes; bytes <= most / kOpposedLonger; bytes *= 2) {
    GPUSHARE_RETURN_IF_ERROR(MeasureOpposed(to_device, bytes));
    GPUSHARE_RETURN_IF_ERROR(MeasureOpposed(to_host, bytes));
  }
  return absl::OkStatus();
}

// The other copy begins first, because a pageable copy keeps the host until it is done. A repeat
// that outlasted it does not count.
absl::Status CopyMeter::MeasureOpposed(const Copy& copy, int64_t bytes) {
  const bool to_device = copy.direction == CopyDirection::kHostToDevice;
  const Copy other{to_device ? CopyDirection::kDeviceToHost : CopyDirection::kHostToDevice, true};
  SampleRow row;
  row.what = SampleKind::kCopyBeside;
  row.to_device = to_device;
  row.pinned = copy.pinned;
  row.bytes = bytes;
  row.neighbour_bytes = std::min(options_.buffers.bytes / 2,
                                 std::max(kOpposedOtherLeastBytes, kOpposedLonger * bytes));
  const auto take = [&]() -> absl::StatusOr<Sample<2>> {
    GPUSHARE_ASSIGN_OR_RETURN(const double alone, TimeCopies({copy}, bytes));
    GPUSHARE_RETURN_IF_ERROR(
        timer_.Begin(BufferCopyRequest(options_.buffers, other, row.neighbour_bytes, LaneOf(0))));
    GPUSHARE_RETURN_IF_ERROR(
        timer_.Begin(BufferCopyRequest(options_.buffers, copy, bytes, LaneOf(1))));
    GPUSHARE_ASSIGN_OR_RETURN(const std::vector<TimedLaunch> done, timer_.Finish());
    if (done[1].seen_ns > done[0].seen_ns) return Sample<2>{};
    return Sample<2>{alone, done[1].round_trip_ns()};
  };
  GPUSHARE_ASSIGN_OR_RETURN(auto repeats,
                            RepeatsOf<2>(timer_, options_.repeats, take, kCopyWarmUps));
  if (repeats[1].empty()) return absl::OkStatus();
  row.alone_ns = std::move(repeats[0]);
  row.ns = std::move(repeats[1]);
  options_.sample(row);
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
  if (bytes < 4 * kSmallBytes || (!Has(true) && !Has(false))) {
    notes_.push_back("No buffers are given for copies, whose rates are those of the base profile.");
    return absl::OkStatus();
  }
  if (Has(false)) GPUSHARE_RETURN_IF_ERROR(MeasurePageable(bytes, device));
  if (Has(true)) GPUSHARE_RETURN_IF_ERROR(MeasurePinned(bytes, device));
  if (!options_.sample) return absl::OkStatus();
  for (const bool pinned : {false, true}) {
    if (Has(pinned)) GPUSHARE_RETURN_IF_ERROR(MeasureSamples(pinned));
  }
  return absl::OkStatus();
}

}  // namespace gpushare::models
