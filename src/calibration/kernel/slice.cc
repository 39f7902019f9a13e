// Measures the smallest slice of a kernel whose overhead is small enough (Kernelet 4.1).
//
// A slice is a part of the original grid, launched behind the slice before it. Threads: one.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "src/calibration/kernel/kernel_stages.h"
#include "src/calibration/launch/request.h"
#include "src/core/base/overhead_search.h"
#include "src/core/base/status.h"
#include "src/models/samples/row_times.h"

namespace gpushare::models {
namespace {

// Two measurements of one size differ by so much.
constexpr double kSlack = 0.002;
// Possible overheads. Below the least, slices would be more than twice as fast as the same block
// tasks in one launch. A slice of one block task an SM may take a hundred launches' worth of its
// share; at the most, ten thousand, the host stood still.
constexpr double kOverheadLeast = -0.5;
constexpr double kOverheadMost = 1e4;
constexpr int32_t kRepeatsMost = 3;
// Samples of one size, dropped ones included, for each that is asked for.
constexpr int kTriesPerSample = 3;
// A first sample so far above the limit needs no second one: a stall of the host makes the slice
// larger than necessary, but never one that costs too much.
constexpr double kFarAbove = 3;
constexpr double kFarAboveNoise = 0.05;

// Overheads of slices of one kernel, and how many samples were impossible.
class SliceSampler {
 public:
  explicit SliceSampler(KernelRun& run)
      : run_(run), repeats_(std::max(1, std::min(run.options.repeats, kRepeatsMost))) {}

  // The median of the possible samples, infinite without any. After an error it is 0 for every
  // size, so that the search ends.
  double OverheadOf(int64_t slice) {
    std::vector<double> samples;
    for (int i = 0; i < repeats_ * kTriesPerSample && !Enough(samples); ++i) {
      if (error_.ok()) error_ = run_.timer.CheckCancelled();
      if (!error_.ok()) return 0;
      const absl::StatusOr<double> one = OverheadOnce(slice);
      error_ = one.status();
      if (!error_.ok()) return 0;
      if (*one >= kOverheadLeast && *one <= kOverheadMost) {
        samples.push_back(*one);
      } else {
        ++dropped_;
      }
    }
    if (samples.empty()) return std::numeric_limits<double>::infinity();
    return Median(std::move(samples));
  }

  const absl::Status& error() const { return error_; }
  size_t dropped() const { return dropped_; }

 private:
  // The first `count` slices of the task behind each other, as the host sees them.
  absl::StatusOr<double> TimeSlices(int64_t slice, int count) {
    for (int i = 0; i < count; ++i) {
      core::LaunchRequest request = SliceRequest(run_.item, run_.plain_lane, i * slice, slice);
      request.more_follows = i + 1 < count;
      GPUSHARE_RETURN_IF_ERROR(run_.timer.Begin(request));
    }
    GPUSHARE_ASSIGN_OR_RETURN(const std::vector<TimedLaunch> done, run_.timer.Finish());
    return static_cast<double>(done.back().seen_ns - done.front().called_ns);
  }

  // One slice among others over its share of the whole task, minus 1. The whole task runs in turn
  // with the slices, so that both see the same clocks.
  absl::StatusOr<double> OverheadOnce(int64_t slice) {
    const int64_t tasks = run_.item.block_tasks;
    GPUSHARE_ASSIGN_OR_RETURN(const double whole, run_.timer.TimePerLaunch(run_.Ordinary(), 2));
    const auto count = static_cast<int>(std::min<int64_t>(kBatchMax, tasks / slice));
    GPUSHARE_ASSIGN_OR_RETURN(const double one, TimeSlices(slice, 1));
    GPUSHARE_ASSIGN_OR_RETURN(const double all, TimeSlices(slice, count));
    const double each = (all - one) / (count - 1);
    const double share = static_cast<double>(slice) / static_cast<double>(tasks);
    return each / (whole * share) - 1;
  }

  // Near the limit and below it one sample is not enough, however little time there is.
  bool Enough(const std::vector<double>& samples) const {
    if (samples.empty()) return false;
    if (samples.size() >= static_cast<size_t>(repeats_)) return true;
    const double limit = run_.options.slice_overhead_max;
    return samples.front() > kFarAbove * limit + kFarAboveNoise && !run_.TimeLeft();
  }

  KernelRun& run_;
  const int repeats_;
  absl::Status error_;
  size_t dropped_ = 0;
};

}  // namespace

absl::Status MeasureSlice(KernelRun& run, KernelMeasurement& out) {
  run.BeginStage(kSliceEnd);
  if (!run.evictable() || run.item.block_tasks < run.round()) return absl::OkStatus();
  const int64_t unit = run.sm_count;
  const int64_t most = run.item.block_tasks / 2 / unit;
  if (most < 1) return absl::OkStatus();
  SliceSampler sampler(run);
  const core::OverheadChoice choice = core::FindSmallestWithin(
      1, static_cast<uint32_t>(std::min<int64_t>(most, std::numeric_limits<int32_t>::max())),
      run.options.slice_overhead_max, kSlack,
      [&](uint32_t units) { return sampler.OverheadOf(units * unit); });
  GPUSHARE_RETURN_IF_ERROR(sampler.error());
  run.NoteImpossible(sampler.dropped(), "samples of the overhead of slices");
  out.slice_block_tasks = choice.met ? choice.value * unit : 0;
  out.slice_overhead = std::isfinite(choice.overhead) ? choice.overhead : 0;
  return absl::OkStatus();
}

}  // namespace gpushare::models
