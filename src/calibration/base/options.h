// How a calibration measures: its options, and the progress that it reports to the caller.
//
// The caller fills the options, which outlive the call. Threads: the callbacks run on the thread
// that calls Calibrate().

#ifndef GPUSHARE_SRC_CALIBRATION_BASE_OPTIONS_H_
#define GPUSHARE_SRC_CALIBRATION_BASE_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "src/calibration/base/item.h"
#include "src/calibration/base/measurement.h"
#include "src/models/samples/sample_row.h"

namespace gpushare::models {

inline constexpr int32_t kCalibrationRepeatsMax = 101;
inline constexpr size_t kCalibrationFusedMax = 1024;

// Buffers for the copy rates. Without them copies are measured on a simulated device only.
struct CalibrationBuffers {
  void* device = nullptr;
  void* pinned_host = nullptr;
  void* pageable_host = nullptr;
  int64_t bytes = 0;  // of each; half of it moves each way where both directions are measured
};

struct CalibrationProgress {
  int32_t done = 0;
  int32_t total = 0;
  std::string what;                           // "device", a kernel's name, the names of a pair
  const KernelMeasurement* kernel = nullptr;  // the kernel that is now measured completely
  bool kept = false;                          // the measurement comes from the checkpoint
};

struct CalibrationOptions {
  int32_t repeats = 7;             // samples of each duration; the median counts
  int32_t evictions = 100;         // evictions of each kernel; at most kEvictionSamplesMax
  double seconds_per_kernel = 30;  // device time; a first sample of everything is always taken
  // Device time of this call, 0: no bound. The stages share it (plan.h). A measurement that has
  // begun is completed, at least one is made, and the result lists what was not reached.
  double seconds_total = 0;
  double slice_overhead_max = 0.02;
  std::vector<CalibrationFused> fused;
  int64_t hang_limit_ns = int64_t{10} * 1000 * 1000 * 1000;  // of one launch
  uint64_t seed = 1;                                         // of the moments of evictions
  CalibrationBuffers buffers;
  std::string output_path;  // empty: nothing is written and nothing can be resumed
  bool resume = false;      // continue from the checkpoint, if there is one
  // Gets the repeats of durations, speeds, pairs, copies and fused kernels (docs/samples.md), and
  // makes the calibration time more sizes, load ratios and copies, which only models need. Empty:
  // neither.
  std::function<void(const SampleRow&)> sample;
  std::function<bool()> cancelled;  // called between samples
  std::function<void(const CalibrationProgress&)> progress;
};

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_CALIBRATION_BASE_OPTIONS_H_
