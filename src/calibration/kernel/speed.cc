// Measures the speed of a kernel over its workers an SM, and over numbers of SMs.
//
// After its durations. curves.h says what the curves mean. Invariants: at most
// kMaxSpeedPoints sizes, the whole device the last of them; a partition that does not confine the
// kernel is not measured. Threads: one.

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/calibration/base/statistics.h"
#include "src/calibration/kernel/curves.h"
#include "src/calibration/kernel/kernel_stages.h"
#include "src/calibration/launch/request.h"
#include "src/core/base/limits.h"
#include "src/core/base/status.h"
#include "src/models/samples/row_times.h"

namespace gpushare::models {
namespace {

constexpr int32_t kWorkersPoints = 8;
constexpr int kWorkersRepeats = 3;
// Two measurements of one speed differ by so much: fewer workers that lose no more are enough.
constexpr double kWorkersLoss = 0.01;
// With fewer sizes than this a curve looks like a line; measured however little time there is.
constexpr size_t kSizesLeast = 5;

// A number of SMs to measure, on a lane of a partition of that size.
struct Size {
  int32_t sms = 0;
  core::LaneIndex lane = core::kNoLane;
  std::vector<double> speeds;
  std::vector<double> durations_ns;
};

struct Sizes {
  std::vector<Size> measured;
  std::vector<int32_t> unconfined;  // sizes on which the kernel does not stay in its partition
};

// Every size that a split gives to either side, the smallest first.
Sizes SizesOf(const KernelRun& run) {
  Sizes sizes;
  const auto add = [&](core::PlaceIndex place, int32_t sms, core::LaneClass lane_class) {
    if (!run.timer.device().Confines(run.item.kernel.id, place)) {
      if (std::find(sizes.unconfined.begin(), sizes.unconfined.end(), sms) ==
          sizes.unconfined.end()) {
        sizes.unconfined.push_back(sms);
      }
      return;
    }
    const bool known = std::any_of(sizes.measured.begin(), sizes.measured.end(),
                                   [sms](const Size& size) { return size.sms == sms; });
    const core::LaneIndex lane = run.lanes.Pick(place, lane_class, 0);
    if (!known && lane != core::kNoLane) sizes.measured.push_back({sms, lane, {}, {}});
  };
  for (const core::SplitView& split : run.lanes.splits()) {
    add(split.lc_place, split.lc_sms,
        run.evictable() ? core::LaneClass::kBe : core::LaneClass::kLc);
    add(split.be_place, split.be_sms, core::LaneClass::kBe);
  }
  std::sort(sizes.measured.begin(), sizes.measured.end(),
            [](const Size& a, const Size& b) { return a.sms < b.sms; });
  // The whole device is a point too. The smallest sizes are the least useful ones.
  const auto most = static_cast<size_t>(core::kMaxSpeedPoints) - 1;
  if (sizes.measured.size() > most) {
    sizes.measured.erase(sizes.measured.begin(), sizes.measured.end() - static_cast<int64_t>(most));
  }
  return sizes;
}

// Keeps every n-th size from the largest down, so that there is time for one sample of each.
void Thin(const KernelRun& run, double whole_device_ns, std::vector<Size>& sizes) {
  double estimate = 0;
  // Each sample comes with one of the whole device.
  for (const Size& size : sizes) {
    estimate += whole_device_ns * (1 + static_cast<double>(run.sm_count) / size.sms);
  }
  // Earlier stages may have overspent; half of this stage's share is there in any case.
  const double least = run.options.seconds_per_kernel * 1e9 * (kSpeedEnd - kWorkersEnd) / 2;
  const double left = std::max(least, static_cast<double>(run.TimeLeftNs()));
  const double most = static_cast<double>(std::max<size_t>(1, sizes.size() / kSizesLeast));
  const auto stride = static_cast<size_t>(std::clamp(std::ceil(estimate / left), 1.0, most));
  std::vector<Size> kept;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if ((sizes.size() - 1 - i) % stride == 0) kept.push_back(sizes[i]);
  }
  sizes = std::move(kept);
}

absl::StatusOr<double> TimeOn(KernelRun& run, core::LaneIndex lane, int batch) {
  if (!run.evictable()) return run.timer.TimePerLaunch(OrdinaryRequest(run.item, lane), batch);
  GPUSHARE_ASSIGN_OR_RETURN(const TimedLaunch one, run.timer.RunOne(WorkerRequest(run.item, lane)));
  return one.duration_ns();
}

// On a partition that does not confine it, the kernel would show the speed of the whole device, and
// BE work beside it would get no SM. Such a size counts as fast as the next smaller one that holds
// the kernel; if none does, at most in proportion to its SMs.
void AddUnconfined(const KernelRun& run, const std::vector<int32_t>& unconfined,
                   KernelMeasurement& out) {
  for (const int32_t sms : unconfined) {
    const auto above = std::lower_bound(
        out.speed.begin(), out.speed.end(), sms,
        [](const core::SpeedPoint& point, int32_t size) { return point.sms < size; });
    if (above->sms == sms) continue;  // the other side of a split has as many SMs and holds it
    const double speed =
        above == out.speed.begin() ? above->speed * sms / above->sms : std::prev(above)->speed;
    out.speed.insert(above, {sms, std::min(speed, above->speed)});
    run.notes.push_back(absl::StrCat("Kernel '", out.name, "' does not run on ", sms,
                                     " SMs alone: a cluster of it does not fit there."));
  }
}

}  // namespace

