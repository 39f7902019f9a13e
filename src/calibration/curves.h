// What the measured speeds of a kernel say of it: over workers an SM and over numbers of SMs.
//
// The formulas are those of docs/calibration.md. A speed is relative to all workers, or to the
// whole device. Pure functions of values that were measured before; no device. Threads: any.

#ifndef GPUSHARE_SRC_CALIBRATION_CURVES_H_
#define GPUSHARE_SRC_CALIBRATION_CURVES_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "src/core/seams/kernel.h"
#include "src/models/calibration_record.h"

namespace gpushare::models {

// a / b; 0 where b is no measured value.
double Ratio(double a, double b);

// Expected largest of n draws from a normal distribution, in standard deviations (Cramer). At least
// 1: what is divided by it grows no larger.
double ExpectedMaximum(double n);

// Sizes at which the speed is a local maximum that stands out by at least 3 % of itself from the
// lowest speed on the way to any faster size, the whole device aside.
std::vector<int32_t> FindKnees(absl::Span<const core::SpeedPoint> speed);

// s of speed = min(1, occupancy / s) that fits best, where speeds[w] is measured at w + 1 of
// `workers` workers an SM, relative to all of them; 0 marks what was not measured.
double FitSaturatingOccupancy(absl::Span<const double> speeds);

// speeds[w] at w + 1 workers an SM, 0 where nothing was measured: the fewest that, as all larger
// numbers, keep all but `loss` of the speed of the most. 0 without a measurement.
int32_t FewestWorkers(absl::Span<const double> speeds, double loss);

// Definition 1 on a measured curve: the number of SMs beyond which no size is faster by more than
// noise; `*flat_from_sms` gets it where the kernel is memory-intensive.
Intensity IntensityOf(absl::Span<const core::SpeedPoint> speed, int32_t* flat_from_sms);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_CALIBRATION_CURVES_H_
