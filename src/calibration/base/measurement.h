// What a calibration has measured of one kernel, and of one pair of kernels.
//
// The meters fill these, the checkpoint keeps them, and the profile is made from them. Plain data.

#ifndef GPUSHARE_SRC_CALIBRATION_BASE_MEASUREMENT_H_
#define GPUSHARE_SRC_CALIBRATION_BASE_MEASUREMENT_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "src/core/seams/kernel.h"
#include "src/models/profile/calibration_record.h"
#include "src/models/training/train_durations.h"

namespace gpushare::models {

// Bounds of the lists below; checks.h derives the bytes of a record from them.
inline constexpr int32_t kEvictionSamplesMax = 128;
inline constexpr size_t kPairSplitsMax = 6;
inline constexpr int kPairBlockingSamples = 16;
inline constexpr size_t kSoloSizesMax = 8;
inline constexpr size_t kSoloRepeatsMax = 8;  // of one size; a line forgets what is older

struct KernelMeasurement {
  std::string name;
  core::TaskKind kind = core::TaskKind::kKernel;
  int64_t block_tasks = 0;     // of the sample task
  int64_t solo_ns = 0;         // one launch of the original form on the whole device
  int64_t worker_solo_ns = 0;  // of the worker form; 0 without one
  // Repeats of the original form, size by size. The whole sample task comes first.
  std::vector<SoloSize> solo_sizes;
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
  int64_t slice_block_tasks = 0;  // 0: every slice costs more than the limit
  double slice_overhead = 0;
  int32_t workers_per_sm_least = 0;  // 0: not measured
  int64_t spent_ns = 0;              // device time that the measurement took
  bool rest_measured = false;        // slices and evictions are measured, or the kernel has none
};

// Keeps the durations of one more size, as far as the bounds allow.
inline void AddSoloSize(int64_t block_tasks, absl::Span<const double> durations_ns,
                        KernelMeasurement& out) {
  if (out.solo_sizes.size() >= kSoloSizesMax || durations_ns.empty()) return;
  SoloSize& size = out.solo_sizes.emplace_back();
  size.block_tasks = block_tasks;
  for (const double ns : durations_ns.subspan(0, kSoloRepeatsMax)) {
    size.ns.push_back(std::llround(ns));
  }
}

// An LC kernel beside a BE kernel in the other partition, and behind its eviction.
struct PairMeasurement {
  struct Speed {
    int32_t lc_sms = 0;
    double alone = 0;   // of a query, relative to the whole device
    double beside = 0;  // the same with the BE kernel on the other SMs
  };
  std::string lc, be;
  int64_t query_ns = 0;  // one launch of the LC kernel alone, by its completion's times
  std::vector<Speed> speeds;
  // What the eviction of the BE kernel added to a query, samples in the order taken.
  std::vector<int64_t> blocking_ns;
};

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_CALIBRATION_BASE_MEASUREMENT_H_
