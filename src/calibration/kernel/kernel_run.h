// What all stages of measuring one kernel share: its lanes, its requests, and its share of the
// time.
//
// The stages of one kernel divide its time. Each takes at least a first sample of everything, and
// repeats until its share is spent. Threads: one.

#ifndef GPUSHARE_SRC_CALIBRATION_KERNEL_KERNEL_RUN_H_
#define GPUSHARE_SRC_CALIBRATION_KERNEL_KERNEL_RUN_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "src/calibration/base/item.h"
#include "src/calibration/base/notes.h"
#include "src/calibration/base/options.h"
#include "src/calibration/launch/timing.h"
#include "src/core/seams/device.h"
#include "src/core/state/lanes.h"
#include "src/models/samples/sample_row.h"

namespace gpushare::models {

// Shares of a kernel's time that are spent when a stage ends. The basics (durations, workers,
// speeds) are measured in one call and the rest (slices, evictions) in a later one, which counts
// from 0 again.
inline constexpr double kBasicsShare = 0.75;
inline constexpr double kSoloEnd = 0.15;
inline constexpr double kBlockTaskEnd = 0.3;
inline constexpr double kWorkersEnd = 0.4;
inline constexpr double kSpeedEnd = kBasicsShare;
inline constexpr double kSliceEnd = 0.1;
inline constexpr double kEvictionEnd = 1 - kBasicsShare;

class KernelRun {
 public:
  // The time counts from here. Everything outlives this.
  KernelRun(LaunchTimer& launch_timer, const core::Lanes& device_lanes,
            const CalibrationItem& sample, const CalibrationOptions& calibration_options,
            Notes& result_notes);

  bool evictable() const { return item.kernel.evictable; }
  // Block tasks that the whole device runs at once.
  int64_t round() const { return int64_t{workers_per_sm} * sm_count; }

  // The stage that begins may repeat until this share of the kernel's time is spent.
  void BeginStage(double share_end);
  core::TimeNs TimeLeftNs() const { return stage_end_ns_ - timer.device().NowNs(); }
  bool TimeLeft() const { return TimeLeftNs() > 0; }
  core::TimeNs SpentNs() const { return timer.device().NowNs() - begun_ns_; }
  // Whether to take a further of at most `most` samples: the first `least` of them in any case.
  bool TakeMore(size_t taken, size_t least, int32_t most) const;
  // The same for `options.repeats` samples of a duration.
  bool TakeMore(size_t taken) const;

  core::LaunchRequest Ordinary() const;
  core::LaunchRequest Workers(int64_t block_tasks, int32_t workers = 0) const;
  core::LaunchRequest Workers() const { return Workers(item.block_tasks); }
  // Launches of a batch that lasts long enough to be timed by the host.
  int BatchFor(double duration_ns) const;

  // Hands a row on, if anybody wants rows.
  bool wants_samples() const { return options.sample != nullptr; }
  void Sample(const SampleRow& row) const {
    if (wants_samples()) options.sample(row);
  }
  // Durations of a launch alone, on `sms` SMs (0: the whole device).
  SampleRow SoloRow(const core::LaunchRequest& request, std::vector<double> durations_ns,
                    int32_t sms = 0) const;

  void NoteImpossible(size_t count, absl::string_view what) const;

  LaunchTimer& timer;
  const core::Lanes& lanes;
  const CalibrationItem& item;
  const CalibrationOptions& options;
  Notes& notes;
  const int32_t sm_count;
  const int32_t workers_per_sm;       // M
  const core::LaneIndex plain_lane;   // whole device, without an eviction word
  const core::LaneIndex worker_lane;  // whole device

 private:
  core::TimeNs begun_ns_ = 0;
  core::TimeNs stage_end_ns_ = 0;
};

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_CALIBRATION_KERNEL_KERNEL_RUN_H_
