// Measures a kernel beside copies, and copies beside the kernel: rows for models, nothing else.
//
// A stage of a kernel (kernel.h), after its evictions and sizes. Threads: one.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "src/calibration/kernel/kernel_stages.h"
#include "src/calibration/launch/repeat.h"
#include "src/calibration/launch/request.h"
#include "src/core/base/status.h"

namespace gpushare::models {
namespace {

using core::CopyDirection;

// The kernel has begun on every SM when the copy does.
constexpr core::TimeNs kSettleNs = 200'000;
// Sizes of the copies, and what share of the kernel's time one of them may take.
constexpr int64_t kLeastBytes = int64_t{64} << 10;
constexpr int64_t kStep = 8;
constexpr double kShareMost = 0.5;
// Of the kernel that is timed beside a copy: long against a launch, short against the copy.
constexpr double kKernelNs = 1e6;
constexpr int kRepeatsMost = 5;
constexpr int kWarmUps = 1;

constexpr BufferCopy kCopies[] = {{CopyDirection::kHostToDevice, true},
                                  {CopyDirection::kDeviceToHost, true},
                                  {CopyDirection::kHostToDevice, false},
                                  {CopyDirection::kDeviceToHost, false}};

class BesideCopies {
 public:
  BesideCopies(KernelRun& run, double worker_ns) : run_(run), worker_ns_(worker_ns) {}

  absl::Status Measure() {
    const int64_t most = run_.options.buffers.bytes / 2;
    for (const BufferCopy& copy : kCopies) {
      if (!HasBuffers(run_.timer.device(), run_.options.buffers, copy.pinned)) continue;
      for (int64_t bytes = kLeastBytes; bytes <= most; bytes *= kStep) {
        GPUSHARE_ASSIGN_OR_RETURN(const bool fits, MeasureCopy(copy, bytes));
        if (!fits) break;
      }
      GPUSHARE_RETURN_IF_ERROR(MeasureKernel({copy}));
    }
    if (!HasBuffers(run_.timer.device(), run_.options.buffers, true)) return absl::OkStatus();
    return MeasureKernel({kCopies[0], kCopies[1]});
  }

 private:
  core::LaunchRequest RequestOf(const BufferCopy& copy, int64_t bytes, size_t index) const {
    const core::LaneIndex lane =
        run_.lanes.Pick(core::kWholeDevice, core::LaneClass::kCopy, static_cast<uint32_t>(index));
    return BufferCopyRequest(run_.options.buffers, copy, bytes, lane);
  }

  absl::StatusOr<double> TimeCopy(const core::LaunchRequest& request) {
    GPUSHARE_ASSIGN_OR_RETURN(const TimedLaunch one, run_.timer.RunOne(request));
    return one.round_trip_ns();
  }

  static SampleRow RowOf(SampleKind what, const BufferCopy& copy, int64_t bytes) {
    SampleRow row;
    row.what = what;
    row.to_device = copy.direction == CopyDirection::kHostToDevice;
    row.pinned = copy.pinned;
    row.bytes = bytes;
    return row;
  }

  // Hands the row on with the repeats of both, if any counted.
  void Sample(SampleRow row, std::vector<double> alone_ns, std::vector<double> beside_ns) const {
    if (beside_ns.empty()) return;
    row.alone_ns = std::move(alone_ns);
    row.ns = std::move(beside_ns);
    run_.Sample(row);
  }

  int Repeats() const { return std::min(run_.options.repeats, kRepeatsMost); }