absl::Status MeasureSpeedOverWorkers(KernelRun& run, KernelMeasurement& out) {
  run.BeginStage(kWorkersEnd);
  const int32_t most = run.workers_per_sm;
  if (!run.evictable() || most < 2 || run.item.block_tasks < run.round()) return absl::OkStatus();
  const int32_t step = (most + kWorkersPoints - 1) / kWorkersPoints;
  std::vector<std::vector<double>> samples(static_cast<size_t>(most));
  std::vector<std::vector<double>> durations(static_cast<size_t>(most));
  const int32_t repeats = std::min(run.options.repeats, kWorkersRepeats);
  for (size_t taken = 0; run.TakeMore(taken, 1, repeats); ++taken) {
    GPUSHARE_ASSIGN_OR_RETURN(const TimedLaunch full, run.timer.RunOne(run.Workers()));
    for (int32_t workers = most - step; workers >= 1; workers -= step) {
      GPUSHARE_RETURN_IF_ERROR(run.timer.CheckCancelled());
      GPUSHARE_ASSIGN_OR_RETURN(
          const TimedLaunch some,
          run.timer.RunOne(run.Workers(run.item.block_tasks, workers * run.sm_count)));
      samples[static_cast<size_t>(workers) - 1].push_back(
          Ratio(full.duration_ns(), some.duration_ns()));
      durations[static_cast<size_t>(workers) - 1].push_back(some.duration_ns());
    }
  }
  for (int32_t workers = 1; workers < most; ++workers) {
    std::vector<double>& times = durations[static_cast<size_t>(workers) - 1];
    if (times.empty()) continue;
    const core::LaunchRequest request = run.Workers(run.item.block_tasks, workers * run.sm_count);
    run.Sample(run.SoloRow(request, std::move(times)));
  }
  std::vector<double> speeds;
  speeds.reserve(samples.size());
  for (std::vector<double>& one : samples) speeds.push_back(Median(std::move(one)));
  speeds.back() = 1;
  out.saturating_occupancy = FitSaturatingOccupancy(speeds);
  out.workers_per_sm_least = FewestWorkers(speeds, kWorkersLoss);
  return absl::OkStatus();
}

absl::Status MeasureSpeedOverSms(KernelRun& run, KernelMeasurement& out) {
  run.BeginStage(kSpeedEnd);
  if (!run.item.kernel.confinable || run.lanes.splits().empty()) return absl::OkStatus();
  const auto solo = static_cast<double>(out.solo_ns);
  const int batch = run.BatchFor(solo);
  Sizes sizes = SizesOf(run);
  Thin(run, run.evictable() ? solo : solo * (batch + 1), sizes.measured);
  const core::LaneIndex whole = run.evictable() ? run.worker_lane : run.plain_lane;
  for (size_t taken = 0; run.TakeMore(taken, 1, run.options.repeats); ++taken) {
    // The whole device before each size, so that both see the same clocks.
    for (Size& size : sizes.measured) {
      GPUSHARE_RETURN_IF_ERROR(run.timer.CheckCancelled());
      GPUSHARE_ASSIGN_OR_RETURN(const double all, TimeOn(run, whole, batch));
      GPUSHARE_ASSIGN_OR_RETURN(const double some, TimeOn(run, size.lane, batch));
      size.speeds.push_back(Ratio(all, some));
      size.durations_ns.push_back(some);
    }
  }
  for (Size& size : sizes.measured) {
    out.speed.push_back({size.sms, Median(std::move(size.speeds))});
    const core::LaunchRequest request = run.evictable() ? run.Workers() : run.Ordinary();
    run.Sample(run.SoloRow(request, std::move(size.durations_ns), size.sms));
  }
  out.speed.push_back({run.sm_count, 1});
  out.knees = FindKnees(out.speed);
  AddUnconfined(run, sizes.unconfined, out);
  out.intensity = IntensityOf(out.speed, &out.flat_from_sms);
  return absl::OkStatus();
}

}  // namespace gpushare::models
