// Slices. See calibration_slice.h.

#include "src/calibration/slice.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "src/calibration/kernel.h"
#include "src/core/base/overhead_search.h"

namespace gpushare::models {
namespace {

// Sizes are alike below this: what two measurements of one size differ by.
constexpr double kSlack = 0.002;
// See IsSliceOverhead. A slice of one block task an SM may take a hundred launches' worth of its
// share; ten thousand is a stall.
constexpr double kOverheadLeast = -0.5;
constexpr double kOverheadMost = 1e4;
// Samples of one size, dropped ones included, for each that is asked for.
constexpr int kTriesPerSample = 3;
// A first sample so far above the limit needs no second one: a hiccup makes the slice larger than
// need be, never one that costs too much.
constexpr double kFarAbove = 3;
constexpr double kFarAboveNoise = 0.05;

core::LaunchRequest SliceRequest(const CalibrationItem& item, core::LaneIndex lane, int64_t begin,
                                 int64_t count) {
  core::LaunchRequest request = TaskRequest(item, core::Form::kSlice, lane);
  request.block_begin = begin;
  request.parts[0].block_count = count;
  return request;
}

// The first `slices` slices of the task behind each other, as the host sees them.
absl::StatusOr<double> TimeSlices(LaunchTimer& timer, const CalibrationItem& item,
                                  core::LaneIndex lane, int64_t slice, int slices) {
  for (int i = 0; i < slices; ++i) {
    core::LaunchRequest request = SliceRequest(item, lane, i * slice, slice);
    request.more_follows = i + 1 < slices;
    if (absl::Status status = timer.Begin(request); !status.ok()) return status;
  }
  absl::StatusOr<std::vector<TimedLaunch>> done = timer.Finish();
  if (!done.ok()) return done.status();
  return static_cast<double>(done->back().seen_ns - done->front().called_ns);
}

// One slice among others over its share of the whole task, minus 1. The whole task in turn with it:
// both see the same clocks.
absl::StatusOr<double> OverheadOnce(LaunchTimer& timer, const CalibrationItem& item,
                                    core::LaneIndex lane, int64_t slice) {
  const core::Form form = OrdinaryForm(item.kernel);
  absl::StatusOr<double> whole = timer.TimePerLaunch(TaskRequest(item, form, lane), 2);
  if (!whole.ok()) return whole.status();
  const auto slices = static_cast<int>(std::min<int64_t>(kBatchMax, item.block_tasks / slice));
  absl::StatusOr<double> one = TimeSlices(timer, item, lane, slice, 1);
  if (!one.ok()) return one.status();
  absl::StatusOr<double> all = TimeSlices(timer, item, lane, slice, slices);
  if (!all.ok()) return all.status();
  const double each = (*all - *one) / (slices - 1);
  const double share = static_cast<double>(slice) / static_cast<double>(item.block_tasks);
  return each / (*whole * share) - 1;
}

// The overheads of one size, and how many of them were impossible.
class SliceSampler {
 public:
  SliceSampler(LaunchTimer& timer, const CalibrationItem& item, const SliceOptions& options)
      : timer_(timer), item_(item), options_(options) {}

  // The median of the possible samples, infinite without any. After an error every size counts as
  // good, so that the search ends.
  double OverheadOf(int64_t slice) {
    std::vector<double> samples;
    const int tries = std::max(1, options_.repeats) * kTriesPerSample;
    for (int i = 0; i < tries && !Enough(samples); ++i) {
      if (status_.ok()) status_ = timer_.CheckCancelled();
      if (!status_.ok()) return 0;
      absl::StatusOr<double> one = OverheadOnce(timer_, item_, options_.lane, slice);
      if (!one.ok()) {
        status_ = one.status();
        return 0;
      }
      if (IsSliceOverhead(*one)) {
        samples.push_back(*one);
      } else {
        ++dropped_;
      }
    }
    if (samples.empty()) return std::numeric_limits<double>::infinity();
    return Median(std::move(samples));
  }

  const absl::Status& status() const { return status_; }
  int dropped() const { return dropped_; }

 private:
  // Near the limit and below it one sample decides nothing, however little time there is.
  bool Enough(const std::vector<double>& samples) const {
    if (samples.empty()) return false;
    if (samples.size() >= static_cast<size_t>(std::max(1, options_.repeats))) return true;
    const bool far = samples.front() > kFarAbove * options_.overhead_max + kFarAboveNoise;
    return far && !options_.time_left();
  }

  LaunchTimer& timer_;
  const CalibrationItem& item_;
  const SliceOptions& options_;
  absl::Status status_;
  int dropped_ = 0;
};

}  // namespace

bool IsSliceOverhead(double overhead) {
  return overhead >= kOverheadLeast && overhead <= kOverheadMost;
}

absl::StatusOr<SliceChoice> FindSmallestSlice(LaunchTimer& timer, const CalibrationItem& item,
                                              const SliceOptions& options) {
  const int64_t unit = timer.device().capabilities().profile.sm_count;
  const int64_t most = item.block_tasks / 2 / unit;
  if (most < 1) return SliceChoice();
  SliceSampler sampler(timer, item, options);
  const auto overhead_of = [&](uint32_t units) { return sampler.OverheadOf(units * unit); };
  const auto units_most =
      static_cast<uint32_t>(std::min<int64_t>(most, std::numeric_limits<int32_t>::max()));
  const core::OverheadChoice choice =
      core::FindSmallestWithin(1, units_most, options.overhead_max, kSlack, overhead_of);
  if (!sampler.status().ok()) return sampler.status();
  const double overhead = std::isfinite(choice.overhead) ? choice.overhead : 0;
  return SliceChoice{choice.met ? choice.value * unit : 0, overhead, sampler.dropped()};
}

}  // namespace gpushare::models
