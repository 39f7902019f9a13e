// Calibration: measures kernels and primitives of one device and fills a profile with them.
//
// Beside the flow, never in it: the device is exclusive (no scheduler on it), the caller's thread
// drives it, and calls block for seconds. Works on every device behind core::Device, so that the
// simulated device, whose truth is known, tests it. Invariants: every wait is bounded; a stage of a
// kernel is measured whole or not at all; what can be refused is refused before the first
// measurement, and no measurement is kept that a profile's reader would refuse; a checkpoint is on
// disk, which a later call with `resume` goes on from, until everything is measured.
// docs/calibration.md says what is measured and how.

#ifndef GPUSHARE_SRC_CALIBRATION_CALIBRATION_H_
#define GPUSHARE_SRC_CALIBRATION_CALIBRATION_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "src/core/seams/device.h"
#include "src/core/seams/kernel.h"
#include "src/models/calibration_record.h"
#include "src/models/profile.h"

namespace gpushare::models {

// A kernel and one sample task of it. Arguments and buffers stay the caller's until Calibrate
// returns; the task runs many times, so its result must not depend on how often.
struct CalibrationItem {
  core::KernelDesc kernel;
  std::vector<unsigned char> arguments;
  int64_t block_tasks = 0;  // kKernel: blocks of the original grid
  int32_t grid_x = 0, grid_y = 0, grid_z = 0;
};

// A fused kernel of two items.
struct CalibrationFused {
  core::FusedKernelDesc kernel;  // the parts' identifiers are filled in
  size_t tensor_item = 0;
  size_t cuda_item = 0;
  int32_t local_bytes = 0;  // local memory of a thread; above 0: it spills and is not measured
};

// Buffers for the copy rates; null pointers measure copies on a simulated device only.
struct CalibrationBuffers {
  void* device = nullptr;
  void* pinned_host = nullptr;
  void* pageable_host = nullptr;
  int64_t bytes = 0;  // of each; half of it moves each way where both ways are measured
};

struct KernelMeasurement {
  std::string name;
  core::TaskKind kind = core::TaskKind::kKernel;
  int64_t block_tasks = 0;     // of the sample task
  int64_t solo_ns = 0;         // one launch of the original form on the whole device
  int64_t worker_solo_ns = 0;  // of the worker form; 0 without one
  int64_t block_task_ns = 0;
  double block_task_spread = 0;
  int32_t workers_per_sm = 0;  // M
  double worker_overhead = 0;  // PTB overhead; below 0 where workers are faster than the grid
  double saturating_occupancy = 1;
  // From the eviction call to the end of the evicted launch; samples in the order taken.
  int64_t eviction_p50_ns = 0, eviction_p99_ns = 0;
  std::vector<int64_t> eviction_ns;
  std::vector<core::SpeedPoint> speed;
  std::vector<int32_t> knees;  // SM counts
  Intensity intensity = Intensity::kUnknown;
  int32_t flat_from_sms = 0;
  int64_t slice_block_tasks = 0;  // 0: no slice keeps the limit
  double slice_overhead = 0;
  int32_t workers_per_sm_least = 0;  // 0: not measured
  int64_t spent_ns = 0;              // device time that the measurement took
  bool rest_measured = false;        // slices and evictions too, where the kernel has any
};

// An LC kernel beside a BE kernel.
struct PairMeasurement {
  struct Speed {
    int32_t lc_sms = 0;
    double alone = 0;   // of a query, relative to the whole device
    double beside = 0;  // with the BE kernel on the other SMs
  };
  std::string lc, be;
  int64_t query_ns = 0;  // one launch of the LC kernel alone, as a completion tells it
  std::vector<Speed> speeds;
  // What the eviction of the BE kernel added to a query, samples in the order taken.
  std::vector<int64_t> blocking_ns;
};

struct CalibrationProgress {
  int32_t done = 0;
  int32_t total = 0;
  std::string what;                           // "device", the kernel's name, the pair's names
  const KernelMeasurement* kernel = nullptr;  // that has just been measured
  bool kept = false;                          // it comes from the checkpoint
};

struct CalibrationOptions {
  int32_t repeats = 7;             // samples of each duration; the median counts
  int32_t evictions = 100;         // evictions of each kernel; at most kEvictionSamplesMax
  double seconds_per_kernel = 30;  // device time; a first sample of everything is always taken
  // Device time of this call, 0: no bound. The stages share it (calibration_plan.h); a measurement
  // that has begun is ended, and one is made in any case. What is not reached is told.
  double seconds_total = 0;
  double slice_overhead_max = 0.02;
  std::vector<CalibrationFused> fused;
  int64_t hang_limit_ns = int64_t{10} * 1000 * 1000 * 1000;  // of one launch
  uint64_t seed = 1;  // of the moments at which evictions strike
  CalibrationBuffers buffers;
  std::string output_path;          // empty: nothing is written, and nothing can be resumed
  bool resume = false;              // go on from the checkpoint, if there is one
  std::function<bool()> cancelled;  // asked between samples
  std::function<void(const CalibrationProgress&)> progress;  // on the caller's thread
};

inline constexpr int32_t kEvictionSamplesMax = 128;
inline constexpr int32_t kCalibrationRepeatsMax = 101;
inline constexpr size_t kCalibrationFusedMax = 1024;

struct CalibrationResult {
  Profile profile;
  std::vector<KernelMeasurement> kernels;  // that were reached, in the order of the items
  std::vector<PairMeasurement> pairs;      // of every graph or library call and evictable kernel
  int32_t kept = 0;                        // of the kernels, from the checkpoint
  std::vector<std::string> notes;  // what could not be measured or was dropped, one sentence each
  // What there was no time for, or no usable sample of: kernels, "a | b" on partitions, "a + b" on
  // the same SMs, fused kernels. Not empty: the checkpoint stays beside the profile, for `resume`.
  std::vector<std::string> not_reached;
};

// `base` gives what is not measured: the demands of the kernels, the sizes of the GPU, and the
// records of other kernels if it is of the same GPU. On success the profile is at output_path, and
// the checkpoint is gone unless something was not reached.
// Threads: the caller's; the device is used by nobody else. Blocks: yes. Errors: INVALID_ARGUMENT
// options or items; CANCELLED; DEADLINE_EXCEEDED a launch hangs, its lane is given up; UNAVAILABLE
// the device is lost; FAILED_PRECONDITION or DATA_LOSS the checkpoint is of another GPU or corrupt.
absl::StatusOr<CalibrationResult> Calibrate(core::Device& device, const Profile& base,
                                            absl::Span<const CalibrationItem> items,
                                            const CalibrationOptions& options);

// Where the checkpoint of a calibration lies.
std::string CheckpointPath(const std::string& output_path);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_CALIBRATION_CALIBRATION_H_
