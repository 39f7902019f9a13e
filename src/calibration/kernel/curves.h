// What the measured speeds of a kernel say about it, over workers an SM and over numbers of SMs.
//
// docs/calibration.md has the formulas. A speed is relative to all workers, or to the whole device.
// Pure functions of measured values. Threads: any.

#ifndef GPUSHARE_SRC_CALIBRATION_KERNEL_CURVES_H_
#define GPUSHARE_SRC_CALIBRATION_KERNEL_CURVES_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "src/core/seams/kernel.h"
#include "src/models/profile/calibration_record.h"

namespace gpushare::models {

// Sizes at which the speed is a local maximum: at least 3 % above the lowest speed on the way to
// any faster size. The whole device is never one.
std::vector<int32_t> FindKnees(absl::Span<const core::SpeedPoint> speed);

// The s that fits speed = min(1, occupancy / s) best. speeds[w] is measured at w + 1 workers an SM
// and relative to all of them; 0 marks what was not measured.
double FitSaturatingOccupancy(absl::Span<const double> speeds);

// The fewest workers an SM that lose at most `loss` of the full speed, as do all larger numbers.
// speeds[w] is the speed of w + 1 workers, 0 where it was not measured; 0 without a measurement.
int32_t FewestWorkers(absl::Span<const double> speeds, double loss);

// Applies definition 1 (Intensity) to a measured curve. For a memory-intensive kernel
// `*flat_from_sms` gets the number of SMs beyond which no size is faster by more than noise.
Intensity IntensityOf(absl::Span<const core::SpeedPoint> speed, int32_t* flat_from_sms);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_CALIBRATION_KERNEL_CURVES_H_