  // The copy alone and beside the kernel, in turn. False: it takes too long for the kernel.
  absl::StatusOr<bool> MeasureCopy(const BufferCopy& copy, int64_t bytes) {
    const core::LaunchRequest request = RequestOf(copy, bytes, 0);
    GPUSHARE_RETURN_IF_ERROR(TimeCopy(request).status());  // touches the pages
    GPUSHARE_ASSIGN_OR_RETURN(const double estimate_ns, TimeCopy(request));
    if (estimate_ns > kShareMost * worker_ns_) return false;
    const auto take = [&]() -> absl::StatusOr<models::Sample<2>> {
      GPUSHARE_ASSIGN_OR_RETURN(const double alone, TimeCopy(request));
      GPUSHARE_RETURN_IF_ERROR(run_.timer.BeginBackground(run_.Workers(), kSettleNs));
      GPUSHARE_ASSIGN_OR_RETURN(const double beside, TimeCopy(request));
      GPUSHARE_ASSIGN_OR_RETURN(const bool lasted, run_.timer.EndBackground(run_.worker_lane));
      return lasted ? models::Sample<2>{alone, beside} : models::Sample<2>{};
    };
    GPUSHARE_ASSIGN_OR_RETURN(auto repeats, RepeatsOf<2>(run_.timer, Repeats(), take, kWarmUps));
    SampleRow row = RowOf(SampleKind::kCopyBeside, copy, bytes);
    row.neighbour = run_.item.kernel.name;
    row.neighbour_block_tasks = run_.item.block_tasks;
    Sample(std::move(row), std::move(repeats[0]), std::move(repeats[1]));
    return true;
  }

  // A part of the kernel alone and beside copies of half of the buffers. Pinned copies begin first;
  // a pageable copy keeps the host until it is done. A kernel that outlasts a copy does not count.
  absl::Status MeasureKernel(const std::vector<BufferCopy>& copies) {
    const int64_t bytes = run_.options.buffers.bytes / 2;
    const core::LaunchRequest kernel = run_.Workers(PartOfTasks());
    const bool copies_first = copies.front().pinned;
    const size_t kernel_at = copies_first ? copies.size() : 0;
    const auto take = [&]() -> absl::StatusOr<models::Sample<2>> {
      GPUSHARE_ASSIGN_OR_RETURN(const TimedLaunch alone, run_.timer.RunOne(kernel));
      if (!copies_first) GPUSHARE_RETURN_IF_ERROR(run_.timer.Begin(kernel));
      for (size_t i = 0; i < copies.size(); ++i) {
        GPUSHARE_RETURN_IF_ERROR(run_.timer.Begin(RequestOf(copies[i], bytes, i)));
      }
      if (copies_first) GPUSHARE_RETURN_IF_ERROR(run_.timer.Begin(kernel));
      GPUSHARE_ASSIGN_OR_RETURN(const std::vector<TimedLaunch> done, run_.timer.Finish());
      core::TimeNs copies_end = core::kNever;
      for (size_t i = 0; i < done.size(); ++i) {
        if (i != kernel_at) copies_end = std::min(copies_end, done[i].seen_ns);
      }
      if (done[kernel_at].completion.end_ns > copies_end) return models::Sample<2>{};
      return models::Sample<2>{alone.duration_ns(), done[kernel_at].duration_ns()};
    };
    GPUSHARE_ASSIGN_OR_RETURN(auto repeats, RepeatsOf<2>(run_.timer, Repeats(), take, kWarmUps));
    SampleRow row = RowOf(SampleKind::kBesideCopy, copies.front(), bytes);
    row.both_ways = copies.size() > 1;
    row.kernel = run_.item.kernel.name;
    row.form = kernel.form;
    row.block_tasks = kernel.parts[0].block_count;
    row.sms = run_.sm_count;
    Sample(std::move(row), std::move(repeats[0]), std::move(repeats[1]));
    return absl::OkStatus();
  }

  int64_t PartOfTasks() const {
    const double share = std::min(1.0, kKernelNs / worker_ns_);
    const auto part =
        static_cast<int64_t>(std::ceil(share * static_cast<double>(run_.item.block_tasks)));
    return std::clamp(part, std::min(run_.round(), run_.item.block_tasks), run_.item.block_tasks);
  }

  KernelRun& run_;
  const double worker_ns_;  // of the whole sample task
};

}  // namespace

absl::Status MeasureBesideCopies(KernelRun& run, KernelMeasurement& out) {
  const bool enough = run.options.buffers.bytes >= 4 * kLeastBytes && out.worker_solo_ns > 0;
  if (!run.wants_samples() || !run.evictable() || !enough) return absl::OkStatus();
  return BesideCopies(run, static_cast<double>(out.worker_solo_ns)).Measure();
}

}  // namespace gpushare::models
