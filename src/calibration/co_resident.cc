// Measures two kernels on the same SMs. See calibration_co_resident.h.

#include "src/calibration/co_resident.h"

#include <algorithm>
#include <utility>

#include "src/calibration/kernel.h"

namespace gpushare::models {
namespace {

// Quarters of an SM's workers.
constexpr int32_t kQuarters = 4;
constexpr int kRepeatsMost = 3;
// The timed kernel meets a background that has begun on every SM.
constexpr core::TimeNs kSettleNs = 100'000;
// What is timed lasts so much of the background's sample alone: both are slower together.
constexpr double kTimedShare = 0.25;

// A launch may have one block more than workers, which leads them. Without room for it the launch
// would end only once the background has, whose end waits for it.
constexpr int32_t kLeaders = 1;

bool IsKernel(const CalibrationItem& item) { return item.kernel.kind == core::TaskKind::kKernel; }

bool FitTogether(const core::KernelDesc& a, int64_t a_workers, const core::KernelDesc& b,
                 int64_t b_workers, const core::DeviceProfile& device) {
  const auto registers = [](const core::KernelDesc& kernel) {
    return int64_t{kernel.threads_per_block} * kernel.registers_per_thread;
  };
  return a_workers + b_workers <= device.blocks_per_sm &&
         a_workers * a.threads_per_block + b_workers * b.threads_per_block <=
             device.threads_per_sm &&
         a_workers * registers(a) + b_workers * registers(b) <= device.registers_per_sm &&
         a_workers * a.shared_memory_bytes + b_workers * b.shared_memory_bytes <=
             device.shared_memory_per_sm_bytes;
}

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

}  // namespace

std::vector<CoResidentPoint> WorkerCounts(const CalibrationItem& first,
                                          const CalibrationItem& second,
                                          const core::DeviceProfile& device) {
  std::vector<CoResidentPoint> counts;
  const int32_t second_most = WorkersPerSm(second.kernel, device);
  const int32_t first_most = WorkersPerSm(first.kernel, device);
  for (int32_t quarters = 1; quarters < kQuarters; ++quarters) {
    CoResidentPoint point;
    point.second_workers_per_sm = std::max(1, second_most * quarters / kQuarters);
    if (IsKernel(first)) {
      point.first_workers_per_sm = std::max(1, first_most * (kQuarters - quarters) / kQuarters);
      if (!FitTogether(first.kernel, point.first_workers_per_sm, second.kernel,
                       point.second_workers_per_sm, device)) {
        continue;
      }
    } else if (point.second_workers_per_sm >= second_most) {
      continue;  // no room is left for anything
    }
    const bool known = std::any_of(counts.begin(), counts.end(), [&](const CoResidentPoint& one) {
      return one.first_workers_per_sm == point.first_workers_per_sm &&
             one.second_workers_per_sm == point.second_workers_per_sm;
    });
    if (!known) counts.push_back(point);
  }
  return counts;
}

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
    absl::StatusOr<double> speed = SpeedBeside(a, b);
    if (!speed.ok()) return speed.status();
    point.first_speed = *speed;
    if (IsKernel(first)) {
      speed = SpeedBeside(b, a);
      if (!speed.ok()) return speed.status();
      point.second_speed = *speed;
    }
    if (point.first_speed > 0 || point.second_speed > 0) record.points.push_back(point);
  }
  return record;
}

absl::StatusOr<double> CoResidentMeter::SpeedBeside(const Side& timed, const Side& background) {
  const int32_t sm_count = timer_.device().capabilities().profile.sm_count;
  core::LaunchRequest behind = TaskRequest(background.item, core::Form::kWorkers, other_lane_);
  behind.workers = background.workers_per_sm * sm_count - kLeaders;
  behind.parts[0].counter = 1;  // the timed launch has 0
  core::LaunchRequest whole = TaskRequest(timed.item, OrdinaryForm(timed.item.kernel), lc_lane_);
  core::LaunchRequest part = whole;
  if (IsKernel(timed.item)) {
    whole = TaskRequest(timed.item, core::Form::kWorkers, lane_);
    whole.parts[0].block_count = TimedTasks(timed.item, timed.alone, background.alone, sm_count);
    part = whole;
    part.workers = timed.workers_per_sm * sm_count - kLeaders;
  }
  std::vector<double> speeds;
  for (int i = 0; i < std::min(options_.repeats, kRepeatsMost); ++i) {
    if (absl::Status status = timer_.CheckCancelled(); !status.ok()) return status;
    absl::StatusOr<TimedLaunch> alone = timer_.RunOne(whole);
    if (!alone.ok()) return alone.status();
    if (absl::Status status = timer_.BeginBackground(behind); !status.ok()) return status;
    timer_.WaitUntil(timer_.device().NowNs() + kSettleNs);
    absl::StatusOr<TimedLaunch> beside = timer_.RunOne(part);
    if (!beside.ok()) return beside.status();
    absl::StatusOr<bool> lasted = timer_.EndBackground(other_lane_);
    if (!lasted.ok()) return lasted.status();
    if (*lasted && beside->duration_ns() > 0) {
      speeds.push_back(alone->duration_ns() / beside->duration_ns());
    }
  }
  return Median(std::move(speeds));
}

}  // namespace gpushare::models
