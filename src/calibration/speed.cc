// Speed of one kernel over numbers of SMs: every size that a split gives to either side, against
// the whole device. The part of KernelMeter (calibration_kernel.h) that ends its basics.
//
// Invariants: at most kMaxSpeedPoints sizes, the whole device the last of them; a size that does
// not confine the kernel is not measured. Threads: one.

#include <algorithm>
#include <cmath>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "src/calibration/curves.h"
#include "src/calibration/kernel.h"
#include "src/core/base/limits.h"

namespace gpushare::models {
namespace {

// The stage ends when this share of the kernel's time is spent.
constexpr double kSpeedEnd = kBasicsShare;
// However little time there is, so many sizes tell a curve from a line.
constexpr size_t kSizesLeast = 5;

}  // namespace

// Every size that a split gives to either side, and so many of them as the stage has time for.
std::vector<KernelMeter::Size> KernelMeter::Sizes(double place_time_ns) {
  std::vector<Size> sizes;
  auto add = [&](core::PlaceIndex place, int32_t sms, core::LaneClass lane_class) {
    if (!timer_.device().Confines(item_.kernel.id, place)) {
      if (std::find(unconfined_.begin(), unconfined_.end(), sms) == unconfined_.end()) {
        unconfined_.push_back(sms);
      }
      return;
    }
    const bool known = std::any_of(sizes.begin(), sizes.end(),
                                   [sms](const Size& size) { return size.sms == sms; });
    const core::LaneIndex lane = lanes_.Pick(place, lane_class, 0);
    if (!known && lane != core::kNoLane) sizes.push_back({sms, lane, {}});
  };
  for (const core::SplitView& split : lanes_.splits()) {
    add(split.lc_place, split.lc_sms, evictable() ? core::LaneClass::kBe : core::LaneClass::kLc);
    add(split.be_place, split.be_sms, core::LaneClass::kBe);
  }
  std::sort(sizes.begin(), sizes.end(), [](const Size& a, const Size& b) { return a.sms < b.sms; });
  // The whole device is a point too; the smallest sizes are the least useful ones.
  while (sizes.size() + 1 > static_cast<size_t>(core::kMaxSpeedPoints)) sizes.erase(sizes.begin());
  double estimate = 0;
  // Each sample comes with one of the whole device.
  for (const Size& size : sizes) {
    estimate += place_time_ns * (1 + static_cast<double>(sm_count_) / size.sms);
  }
  // Earlier stages may have spent more than theirs: a part of the share is there in any case.
  const double least = options_.seconds_per_kernel * 1e9 * (kSpeedEnd - kOccupancyEnd) / 2;
  const double left = std::max(least, static_cast<double>(stage_end_ns_ - timer_.device().NowNs()));
  const double most = static_cast<double>(std::max<size_t>(1, sizes.size() / kSizesLeast));
  const auto stride = static_cast<size_t>(std::clamp(std::ceil(estimate / left), 1.0, most));
  std::vector<Size> kept;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if ((sizes.size() - 1 - i) % stride == 0) kept.push_back(sizes[i]);
  }
  return kept;
}

absl::StatusOr<double> KernelMeter::TimeOn(core::LaneIndex lane, int batch) {
  if (!evictable()) {
    return timer_.TimePerLaunch(TaskRequest(item_, OrdinaryForm(item_.kernel), lane), batch);
  }
  absl::StatusOr<TimedLaunch> one = timer_.RunOne(TaskRequest(item_, core::Form::kWorkers, lane));
  if (!one.ok()) return one.status();
  return one->duration_ns();
}

absl::Status KernelMeter::MeasureSpeed() {
  BeginStage(kSpeedEnd);
  if (!item_.kernel.confinable || lanes_.splits().empty()) return absl::OkStatus();
  const double solo = static_cast<double>(out_.solo_ns);
  const int batch = BatchFor(solo);
  std::vector<Size> sizes = Sizes(evictable() ? solo : solo * (batch + 1));
  const core::LaneIndex whole = evictable() ? worker_lane_ : plain_lane_;
  for (int i = 0; i < options_.repeats && (i == 0 || TimeLeft()); ++i) {
    // The whole device before each size: the pair sees the same clocks.
    for (Size& size : sizes) {
      if (absl::Status status = timer_.CheckCancelled(); !status.ok()) return status;
      absl::StatusOr<double> all = TimeOn(whole, batch);
      if (!all.ok()) return all.status();
      absl::StatusOr<double> some = TimeOn(size.lane, batch);
      if (!some.ok()) return some.status();
      size.speeds.push_back(Ratio(*all, *some));
    }
  }
  for (const Size& size : sizes) out_.speed.push_back({size.sms, Median(size.speeds)});
  out_.speed.push_back({sm_count_, 1});
  out_.knees = FindKnees(out_.speed);
  AddUnconfinedSizes();
  out_.intensity = IntensityOf(out_.speed, &out_.flat_from_sms);
  return absl::OkStatus();
}

// Measured there, the kernel would have the speed of the whole device and BE work beside it none:
// such a size counts as fast as the largest smaller one that does hold it.
void KernelMeter::AddUnconfinedSizes() {
  for (const int32_t sms : unconfined_) {
    auto above = std::lower_bound(
        out_.speed.begin(), out_.speed.end(), sms,
        [](const core::SpeedPoint& point, int32_t size) { return point.sms < size; });
    if (above->sms == sms) continue;  // the other side of a split has as many, and holds it
    const double speed = above == out_.speed.begin() ? above->speed : std::prev(above)->speed;
    out_.speed.insert(above, {sms, std::min(speed, above->speed)});
    notes_.push_back(absl::StrCat("Kernel '", out_.name, "' does not run on ", sms,
                                  " SMs alone: a cluster of it does not fit there."));
  }
}

}  // namespace gpushare::models
