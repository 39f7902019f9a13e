// Measures what a BE kernel does to an LC kernel: beside it in the other partition, and by the
// eviction that makes way for it.
//
// An LC kernel is a graph or a library call, whose speed over SMs is known by now; a BE kernel is
// an evictable one, which runs in the background. Durations are those of single queries, as a
// scheduler's completions tell them; a query that waits for an eviction is timed from its launch
// call until the host has seen the end. Threads: one.

#ifndef GPUSHARE_SRC_CALIBRATION_PAIR_H_
#define GPUSHARE_SRC_CALIBRATION_PAIR_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/calibration/calibration.h"
#include "src/calibration/timing.h"
#include "src/core/seams/device.h"
#include "src/core/state/lanes.h"

namespace gpushare::models {

// What a record of a pair has at most: calibration_checks.h counts its bytes with these.
inline constexpr size_t kPairSplitsMax = 6;
inline constexpr int kPairBlockingSamples = 16;

class PairMeter {
 public:
  PairMeter(LaunchTimer& timer, const core::Lanes& lanes, const CalibrationOptions& options)
      : timer_(timer), lanes_(lanes), options_(options) {}

  // `measured` is the LC kernel's; splits on which it keeps most of it are measured.
  absl::StatusOr<PairMeasurement> Measure(const CalibrationItem& lc,
                                          const KernelMeasurement& measured,
                                          const CalibrationItem& be);

 private:
  absl::StatusOr<TimedLaunch> Query(const CalibrationItem& lc, core::LaneIndex lane);
  absl::Status BeginBackground(const CalibrationItem& be, core::LaneIndex lane);
  absl::Status MeasureSplit(const CalibrationItem& lc, const CalibrationItem& be,
                            const core::SplitView& split, PairMeasurement& out);
  absl::Status MeasureBlocking(const CalibrationItem& lc, const CalibrationItem& be,
                               PairMeasurement& out);

  LaunchTimer& timer_;
  const core::Lanes& lanes_;
  const CalibrationOptions& options_;
};

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_CALIBRATION_PAIR_H_
