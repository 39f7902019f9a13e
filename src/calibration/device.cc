// Measures the primitives of a device. See calibration_device.h.

#include "src/calibration/device.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "src/calibration/kernel.h"
#include "src/core/base/limits.h"

namespace gpushare::models {
namespace {

using core::CopyDirection;

// An eviction on a lane that works ends within the block tasks of one round and this: writes that
// share a busy hardware queue take 11 to 79 us (hardware.md), blocked ones whole kernels.
constexpr int64_t kLaneEvictionFloorNs = 2 * 1000 * 1000;
constexpr int64_t kLaneEvictionRounds = 4;

// Latencies are medians of so many repeats' worth of single launches.
constexpr int kLatencySamples = 3;

// The eviction write's latency is searched in this range, by halving; MEASURED: 4 to 79 us.
constexpr int64_t kWriteLatencyMaxNs = 128 * 1000;
constexpr int kWriteHalvings = 9;
constexpr int kWriteTrials = 7;

// Copies: large against the latency, and small.
constexpr int64_t kCopyLargeBytes = int64_t{64} << 20;
// Ten times what the memory of any GPU moves.
constexpr double kRateMaxBytesPerNs = 1e5;
constexpr int64_t kCopySmallBytes = int64_t{64} << 10;
// Copies over sizes: 4 KB to 64 MB in eight steps.
constexpr int64_t kCopySizeLeast = int64_t{4} << 10;
constexpr int64_t kCopySizeStep = 4;

void Set(double measured, int64_t& field) {
  // On a virtual clock a host call takes no time, and nothing was measured.
  if (measured >= 1) field = std::llround(measured);
}

void* At(void* buffer, int64_t offset) {
  return buffer == nullptr ? nullptr : static_cast<char*>(buffer) + offset;
}

}  // namespace

DeviceMeter::DeviceMeter(LaunchTimer& timer, const core::Lanes& lanes,
                         absl::Span<const CalibrationItem> items, const CalibrationOptions& options,
                         std::vector<std::string>& notes)
    : timer_(timer),
      lanes_(lanes),
      options_(options),
      notes_(notes),
      out_(timer.device().capabilities().profile) {
  worker_lane_ = lanes.Pick(core::kWholeDevice, core::LaneClass::kBe, 0);
  for (const CalibrationItem& item : items) {
    if (any_item_ == nullptr) any_item_ = &item;
    if (item.kernel.evictable && worker_item_ == nullptr) worker_item_ = &item;
    if (item.kernel.kind == core::TaskKind::kGraph && graph_item_ == nullptr) graph_item_ = &item;
  }
  if (!timer.device().capabilities().eviction) worker_item_ = nullptr;
}

absl::StatusOr<core::DeviceProfile> DeviceMeter::Measure() {
  for (auto stage :
       {&DeviceMeter::TestLanes, &DeviceMeter::MeasureLatencies, &DeviceMeter::MeasureGraphLatency,
        &DeviceMeter::MeasureEvictionWrite, &DeviceMeter::MeasureCopies}) {
    if (absl::Status status = timer_.CheckCancelled(); !status.ok()) return status;
    if (absl::Status status = (this->*stage)(); !status.ok()) return status;
  }
  return out_;
}

absl::Status DeviceMeter::TestLanes() {
  if (any_item_ == nullptr) return absl::OkStatus();
  int64_t round_ns = 0;
  if (worker_item_ != nullptr) {
    core::LaunchRequest one = TaskRequest(*worker_item_, core::Form::kWorkers, worker_lane_);
    one.block_count = std::min<int64_t>(
        one.block_count, int64_t{WorkersPerSm(worker_item_->kernel, out_)} * out_.sm_count);
    for (int i = 0; i < 2; ++i) {
      absl::StatusOr<TimedLaunch> timed = timer_.RunOne(one);
      if (!timed.ok()) return timed.status();
      round_ns = std::llround(timed->duration_ns());
    }
  }
  for (core::LaneIndex lane = 0; lane < core::kMaxLanes; ++lane) {
    if (!lanes_.lane(lane).usable.load()) continue;
    if (absl::Status status = timer_.CheckCancelled(); !status.ok()) return status;
    if (absl::Status status = TestLane(lane, round_ns); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status DeviceMeter::TestLane(core::LaneIndex lane, int64_t one_round_ns) {
  const core::LaneSpec& spec = lanes_.lane(lane).spec;
  if (!spec.evictable || worker_item_ == nullptr) {
    if (spec.place != core::kWholeDevice && !any_item_->kernel.confinable) return absl::OkStatus();
    const core::Form form = OrdinaryForm(any_item_->kernel);
    return timer_.RunOne(TaskRequest(*any_item_, form, lane)).status();
  }
  if (spec.place != core::kWholeDevice && !worker_item_->kernel.confinable) return absl::OkStatus();
  core::LaunchRequest request = TaskRequest(*worker_item_, core::Form::kWorkers, lane);
  if (absl::Status status = timer_.Begin(request); !status.ok()) return status;
  // In the first round, once it has begun.
  timer_.WaitUntil(timer_.device().NowNs() + out_.launch_latency_ns + one_round_ns / 4);
  absl::StatusOr<core::TimeNs> called = timer_.Evict(lane);
  if (!called.ok()) return called.status();
  absl::StatusOr<std::vector<TimedLaunch>> left = timer_.Finish();
  if (!left.ok()) return left.status();
  const core::DeviceCompletion& completion = left->front().completion;
  const int64_t latency = completion.end_ns - *called;
  const int64_t bound = kLaneEvictionRounds * one_round_ns + kLaneEvictionFloorNs;
  if (latency <= bound) return absl::OkStatus();
  notes_.push_back(absl::StrCat(
      "Lane ", lane,
      completion.outcome == core::Outcome::kEvicted ? " was evicted" : " was not evicted",
      " and its launch ended ", latency / 1000, " us after the eviction call, and the bound is ",
      bound / 1000, " us: it shares a hardware queue with others."));
  return absl::OkStatus();
}

absl::Status DeviceMeter::MeasureLatencies() {
  if (worker_item_ == nullptr) {
    notes_.push_back(
        "No item is evictable, so that the latencies of launches, completions and evictions are "
        "those of the base profile.");
    return absl::OkStatus();
  }
  // One block task: its start and end are exact device times.
  core::LaunchRequest request = TaskRequest(*worker_item_, core::Form::kWorkers, worker_lane_);
  request.block_count = 1;
  request.workers = 1;
  std::vector<double> issue;
  std::vector<double> launch;
  std::vector<double> completion;
  for (int i = 0; i < kLatencySamples * options_.repeats; ++i) {
    absl::StatusOr<TimedLaunch> one = timer_.RunOne(request);
    if (!one.ok()) return one.status();
    issue.push_back(static_cast<double>(one->issued_ns - one->called_ns));
    launch.push_back(static_cast<double>(one->completion.start_ns - one->called_ns));
    completion.push_back(static_cast<double>(one->seen_ns - one->completion.end_ns));
  }
  Set(Median(issue), out_.launch_issue_ns);
  Set(Median(launch), out_.launch_latency_ns);
  Set(Median(completion), out_.completion_latency_ns);
  return absl::OkStatus();
}

// A graph's own start is the host's view, so its latency is what a round trip takes beyond the
// graph's time among others and the completion.
absl::Status DeviceMeter::MeasureGraphLatency() {
  if (graph_item_ == nullptr) return absl::OkStatus();
  const core::LaneIndex lane = lanes_.Pick(core::kWholeDevice, core::LaneClass::kLc, 0);
  const core::LaunchRequest request = TaskRequest(*graph_item_, core::Form::kGraph, lane);
  std::vector<double> latencies;
  for (int i = 0; i < options_.repeats + 1; ++i) {
    absl::StatusOr<TimedLaunch> one = timer_.RunOne(request);
    if (!one.ok()) return one.status();
    absl::StatusOr<double> each = timer_.TimePerLaunch(request, 2);
    if (!each.ok()) return each.status();
    if (i == 0) continue;  // warm-up
    latencies.push_back(static_cast<double>(one->seen_ns - one->called_ns) - *each -
                        static_cast<double>(out_.completion_latency_ns));
  }
  Set(Median(latencies), out_.graph_launch_latency_ns);
  return absl::OkStatus();
}

absl::StatusOr<bool> DeviceMeter::WriteArrivesWithin(int64_t lead_ns) {
  core::LaunchRequest request = TaskRequest(*worker_item_, core::Form::kWorkers, worker_lane_);
  request.block_count = std::min<int64_t>(
      request.block_count, int64_t{WorkersPerSm(worker_item_->kernel, out_)} * out_.sm_count);
  int seen = 0;
  int counted = 0;
  for (int i = 0; i < kWriteTrials; ++i) {
    core::Device& device = timer_.device();
    // The launch starts a launch latency after its call: whichever is due first is called first.
    const int64_t ahead = lead_ns - out_.launch_latency_ns;
    absl::StatusOr<core::TimeNs> called = 0;
    if (ahead > 0) {
      called = timer_.EvictNext(worker_lane_);
      if (!called.ok()) return called.status();
      timer_.WaitUntil(*called + ahead);
    }
    const core::TimeNs launched = device.NowNs();
    if (absl::Status status = timer_.Begin(request); !status.ok()) return status;
    if (ahead <= 0) {
      timer_.WaitUntil(launched - ahead);
      called = timer_.Evict(worker_lane_);
      if (!called.ok()) return called.status();
    }
    absl::StatusOr<std::vector<TimedLaunch>> done = timer_.Finish();
    if (!done.ok()) return done.status();
    const core::DeviceCompletion& completion = done->front().completion;
    // Where the start is known to be off its plan by a host's hiccup, the trial says nothing.
    if (std::abs(completion.start_ns - *called - lead_ns) > lead_ns / 2 + 1000) continue;
    ++counted;
    seen += completion.block_tasks_done == 0 ? 1 : 0;
  }
  return counted > 0 && 2 * seen > counted;
}

// Workers read the word before they claim: a launch whose word is there leaves without a block
// task. The lead at which half of the launches do is the write's latency.
absl::Status DeviceMeter::MeasureEvictionWrite() {
  if (worker_item_ == nullptr) return absl::OkStatus();
  core::LaunchRequest request = TaskRequest(*worker_item_, core::Form::kWorkers, worker_lane_);
  std::vector<double> issue;
  for (int i = 0; i < kLatencySamples * options_.repeats; ++i) {
    if (absl::Status status = timer_.Begin(request); !status.ok()) return status;
    int64_t issue_ns = 0;
    if (auto called = timer_.Evict(worker_lane_, &issue_ns); !called.ok()) return called.status();
    if (auto done = timer_.Finish(); !done.ok()) return done.status();
    issue.push_back(static_cast<double>(issue_ns));
  }
  Set(Median(issue), out_.eviction_write_issue_ns);
  int64_t low = 0;
  int64_t high = kWriteLatencyMaxNs;
  absl::StatusOr<bool> at_most = WriteArrivesWithin(high);
  if (!at_most.ok()) return at_most.status();
  if (!*at_most) {
    notes_.push_back(absl::StrCat("An eviction write takes longer than ", high / 1000,
                                  " us to be seen; its latency is that of the base profile."));
    return absl::OkStatus();
  }
  for (int i = 0; i < kWriteHalvings; ++i) {
    if (absl::Status status = timer_.CheckCancelled(); !status.ok()) return status;
    const int64_t middle = (low + high) / 2;
    absl::StatusOr<bool> arrives = WriteArrivesWithin(middle);
    if (!arrives.ok()) return arrives.status();
    (*arrives ? high : low) = middle;
  }
  Set(static_cast<double>(low + high) / 2, out_.eviction_write_latency_ns);
  return absl::OkStatus();
}

core::LaunchRequest DeviceMeter::CopyRequestOf(const Copy& copy, core::LaneIndex lane,
                                               int64_t bytes) const {
  core::LaunchRequest request;
  request.lane = lane;
  request.form = core::Form::kMemcpy;
  request.copy.direction = copy.direction;
  request.copy.pinned = copy.pinned;
  request.copy.bytes = bytes;
  const CalibrationBuffers& buffers = options_.buffers;
  const int64_t offset = copy.second_half ? buffers.bytes / 2 : 0;
  void* const host = At(copy.pinned ? buffers.pinned_host : buffers.pageable_host, offset);
  void* const device = At(buffers.device, offset);
  const bool to_device = copy.direction == CopyDirection::kHostToDevice;
  request.copy.destination = to_device ? device : host;
  request.copy.source = to_device ? host : device;
  return request;
}

absl::StatusOr<double> DeviceMeter::TimeCopies(absl::Span<const Copy> copies, int64_t bytes) {
  for (size_t i = 0; i < copies.size(); ++i) {
    const core::LaneIndex lane =
        lanes_.Pick(core::kWholeDevice, core::LaneClass::kCopy, static_cast<uint32_t>(i));
    if (absl::Status status = timer_.Begin(CopyRequestOf(copies[i], lane, bytes)); !status.ok()) {
      return status;
    }
  }
  absl::StatusOr<std::vector<TimedLaunch>> done = timer_.Finish();
  if (!done.ok()) return done.status();
  core::TimeNs last = 0;
  for (const TimedLaunch& timed : *done) last = std::max(last, timed.seen_ns);
  return static_cast<double>(last - done->front().called_ns);
}

// Bytes of all copies a ns, from the difference of a large and a quarter of it: free of latencies.
absl::StatusOr<double> DeviceMeter::RateOf(absl::Span<const Copy> copies, int64_t bytes) {
  std::vector<double> rates;
  const int64_t quarter = bytes / 4;
  for (int i = 0; i < options_.repeats + 1; ++i) {
    if (absl::Status status = timer_.CheckCancelled(); !status.ok()) return status;
    absl::StatusOr<double> small = TimeCopies(copies, quarter);
    if (!small.ok()) return small.status();
    absl::StatusOr<double> large = TimeCopies(copies, bytes);
    if (!large.ok()) return large.status();
    if (i == 0) continue;  // warm-up: pages are touched, the link leaves its idle state
    rates.push_back(static_cast<double>((bytes - quarter) * static_cast<int64_t>(copies.size())) /
                    std::max(1.0, *large - *small));
  }
  const double rate = Median(rates);
  if (rate <= kRateMaxBytesPerNs) return rate;
  return absl::FailedPreconditionError(absl::StrCat(
      "A copy of ", bytes, " bytes takes no time, and a device on which work takes no ",
      "time has nothing to calibrate."));
}

absl::Status DeviceMeter::MeasureCopySizes(const Copy& copy, int64_t bytes_most) {
  for (int64_t bytes = kCopySizeLeast; bytes <= bytes_most; bytes *= kCopySizeStep) {
    std::vector<double> durations;
    for (int i = 0; i < options_.repeats; ++i) {
      if (absl::Status status = timer_.CheckCancelled(); !status.ok()) return status;
      absl::StatusOr<double> one = TimeCopies({copy}, bytes);
      if (!one.ok()) return one.status();
      durations.push_back(*one);
    }
    copies_.push_back({copy.direction == CopyDirection::kHostToDevice, copy.pinned, bytes,
                       std::llround(Median(std::move(durations)))});
  }
  return absl::OkStatus();
}

absl::Status DeviceMeter::MeasureCopies() {
  const bool simulated = timer_.device().capabilities().simulated;
  const CalibrationBuffers& buffers = options_.buffers;
  const int64_t bytes = simulated && buffers.bytes == 0
                            ? kCopyLargeBytes
                            : std::min(kCopyLargeBytes, buffers.bytes / 2);
  auto have = [&](const void* host) {
    return simulated || (buffers.device != nullptr && host != nullptr);
  };
  constexpr Copy kToDevice{CopyDirection::kHostToDevice, true, false};
  constexpr Copy kToHost{CopyDirection::kDeviceToHost, true, true};
  constexpr Copy kPageableToDevice{CopyDirection::kHostToDevice, false, false};
  constexpr Copy kPageableToHost{CopyDirection::kDeviceToHost, false, true};
  if (bytes < 4 * kCopySmallBytes || (!have(buffers.pinned_host) && !have(buffers.pageable_host))) {
    notes_.push_back("No buffers are given for copies, whose rates are those of the base profile.");
    return absl::OkStatus();
  }
  if (have(buffers.pageable_host)) {
    absl::StatusOr<double> there = RateOf({kPageableToDevice}, bytes);
    if (!there.ok()) return there.status();
    absl::StatusOr<double> back = RateOf({kPageableToHost}, bytes);
    if (!back.ok()) return back.status();
    out_.pageable_h2d_bytes_per_ns = *there;
    out_.pageable_d2h_bytes_per_ns = *back;
    for (const Copy& copy : {kPageableToDevice, kPageableToHost}) {
      if (absl::Status status = MeasureCopySizes(copy, bytes); !status.ok()) return status;
    }
  }
  if (!have(buffers.pinned_host)) return absl::OkStatus();
  absl::StatusOr<double> there = RateOf({kToDevice}, bytes);
  if (!there.ok()) return there.status();
  absl::StatusOr<double> back = RateOf({kToHost}, bytes);
  if (!back.ok()) return back.status();
  absl::StatusOr<double> both = RateOf({kToDevice, kToHost}, bytes);
  if (!both.ok()) return both.status();
  // One field for both directions: the slower, so that no copy is promised too early.
  out_.pinned_bytes_per_ns = std::min(*there, *back);
  out_.duplex_bytes_per_ns = *both;
  for (const Copy& copy : {kToDevice, kToHost}) {
    if (absl::Status status = MeasureCopySizes(copy, bytes); !status.ok()) return status;
  }
  std::vector<double> latencies;
  for (int i = 0; i < kLatencySamples * options_.repeats; ++i) {
    absl::StatusOr<double> one = TimeCopies({kToDevice}, kCopySmallBytes);
    if (!one.ok()) return one.status();
    latencies.push_back(*one - static_cast<double>(out_.completion_latency_ns) -
                        static_cast<double>(kCopySmallBytes) / out_.pinned_bytes_per_ns);
  }
  Set(Median(latencies), out_.copy_latency_ns);
  return absl::OkStatus();
}

}  // namespace gpushare::models
