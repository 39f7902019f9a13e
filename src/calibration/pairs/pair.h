// Measures what a BE kernel does to an LC kernel: beside it in the other partition, and by the
// eviction that makes room for the LC kernel.
//
// The LC kernel is a graph or a library call whose speed over SMs is known; the BE kernel is an
// evictable one that runs in the background. Queries run one at a time, as the scheduler will see
// them. A query behind an eviction is timed from its launch call until the host sees its end.
// Threads: one.

#ifndef GPUSHARE_SRC_CALIBRATION_PAIRS_PAIR_H_
#define GPUSHARE_SRC_CALIBRATION_PAIRS_PAIR_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/calibration/base/item.h"
#include "src/calibration/base/measurement.h"
#include "src/calibration/base/options.h"
#include "src/calibration/launch/timing.h"
#include "src/core/seams/device.h"
#include "src/core/state/lanes.h"
#include "src/models/samples/sample_row.h"

namespace gpushare::models {

class PairMeter {
 public:
  // Measurements are those of the items alone. Everything outlives this.
  PairMeter(LaunchTimer& timer, const core::Lanes& lanes, const CalibrationOptions& options,
            const CalibrationItem& lc, const KernelMeasurement& lc_alone, const CalibrationItem& be,
            const KernelMeasurement& be_alone)
      : timer_(timer),
        lanes_(lanes),
        options_(options),
        lc_(lc),
        lc_alone_(lc_alone),
        be_(be),
        be_alone_(be_alone) {}

  absl::StatusOr<PairMeasurement> Measure();

 private:
  double LcSpeedOn(int32_t sms) const;
  // The splits on which the LC kernel keeps most of its speed, the fastest first.
  std::vector<core::SplitView> UsefulSplits() const;
  absl::StatusOr<TimedLaunch> Query(core::LaneIndex lane);
  absl::Status BeginBackground(core::LaneIndex lane);
  absl::Status MeasureSplit(const core::SplitView& split, PairMeasurement& out);
  SampleRow RowOf(const core::SplitView& split, std::vector<double> alone_ns,
                  std::vector<double> beside_ns) const;
  absl::Status MeasureBlocking(PairMeasurement& out);

  LaunchTimer& timer_;
  const core::Lanes& lanes_;
  const CalibrationOptions& options_;
  const CalibrationItem& lc_;
  const KernelMeasurement& lc_alone_;
  const CalibrationItem& be_;
  const KernelMeasurement& be_alone_;
};

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_CALIBRATION_PAIRS_PAIR_H_
