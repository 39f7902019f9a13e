// Time over SM count, as in the thesis on predictable GPUs (3.3): a line over 1 / m, and the two
// kinds of kernels.
//
//   C(m) = a / m + b                    3.3.2; one fit without a conflict, another one with it
//   memory-intensive                    definition 1: beyond a knee, more SMs do not help
//
// The kinds are decided by counters here, and by a measured curve in
// src/calibration/kernel/curves.h. The knee is ours: docs/models.md, "Fewer SMs", has the errors of
// all this. Pure. Threads: any.

#ifndef GPUSHARE_SRC_MODELS_DURATIONS_THESIS_SCALING_H_
#define GPUSHARE_SRC_MODELS_DURATIONS_THESIS_SCALING_H_

#include <cstdint>

#include "absl/types/span.h"
#include "src/core/seams/kernel.h"
#include "src/models/profile/calibration_record.h"

namespace gpushare::models {

struct TimeOnSms {
  int32_t sms = 0;
  double ns = 0;
};

// C(m) in ns. A fit to nothing has a = b = 0.
struct TimeOverSms {
  double a = 0;            // ns x SMs
  double b = 0;            // ns
  double error_mean = 0;   // relative, of the points that were fitted
  double error_worst = 0;  // the same
  double NsOn(int32_t sms) const { return sms > 0 ? a / sms + b : 0; }
};

// Least squares of relative errors; a and b are not negative. Points without SMs or time do not
// count.
TimeOverSms FitTimeOverSms(absl::Span<const TimeOnSms> points);

// The share of the device's SMs beyond which more do not help a kernel; 1: it is compute-intensive.
double CountedKnee(const core::KernelCounters& counters);

// Definition 1 by counters; kUnknown: nobody counted.
Intensity CountedIntensity(const core::KernelCounters& counters);

// Speed relative to the whole device: in proportion up to the knee, 1 beyond. Without counters it
// is in proportion to the SMs.
double CountedSpeedOnSms(const core::KernelCounters& counters, int32_t sms, int32_t sm_count);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_DURATIONS_THESIS_SCALING_H_
