// Measures one pair. See calibration_pair.h.

#include "src/calibration/pair.h"

#include <algorithm>
#include <utility>

#include "src/calibration/kernel.h"

namespace gpushare::models {
namespace {

// An LC kernel that loses more than this gets no such partition, whoever is beside it.
constexpr double kSpeedMin = 0.85;
// The first query meets a background that has not begun everywhere.
constexpr core::TimeNs kSettleNs = 200'000;
// Evictions strike at moments that differ by this share of a block task.
constexpr double kGolden = 0.6180339887;

double SpeedAt(const KernelMeasurement& measured, int32_t sms) {
  for (const core::SpeedPoint& point : measured.speed) {
    if (point.sms == sms) return point.speed;
  }
  return 0;
}

double RoundTrip(const TimedLaunch& query) {
  return static_cast<double>(query.seen_ns - query.called_ns);
}

}  // namespace

absl::StatusOr<PairMeasurement> PairMeter::Measure(const CalibrationItem& lc,
                                                   const KernelMeasurement& measured,
                                                   const CalibrationItem& be) {
  PairMeasurement out;
  out.lc = lc.kernel.name;
  out.be = be.kernel.name;
  std::vector<core::SplitView> splits;
  for (const core::SplitView& split : lanes_.splits()) {
    if (SpeedAt(measured, split.lc_sms) < kSpeedMin) continue;
    if (timer_.device().Confines(lc.kernel.id, split.lc_place)) splits.push_back(split);
  }
  std::stable_sort(splits.begin(), splits.end(),
                   [&](const core::SplitView& a, const core::SplitView& b) {
                     return SpeedAt(measured, a.lc_sms) > SpeedAt(measured, b.lc_sms);
                   });
  if (splits.size() > kPairSplitsMax) splits.resize(kPairSplitsMax);
  for (const core::SplitView& split : splits) {
    if (absl::Status status = timer_.CheckCancelled(); !status.ok()) return status;
    if (absl::Status status = MeasureSplit(lc, be, split, out); !status.ok()) return status;
  }
  if (absl::Status status = MeasureBlocking(lc, be, out); !status.ok()) return status;
  return out;
}

absl::StatusOr<TimedLaunch> PairMeter::Query(const CalibrationItem& lc, core::LaneIndex lane) {
  return timer_.RunOne(TaskRequest(lc, OrdinaryForm(lc.kernel), lane));
}

absl::Status PairMeter::BeginBackground(const CalibrationItem& be, core::LaneIndex lane) {
  absl::Status status = timer_.BeginBackground(TaskRequest(be, core::Form::kWorkers, lane));
  if (status.ok()) timer_.WaitUntil(timer_.device().NowNs() + kSettleNs);
  return status;
}

// The whole device, the place alone and the place beside the background, in turn: all see the same
// clocks. A query that outlived the background counts nowhere.
absl::Status PairMeter::MeasureSplit(const CalibrationItem& lc, const CalibrationItem& be,
                                     const core::SplitView& split, PairMeasurement& out) {
  const core::LaneIndex whole = lanes_.Pick(core::kWholeDevice, core::LaneClass::kLc, 0);
  const core::LaneIndex lc_lane = lanes_.Pick(split.lc_place, core::LaneClass::kLc, 0);
  const core::LaneIndex be_lane = lanes_.Pick(split.be_place, core::LaneClass::kBe, 0);
  if (whole == core::kNoLane || lc_lane == core::kNoLane || be_lane == core::kNoLane) {
    return absl::OkStatus();
  }
  std::vector<double> alone;
  std::vector<double> place;
  std::vector<double> beside;
  for (int i = 0; i < options_.repeats; ++i) {
    for (auto [lane, samples] : {std::pair{whole, &alone}, std::pair{lc_lane, &place}}) {
      absl::StatusOr<TimedLaunch> query = Query(lc, lane);
      if (!query.ok()) return query.status();
      samples->push_back(query->duration_ns());
    }
    if (absl::Status status = BeginBackground(be, be_lane); !status.ok()) return status;
    absl::StatusOr<TimedLaunch> query = Query(lc, lc_lane);
    if (!query.ok()) return query.status();
    absl::StatusOr<bool> lasted = timer_.EndBackground(be_lane);
    if (!lasted.ok()) return lasted.status();
    if (*lasted) beside.push_back(query->duration_ns());
  }
  if (beside.empty()) return absl::OkStatus();
  out.speeds.push_back(
      {split.lc_sms, Median(alone) / Median(place), Median(alone) / Median(beside)});
  return absl::OkStatus();
}

// A query that arrives while the background holds the whole device, beside one that meets nothing.
absl::Status PairMeter::MeasureBlocking(const CalibrationItem& lc, const CalibrationItem& be,
                                        PairMeasurement& out) {
  const core::LaneIndex lc_lane = lanes_.Pick(core::kWholeDevice, core::LaneClass::kLc, 0);
  const core::LaneIndex be_lane = lanes_.Pick(core::kWholeDevice, core::LaneClass::kBe, 0);
  if (lc_lane == core::kNoLane || be_lane == core::kNoLane) return absl::OkStatus();
  std::vector<double> alone;
  std::vector<double> durations;
  double share = 0;
  for (int i = 0; i < kPairBlockingSamples; ++i) {
    if (absl::Status status = timer_.CheckCancelled(); !status.ok()) return status;
    absl::StatusOr<TimedLaunch> query = Query(lc, lc_lane);
    if (!query.ok()) return query.status();
    alone.push_back(RoundTrip(*query));
    durations.push_back(query->duration_ns());
    if (absl::Status status = BeginBackground(be, be_lane); !status.ok()) return status;
    share += kGolden;
    share -= share >= 1 ? 1 : 0;
    const double wait_ns = share * static_cast<double>(be.kernel.simulation.block_task_ns);
    timer_.WaitUntil(timer_.device().NowNs() + static_cast<core::TimeNs>(wait_ns));
    const bool lasts = timer_.BackgroundRuns();
    if (absl::StatusOr<core::TimeNs> told = timer_.Evict(be_lane); !told.ok()) return told.status();
    query = Query(lc, lc_lane);
    if (!query.ok()) return query.status();
    if (absl::StatusOr<bool> ended = timer_.EndBackground(be_lane); !ended.ok()) {
      return ended.status();
    }
    if (lasts) out.blocking_ns.push_back(static_cast<int64_t>(RoundTrip(*query)));
  }
  const auto alone_ns = static_cast<int64_t>(Median(alone));
  for (int64_t& sample : out.blocking_ns) sample = std::max<int64_t>(0, sample - alone_ns);
  out.query_ns = static_cast<int64_t>(Median(durations));
  return absl::OkStatus();
}

}  // namespace gpushare::models
