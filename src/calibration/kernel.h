// Measures one kernel: durations, block tasks, occupancy, speed over SM counts; then, once all
// kernels have these, slices and evictions.
//
// The stages of one kernel share its time; each takes at least a first sample of everything, three
// of what one hiccup would spoil, then repeats until its share is spent. Forms and places are
// interleaved, so that a drift of the clocks meets all of them. Threads: one.
//
// The speed over SM counts is measured in calibration_speed.cc, evictions in
// calibration_evictions.cc, all else in calibration_kernel.cc; what the curves say of the kernel is
// in calibration_curves.h.

#ifndef GPUSHARE_SRC_CALIBRATION_KERNEL_H_
#define GPUSHARE_SRC_CALIBRATION_KERNEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "src/calibration/calibration.h"
#include "src/calibration/timing.h"
#include "src/core/seams/device.h"
#include "src/core/state/lanes.h"

namespace gpushare::models {

// One launch of the whole sample task. The item outlives the request.
core::LaunchRequest TaskRequest(const CalibrationItem& item, core::Form form, core::LaneIndex lane);
// The form that CUDA would launch it in.
core::Form OrdinaryForm(const core::KernelDesc& kernel);
// M: what the descriptor says, and no more than an SM holds.
int32_t WorkersPerSm(const core::KernelDesc& kernel, const core::DeviceProfile& device);
// The PTB overhead within the bounds of a profile.
double RecordedOverhead(const KernelMeasurement& measured);

// Of a kernel's time: durations, workers and speeds; the rest is for slices and evictions.
inline constexpr double kBasicsShare = 0.75;
// Of it, what is spent when the speeds, which are the last of the basics, begin.
inline constexpr double kOccupancyEnd = 0.4;

class KernelMeter {
 public:
  KernelMeter(LaunchTimer& timer, const core::Lanes& lanes, const CalibrationItem& item,
              const CalibrationOptions& options, std::vector<std::string>& notes);

  // Durations, workers and speeds.
  absl::StatusOr<KernelMeasurement> MeasureBasics();
  // Slices and evictions of a kernel whose basics are measured.
  absl::StatusOr<KernelMeasurement> MeasureRest(const KernelMeasurement& basics);

 private:
  struct Size {
    int32_t sms = 0;
    core::LaneIndex lane = core::kNoLane;
    std::vector<double> speeds;
  };

  bool evictable() const { return item_.kernel.evictable; }
  int64_t round() const { return int64_t{out_.workers_per_sm} * sm_count_; }
  using Stage = absl::Status (KernelMeter::*)();
  absl::StatusOr<KernelMeasurement> Run(absl::Span<const Stage> stages);
  // Says what was dropped of what was measured.
  void NoteDropped(int count, const std::string& what);
  // The stage may repeat until this share of the kernel's time, since the first stage, is spent.
  void BeginStage(double share_end);
  bool TimeLeft() const;
  core::LaunchRequest Workers(int64_t block_tasks, int32_t workers) const;
  int BatchFor(double duration_ns) const;

  // Samples that are taken however little time there is: of three, one hiccup decides nothing.
  bool MoreSamples(size_t taken) const;
  bool MoreEvictions(size_t taken) const;

  absl::Status WarmUp();
  absl::Status MeasureSolo();
  void SetOverhead(absl::Span<const double> ratios);
  absl::Status MeasureBlockTask();
  absl::Status BlockTaskOfWorkers();
  absl::Status MeasureOccupancy();
  absl::Status MeasureSpeed();
  std::vector<Size> Sizes(double place_time_ns);
  void AddUnconfinedSizes();
  absl::StatusOr<double> TimeOn(core::LaneIndex lane, int batch);
  absl::Status MeasureSlice();
  absl::Status MeasureEvictions();
  // One whole task, evicted and resumed until it is done.
  absl::Status EvictOneTask(std::vector<int64_t>& samples);
  double RandomShare();

  LaunchTimer& timer_;
  const core::Lanes& lanes_;
  const CalibrationItem& item_;
  const CalibrationOptions& options_;
  std::vector<std::string>& notes_;
  const int32_t sm_count_;
  core::LaneIndex plain_lane_ = core::kNoLane;
  core::LaneIndex worker_lane_ = core::kNoLane;
  KernelMeasurement out_;
  std::vector<int32_t> unconfined_;  // sizes that the kernel leaves for the whole device
  double first_ns_ = 0;              // one warm launch, as the host sees it
  core::TimeNs begun_ns_ = 0;
  core::TimeNs stage_end_ns_ = 0;
  uint64_t random_ = 1;
};

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_CALIBRATION_KERNEL_H_
