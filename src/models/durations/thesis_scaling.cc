// Time over SM count; see thesis_scaling.h.

#include "src/models/durations/thesis_scaling.h"

#include <algorithm>
#include <cmath>

namespace gpushare::models {
namespace {

using core::KernelCounters;

// The three constants were fitted to the curves of 45 kernels on an H200; with each kernel left out
// in turn they hardly move (docs/models.md, "Fewer SMs").
constexpr double kDramOfMemory = 0.5;  // share of the DRAM's peak; 0.35 to 0.55 fit equally well
constexpr double kKneeLeast = 0.44;    // share of the SMs that take the whole bandwidth
// At the knee a kernel uses its busiest part of an SM 1 / knee times as much as on the whole
// device, and that use cannot pass 1. It never gets there quite.
constexpr double kKneeOverUse = 1.2;
// calibration/kernel/curves.cc: in proportion, the speed at 0.85 of the SMs is 0.85, far from flat.
constexpr double kFlatShare = 0.85;

// Of what each SM has for itself, the part that is used most.
double BusiestOfSm(const KernelCounters& counters) {
  return std::max({counters.issue, counters.fma, counters.alu, counters.tensor, counters.special,
                   counters.lsu, counters.shared, counters.l1});
}

bool Counts(const TimeOnSms& point) { return point.sms > 0 && point.ns > 0; }

void SetErrors(absl::Span<const TimeOnSms> points, TimeOverSms& fit) {
  double sum = 0;
  int64_t count = 0;
  for (const TimeOnSms& point : points) {
    if (!Counts(point)) continue;
    const double error = std::abs(fit.NsOn(point.sms) / point.ns - 1);
    sum += error;
    fit.error_worst = std::max(fit.error_worst, error);
    ++count;
  }
  if (count > 0) fit.error_mean = sum / static_cast<double>(count);
}

}  // namespace

TimeOverSms FitTimeOverSms(absl::Span<const TimeOnSms> points) {
  // a u + b v = 1 for each point, where u = 1 / (m C) and v = 1 / C.
  double uu = 0;
  double uv = 0;
  double vv = 0;
  double u1 = 0;
  double v1 = 0;
  for (const TimeOnSms& point : points) {
    if (!Counts(point)) continue;
    const double v = 1 / point.ns;
    const double u = v / point.sms;
    uu += u * u;
    uv += u * v;
    vv += v * v;
    u1 += u;
    v1 += v;
  }
  TimeOverSms fit;
  if (vv <= 0) return fit;
  const double determinant = uu * vv - uv * uv;
  // Points of one size tell nothing of another: all time counts as fixed.
  if (determinant <= 1e-12 * uu * vv) {
    fit.b = v1 / vv;
  } else {
    fit.a = (u1 * vv - v1 * uv) / determinant;
    fit.b = (v1 * uu - u1 * uv) / determinant;
    if (fit.b < 0) fit = {u1 / uu, 0, 0, 0};
    if (fit.a < 0) fit = {0, v1 / vv, 0, 0};
  }
  SetErrors(points, fit);
  return fit;
}

double CountedKnee(const KernelCounters& counters) {
  if (!counters.present() || counters.dram < kDramOfMemory) return 1;
  return std::clamp(kKneeOverUse * BusiestOfSm(counters), kKneeLeast, 1.0);
}

Intensity CountedIntensity(const KernelCounters& counters) {
  if (!counters.present()) return Intensity::kUnknown;
  return CountedKnee(counters) <= kFlatShare ? Intensity::kMemory : Intensity::kCompute;
}

double CountedSpeedOnSms(const KernelCounters& counters, int32_t sms, int32_t sm_count) {
  if (sms <= 0 || sm_count <= 0) return 0;
  return std::min(1.0, sms / (CountedKnee(counters) * sm_count));
}

}  // namespace gpushare::models
