// Two kernels on the same SMs; see co_resident.h.

#include "src/calibration/pairs/co_resident.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "src/calibration/launch/repeat.h"
#include "src/calibration/launch/request.h"
#include "src/core/base/status.h"
#include "src/core/checks/occupancy.h"
#include "src/models/samples/row_times.h"

namespace gpushare::models {
namespace {

// Numbers of workers are quarters of what an SM holds.
constexpr int32_t kQuarters = 4;
constexpr int kRepeatsMost = 3;
// The background has begun on every SM when the timed launch arrives.
constexpr core::TimeNs kSettleNs = 100'000;
// The timed launch takes this share of the background's sample when each runs alone, because both
// are slower together.
constexpr double kTimedShare = 0.25;

// A launch may have one block more than workers, which leads them. Without room for that block the
// launch would end only after the background, whose end waits for the launch.
constexpr int32_t kLeaders = 1;

// Block tasks of the timed launch: whole rounds, at least one of them.
int64_t TimedTasks(const CalibrationItem& item, const KernelMeasurement& alone,
                   const KernelMeasurement& background, int32_t sm_count) {
  const double share = kTimedShare * static_cast<double>(background.worker_solo_ns) /
                       static_cast<double>(std::max<int64_t>(1, alone.worker_solo_ns));
  const auto tasks =
      static_cast<int64_t>(std::min(1.0, share) * static_cast<double>(item.block_tasks));
  const int64_t round = std::max<int64_t>(1, int64_t{alone.workers_per_sm} * sm_count);
  return std::min(item.block_tasks, std::max<int64_t>(1, tasks / round) * round);
}

// A quarter, half and three quarters of an SM's workers of the second kernel, the rest of the SM
// for the first. Numbers that do not fit or that are the same are left out.
std::vector<CoResidentPoint> WorkerCounts(const CalibrationItem& first,
                                          const CalibrationItem& second,
                                          const core::DeviceProfile& device) {
  std::vector<CoResidentPoint> counts;
  const int32_t second_most = WorkersPerSm(second.kernel, device);
  const int32_t first_most = WorkersPerSm(first.kernel, device);
  for (int32_t quarters = 1; quarters < kQuarters; ++quarters) {
    CoResidentPoint point;
    point.second_workers_per_sm = std::max(1, second_most * quarters / kQuarters);
    if (first.has_block_tasks()) {
      point.first_workers_per_sm = std::max(1, first_most * (kQuarters - quarters) / kQuarters);
      if (!FitTogether(first.kernel, point.first_workers_per_sm, second.kernel,
                       point.second_workers_per_sm, device)) {
        continue;
      }
    } else if (point.second_workers_per_sm >= second_most) {
      continue;  // no room is left for the graph or library call
    }
    const bool known = std::any_of(counts.begin(), counts.end(), [&](const CoResidentPoint& one) {
      return one.first_workers_per_sm == point.first_workers_per_sm &&
             one.second_workers_per_sm == point.second_workers_per_sm;
    });
    if (!known) counts.push_back(point);
  }
  return counts;
}

}  // namespace

absl::StatusOr<CoResidentRecord> CoResidentMeter::Measure(const CalibrationItem& first,
                                                          const KernelMeasurement& first_alone,
                                                          const CalibrationItem& second,
                                                          const KernelMeasurement& second_alone) {
  CoResidentRecord record;
  record.first = first.kernel.name;
  record.second = second.kernel.name;
  if (lane_ == core::kNoLane || lane_ == other_lane_) return record;
  const core::DeviceProfile& device = timer_.device().capabilities().profile;
  for (CoResidentPoint point : WorkerCounts(first, second, device)) {
    const Side a{first, first_alone, point.first_workers_per_sm};
    const Side b{second, second_alone, point.second_workers_per_sm};
    GPUSHARE_ASSIGN_OR_RETURN(point.first_speed, SpeedBeside(a, b));
    if (first.has_block_tasks()) {
      GPUSHARE_ASSIGN_OR_RETURN(point.second_speed, SpeedBeside(b, a));
    }
    if (point.first_speed > 0 || point.second_speed > 0) record.points.push_back(point);
  }
  return record;
}

SampleRow CoResidentMeter::RowOf(const Side& timed, const core::LaunchRequest& launch,
                                 const Side& background, std::vector<double> alone_ns,
                                 std::vector<double> beside_ns) const {
  SampleRow row;
  row.what = SampleKind::kBeside;
  row.kernel = timed.item.kernel.name;
  row.form = launch.form;
  row.block_tasks = launch.parts[0].block_count;
  row.sms = timer_.device().capabilities().profile.sm_count;
  row.workers_per_sm = timed.workers_per_sm;
  row.neighbour = background.item.kernel.name;
  row.neighbour_block_tasks = background.item.block_tasks;
  row.neighbour_sms = row.sms;
  row.neighbour_workers_per_sm = background.workers_per_sm;
  row.same_sms = true;
  row.alone_ns = std::move(alone_ns);
  row.ns = std::move(beside_ns);
  return row;
}

absl::StatusOr<double> CoResidentMeter::SpeedBeside(const Side& timed, const Side& background) {
  const int32_t sm_count = timer_.device().capabilities().profile.sm_count;
  const auto workers = [&](const Side& side) { return side.workers_per_sm * sm_count - kLeaders; };
  const core::LaunchRequest behind =
      WorkerRequest(background.item, other_lane_, background.item.block_tasks, workers(background),
                    /*counter=*/1);  // the timed launch has 0
  core::LaunchRequest whole = OrdinaryRequest(timed.item, lc_lane_);
  core::LaunchRequest part = whole;
  if (timed.item.has_block_tasks()) {
    const int64_t tasks = TimedTasks(timed.item, timed.alone, background.alone, sm_count);
    whole = WorkerRequest(timed.item, lane_, tasks);
    part = WorkerRequest(timed.item, lane_, tasks, workers(timed));
  }
  const auto take = [&]() -> absl::StatusOr<Sample<3>> {
    GPUSHARE_ASSIGN_OR_RETURN(const TimedLaunch alone, timer_.RunOne(whole));
    GPUSHARE_RETURN_IF_ERROR(timer_.BeginBackground(behind, kSettleNs));
    GPUSHARE_ASSIGN_OR_RETURN(const TimedLaunch beside, timer_.RunOne(part));
    GPUSHARE_ASSIGN_OR_RETURN(const bool lasted, timer_.EndBackground(other_lane_));
    if (!lasted || beside.duration_ns() <= 0) return Sample<3>{};
    return Sample<3>{alone.duration_ns() / beside.duration_ns(), alone.duration_ns(),
                     beside.duration_ns()};
  };
  GPUSHARE_ASSIGN_OR_RETURN(auto repeats,
                            RepeatsOf<3>(timer_, std::min(options_.repeats, kRepeatsMost), take));
  if (options_.sample && !repeats[0].empty()) {
    options_.sample(RowOf(timed, part, background, std::move(repeats[1]), std::move(repeats[2])));
  }
  return Median(std::move(repeats[0]));
}

}  // namespace gpushare::models
