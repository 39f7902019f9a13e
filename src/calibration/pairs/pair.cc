// Pairs on partitions; see pair.h.

#include "src/calibration/pairs/pair.h"

#include <algorithm>
#include <utility>

#include "src/calibration/launch/repeat.h"
#include "src/calibration/launch/request.h"
#include "src/core/base/status.h"
#include "src/core/seams/ordinary_form.h"
#include "src/models/samples/row_times.h"

namespace gpushare::models {
namespace {

// An LC kernel that loses more than this gets no such partition, whichever kernel is beside it.
constexpr double kSpeedMin = 0.85;
// The background has begun on every SM when a query arrives.
constexpr core::TimeNs kSettleNs = 200'000;
// Evictions come at moments that differ by this share of a block task.
constexpr double kGolden = 0.6180339887;

}  // namespace

double PairMeter::LcSpeedOn(int32_t sms) const {
  for (const core::SpeedPoint& point : lc_alone_.speed) {
    if (point.sms == sms) return point.speed;
  }
  return 0;
}

std::vector<core::SplitView> PairMeter::UsefulSplits() const {
  std::vector<core::SplitView> splits;
  for (const core::SplitView& split : lanes_.splits()) {
    if (LcSpeedOn(split.lc_sms) < kSpeedMin) continue;
    if (timer_.device().Confines(lc_.kernel.id, split.lc_place)) splits.push_back(split);
  }
  std::stable_sort(splits.begin(), splits.end(),
                   [&](const core::SplitView& a, const core::SplitView& b) {
                     return LcSpeedOn(a.lc_sms) > LcSpeedOn(b.lc_sms);
                   });
  if (splits.size() > kPairSplitsMax) splits.resize(kPairSplitsMax);
  return splits;
}

absl::StatusOr<PairMeasurement> PairMeter::Measure() {
  PairMeasurement out;
  out.lc = lc_.kernel.name;
  out.be = be_.kernel.name;
  for (const core::SplitView& split : UsefulSplits()) {
    GPUSHARE_RETURN_IF_ERROR(MeasureSplit(split, out));
  }
  GPUSHARE_RETURN_IF_ERROR(MeasureBlocking(out));
  return out;
}

absl::StatusOr<TimedLaunch> PairMeter::Query(core::LaneIndex lane) {
  return timer_.RunOne(OrdinaryRequest(lc_, lane));
}

absl::Status PairMeter::BeginBackground(core::LaneIndex lane) {
  return timer_.BeginBackground(WorkerRequest(be_, lane), kSettleNs);
}

// The whole device, the partition alone and the partition beside the background run in turn, so
// that all see the same clocks. A query that outlived the background does not count.
absl::Status PairMeter::MeasureSplit(const core::SplitView& split, PairMeasurement& out) {
  const core::LaneIndex whole_lane = lanes_.Pick(core::kWholeDevice, core::LaneClass::kLc, 0);
  const core::LaneIndex lc_lane = lanes_.Pick(split.lc_place, core::LaneClass::kLc, 0);
  const core::LaneIndex be_lane = lanes_.Pick(split.be_place, core::LaneClass::kBe, 0);
  for (const core::LaneIndex lane : {whole_lane, lc_lane, be_lane}) {
    if (lane == core::kNoLane) return absl::OkStatus();
  }
  std::vector<double> alone_ns_of_row;  // of the repeats that the background outlasted
  const auto take = [&]() -> absl::StatusOr<Sample<3>> {
    GPUSHARE_ASSIGN_OR_RETURN(const TimedLaunch whole, Query(whole_lane));
    GPUSHARE_ASSIGN_OR_RETURN(const TimedLaunch alone, Query(lc_lane));
    GPUSHARE_RETURN_IF_ERROR(BeginBackground(be_lane));
    GPUSHARE_ASSIGN_OR_RETURN(const TimedLaunch beside, Query(lc_lane));
    GPUSHARE_ASSIGN_OR_RETURN(const bool lasted, timer_.EndBackground(be_lane));
    Sample<3> sample = {whole.duration_ns(), alone.duration_ns()};
    if (!lasted) return sample;
    sample[2] = beside.duration_ns();
    alone_ns_of_row.push_back(alone.duration_ns());
    return sample;
  };
  GPUSHARE_ASSIGN_OR_RETURN(auto repeats, RepeatsOf<3>(timer_, options_.repeats, take));
  if (options_.sample && !repeats[2].empty()) {
    options_.sample(RowOf(split, std::move(alone_ns_of_row), repeats[2]));
  }
  const double whole_ns = Median(std::move(repeats[0]));
  const double alone_ns = Median(std::move(repeats[1]));
  const double beside_ns = Median(std::move(repeats[2]));
  if (beside_ns > 0) {
    out.speeds.push_back({split.lc_sms, whole_ns / alone_ns, whole_ns / beside_ns});
  }
  return absl::OkStatus();
}

SampleRow PairMeter::RowOf(const core::SplitView& split, std::vector<double> alone_ns,
                           std::vector<double> beside_ns) const {
  SampleRow row;
  row.what = SampleKind::kBeside;
  row.kernel = lc_.kernel.name;
  row.form = core::OrdinaryForm(lc_.kernel.kind());
  row.sms = split.lc_sms;
  row.neighbour = be_.kernel.name;
  row.neighbour_block_tasks = be_.block_tasks;
  row.neighbour_sms = split.be_sms;
  row.alone_ns = std::move(alone_ns);
  row.ns = std::move(beside_ns);
  return row;
}

// A query that arrives while the background holds the whole device, after one that finds it free.
absl::Status PairMeter::MeasureBlocking(PairMeasurement& out) {
  const core::LaneIndex lc_lane = lanes_.Pick(core::kWholeDevice, core::LaneClass::kLc, 0);
  const core::LaneIndex be_lane = lanes_.Pick(core::kWholeDevice, core::LaneClass::kBe, 0);
  if (lc_lane == core::kNoLane || be_lane == core::kNoLane) return absl::OkStatus();
  const auto block_task_ns = static_cast<double>(be_alone_.block_task_ns);
  double share = 0;
  const auto take = [&]() -> absl::StatusOr<Sample<2>> {
    GPUSHARE_ASSIGN_OR_RETURN(const TimedLaunch alone, Query(lc_lane));
    GPUSHARE_RETURN_IF_ERROR(BeginBackground(be_lane));
    share += kGolden;
    share -= share >= 1 ? 1 : 0;
    timer_.Wait(static_cast<core::TimeNs>(share * block_task_ns));
    const bool lasts = timer_.BackgroundRuns();
    GPUSHARE_RETURN_IF_ERROR(timer_.Evict(be_lane).status());
    GPUSHARE_ASSIGN_OR_RETURN(const TimedLaunch blocked, Query(lc_lane));
    GPUSHARE_RETURN_IF_ERROR(timer_.EndBackground(be_lane).status());
    if (lasts) out.blocking_ns.push_back(static_cast<int64_t>(blocked.round_trip_ns()));
    return Sample<2>{alone.round_trip_ns(), alone.duration_ns()};
  };
  GPUSHARE_ASSIGN_OR_RETURN(const auto medians, MediansOf<2>(timer_, kPairBlockingSamples, take));
  const auto alone_ns = static_cast<int64_t>(medians[0]);
  for (int64_t& sample : out.blocking_ns) sample = std::max<int64_t>(0, sample - alone_ns);
  out.query_ns = static_cast<int64_t>(medians[1]);
  return absl::OkStatus();
}

}  // namespace gpushare::models
