// Primitives of a device; see device.h.

#include "src/calibration/device/device.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "src/calibration/base/statistics.h"
#include "src/calibration/launch/repeat.h"
#include "src/calibration/launch/request.h"
#include "src/core/base/limits.h"
#include "src/core/base/status.h"
#include "src/core/checks/occupancy.h"

namespace gpushare::models {
namespace {

// An eviction on a sound lane ends within the block tasks of one round and this floor. Writes that
// share a busy hardware queue take 11 to 79 us (hardware.md), blocked ones as long as the kernel.
constexpr int64_t kLaneEvictionFloorNs = 2 * 1000 * 1000;
constexpr int64_t kLaneEvictionRounds = 4;

// The latency of the eviction write is searched in this range by halving; hardware.md has 4 to 79
// us.
constexpr int64_t kWriteLatencyMaxNs = 128 * 1000;
constexpr int kWriteHalvings = 9;
constexpr int kWriteTrials = 7;

}  // namespace

DeviceMeter::DeviceMeter(LaunchTimer& timer, const core::Lanes& lanes,
                         absl::Span<const CalibrationItem> items, const CalibrationOptions& options,
                         Notes& notes)
    : timer_(timer),
      lanes_(lanes),
      options_(options),
      notes_(notes),
      copies_(timer, lanes, options, notes),
      out_(timer.device().capabilities().profile) {
  worker_lane_ = lanes.Pick(core::kWholeDevice, core::LaneClass::kBe, 0);
  for (const CalibrationItem& item : items) {
    if (any_item_ == nullptr) any_item_ = &item;
    if (item.kernel.evictable && worker_item_ == nullptr) worker_item_ = &item;
    if (item.kernel.kind() == core::TaskKind::kGraph && graph_item_ == nullptr) graph_item_ = &item;
  }
  if (!timer.device().capabilities().eviction) worker_item_ = nullptr;
}

absl::StatusOr<core::DeviceProfile> DeviceMeter::Measure() {
  for (auto stage : {&DeviceMeter::TestLanes, &DeviceMeter::MeasureLatencies,
                     &DeviceMeter::MeasureGraphLatency, &DeviceMeter::MeasureEvictionWrite}) {
    GPUSHARE_RETURN_IF_ERROR(timer_.CheckCancelled());
    GPUSHARE_RETURN_IF_ERROR((this->*stage)());
  }
  GPUSHARE_RETURN_IF_ERROR(copies_.Measure(out_));
  return out_;
}

core::LaunchRequest DeviceMeter::OneRound() const {
  const int64_t round = int64_t{WorkersPerSm(worker_item_->kernel, out_)} * out_.sm_count;
  return WorkerRequest(*worker_item_, worker_lane_, std::min(worker_item_->block_tasks, round));
}

absl::StatusOr<int64_t> DeviceMeter::TimeOneRound() {
  GPUSHARE_RETURN_IF_ERROR(timer_.RunOne(OneRound()).status());  // warm-up
  GPUSHARE_ASSIGN_OR_RETURN(const TimedLaunch timed, timer_.RunOne(OneRound()));
  return std::llround(timed.duration_ns());
}

absl::Status DeviceMeter::TestLanes() {
  if (any_item_ == nullptr) return absl::OkStatus();
  int64_t round_ns = 0;
  if (worker_item_ != nullptr) {
    GPUSHARE_ASSIGN_OR_RETURN(round_ns, TimeOneRound());
  }
  for (core::LaneIndex lane = 0; lane < core::kMaxLanes; ++lane) {
    if (!lanes_.lane(lane).usable.load()) continue;
    GPUSHARE_RETURN_IF_ERROR(timer_.CheckCancelled());
    GPUSHARE_RETURN_IF_ERROR(TestLane(lane, round_ns));
  }
  return absl::OkStatus();
}

absl::Status DeviceMeter::TestLane(core::LaneIndex lane, int64_t round_ns) {
  const core::LaneSpec& spec = lanes_.lane(lane).spec;
  const bool evicts = spec.evictable && worker_item_ != nullptr;
  const CalibrationItem& item = evicts ? *worker_item_ : *any_item_;
  if (spec.place != core::kWholeDevice && !item.kernel.confinable) return absl::OkStatus();
  if (evicts) return TestEviction(lane, round_ns);
  return timer_.RunOne(OrdinaryRequest(item, lane)).status();
}

absl::Status DeviceMeter::TestEviction(core::LaneIndex lane, int64_t round_ns) {
  GPUSHARE_RETURN_IF_ERROR(timer_.Begin(WorkerRequest(*worker_item_, lane)));
  // In the first round, once it has begun.
  timer_.Wait(out_.launch_latency_ns + round_ns / 4);
  GPUSHARE_ASSIGN_OR_RETURN(const core::TimeNs called, timer_.Evict(lane));
  GPUSHARE_ASSIGN_OR_RETURN(const std::vector<TimedLaunch> left, timer_.Finish());
  const core::DeviceCompletion& completion = left.front().completion;
  const int64_t latency = completion.end_ns - called;
  const int64_t bound = kLaneEvictionRounds * round_ns + kLaneEvictionFloorNs;
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
  const core::LaunchRequest request = WorkerRequest(*worker_item_, worker_lane_, 1, 1);
  const auto take = [&]() -> absl::StatusOr<Sample<3>> {
    GPUSHARE_ASSIGN_OR_RETURN(const TimedLaunch one, timer_.RunOne(request));
    return Sample<3>{static_cast<double>(one.issued_ns - one.called_ns),
                     static_cast<double>(one.completion.start_ns - one.called_ns),
                     static_cast<double>(one.seen_ns - one.completion.end_ns)};
  };
  GPUSHARE_ASSIGN_OR_RETURN(const auto medians,
                            MediansOf<3>(timer_, kLatencySamples * options_.repeats, take));
  SetMeasured(medians[0], out_.launch_issue_ns);
  SetMeasured(medians[1], out_.launch_latency_ns);
  SetMeasured(medians[2], out_.completion_latency_ns);
  return absl::OkStatus();
}

// The device does not report when a graph starts. Its latency is what a round trip takes beyond the
// graph's time among others and the completion.
absl::Status DeviceMeter::MeasureGraphLatency() {
  if (graph_item_ == nullptr) return absl::OkStatus();
  const core::LaneIndex lane = lanes_.Pick(core::kWholeDevice, core::LaneClass::kLc, 0);
  const core::LaunchRequest request = OrdinaryRequest(*graph_item_, lane);
  const auto take = [&]() -> absl::StatusOr<Sample<1>> {
    GPUSHARE_ASSIGN_OR_RETURN(const TimedLaunch one, timer_.RunOne(request));
    GPUSHARE_ASSIGN_OR_RETURN(const double each, timer_.TimePerLaunch(request, 2));
    return Sample<1>{one.round_trip_ns() - each - static_cast<double>(out_.completion_latency_ns)};
  };
  GPUSHARE_ASSIGN_OR_RETURN(const auto medians,
                            MediansOf<1>(timer_, options_.repeats, take, /*warm_ups=*/1));
  SetMeasured(medians[0], out_.graph_launch_latency_ns);
  return absl::OkStatus();
}

absl::Status DeviceMeter::MeasureEvictionIssue() {
  const auto take = [&]() -> absl::StatusOr<Sample<1>> {
    int64_t issue_ns = 0;
    GPUSHARE_RETURN_IF_ERROR(timer_.Begin(WorkerRequest(*worker_item_, worker_lane_)));
    GPUSHARE_RETURN_IF_ERROR(timer_.Evict(worker_lane_, &issue_ns).status());
    GPUSHARE_RETURN_IF_ERROR(timer_.Finish().status());
    return Sample<1>{static_cast<double>(issue_ns)};
  };
  GPUSHARE_ASSIGN_OR_RETURN(const auto medians,
                            MediansOf<1>(timer_, kLatencySamples * options_.repeats, take));
  SetMeasured(medians[0], out_.eviction_write_issue_ns);
  return absl::OkStatus();
}

absl::StatusOr<std::optional<bool>> DeviceMeter::TryWrite(int64_t lead_ns) {
  // A launch starts a launch latency after its call, so the two calls come in either order.
  const int64_t ahead_ns = lead_ns - out_.launch_latency_ns;
  core::TimeNs written = 0;
  if (ahead_ns > 0) {
    GPUSHARE_ASSIGN_OR_RETURN(written, timer_.EvictNext(worker_lane_));
    timer_.WaitUntil(written + ahead_ns);
  }
  const core::TimeNs launched = timer_.device().NowNs();
  GPUSHARE_RETURN_IF_ERROR(timer_.Begin(OneRound()));
  if (ahead_ns <= 0) {
    timer_.WaitUntil(launched - ahead_ns);
    GPUSHARE_ASSIGN_OR_RETURN(written, timer_.Evict(worker_lane_));
  }
  GPUSHARE_ASSIGN_OR_RETURN(const std::vector<TimedLaunch> done, timer_.Finish());
  const core::DeviceCompletion& completion = done.front().completion;
  if (std::abs(completion.start_ns - written - lead_ns) > lead_ns / 2 + 1000) {
    return std::optional<bool>();
  }
  return std::optional<bool>(completion.block_tasks_done == 0);
}

absl::StatusOr<bool> DeviceMeter::WriteArrivesWithin(int64_t lead_ns) {
  int seen = 0;
  int counted = 0;
  for (int i = 0; i < kWriteTrials; ++i) {
    GPUSHARE_ASSIGN_OR_RETURN(const std::optional<bool> arrived, TryWrite(lead_ns));
    counted += arrived.has_value() ? 1 : 0;
    seen += arrived.value_or(false) ? 1 : 0;
  }
  return counted > 0 && 2 * seen > counted;
}

// Workers read the word before they claim, so a launch that finds the write leaves without a block
// task. The lead at which half of the launches do is the latency of the write.
absl::Status DeviceMeter::MeasureEvictionWrite() {
  if (worker_item_ == nullptr) return absl::OkStatus();
  GPUSHARE_RETURN_IF_ERROR(MeasureEvictionIssue());
  int64_t low = 0;
  int64_t high = kWriteLatencyMaxNs;
  GPUSHARE_ASSIGN_OR_RETURN(const bool within_range, WriteArrivesWithin(high));
  if (!within_range) {
    notes_.push_back(absl::StrCat("An eviction write takes longer than ", high / 1000,
                                  " us to be seen; its latency is that of the base profile."));
    return absl::OkStatus();
  }
  for (int i = 0; i < kWriteHalvings; ++i) {
    GPUSHARE_RETURN_IF_ERROR(timer_.CheckCancelled());
    const int64_t middle = (low + high) / 2;
    GPUSHARE_ASSIGN_OR_RETURN(const bool arrives, WriteArrivesWithin(middle));
    (arrives ? high : low) = middle;
  }
  SetMeasured(static_cast<double>(low + high) / 2, out_.eviction_write_latency_ns);
  return absl::OkStatus();
}

}  // namespace gpushare::models
