// What curves of speeds say; see curves.h.

#include "src/calibration/kernel/curves.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace gpushare::models {
namespace {

constexpr double kKneeProminence = 0.03;
// A smaller gain beyond a size is noise or the effect of shared caches.
constexpr double kFlatGain = 0.03;
// The size from which a memory-intensive kernel gains nothing is at most this share of the SMs.
// In proportion to SMs, the speed there is 0.85: far from flat.
constexpr double kFlatShare = 0.85;

}  // namespace

std::vector<int32_t> FindKnees(absl::Span<const core::SpeedPoint> speed) {
  std::vector<int32_t> knees;
  // The lowest speed on the way from i in one direction to a size that is faster.
  auto lowest = [&](size_t i, int step) {
    double low = speed[i].speed;
    auto at = static_cast<std::ptrdiff_t>(i) + step;
    for (; at >= 0 && at < static_cast<std::ptrdiff_t>(speed.size()); at += step) {
      if (speed[static_cast<size_t>(at)].speed > speed[i].speed) return low;
      low = std::min(low, speed[static_cast<size_t>(at)].speed);
    }
    return low;
  };
  for (size_t i = 1; i + 1 < speed.size(); ++i) {
    const double own = speed[i].speed;
    if (own <= speed[i - 1].speed || own < speed[i + 1].speed) continue;
    const double base = std::max(lowest(i, -1), lowest(i, 1));
    if (own - base >= kKneeProminence * own) knees.push_back(speed[i].sms);
  }
  return knees;
}

double FitSaturatingOccupancy(absl::Span<const double> speeds) {
  constexpr double kStep = 0.005;
  const double workers = static_cast<double>(speeds.size());
  double best = 1;
  double best_error = -1;
  // From 1 downwards: of values that fit equally well, the largest assumes least.
  for (double s = 1; s > kStep; s -= kStep) {
    double error = 0;
    for (size_t w = 0; w < speeds.size(); ++w) {
      if (speeds[w] <= 0) continue;
      const double model = std::min(1.0, (static_cast<double>(w) + 1) / workers / s);
      error += (speeds[w] - model) * (speeds[w] - model);
    }
    if (best_error < 0 || error < best_error - 1e-12) {
      best = s;
      best_error = error;
    }
  }
  return best;
}

int32_t FewestWorkers(absl::Span<const double> speeds, double loss) {
  int32_t fewest = 0;
  for (size_t i = speeds.size(); i > 0; --i) {
    const double speed = speeds[i - 1];
    if (speed <= 0) continue;
    if (speed < speeds.back() * (1 - loss)) break;
    fewest = static_cast<int32_t>(i);
  }
  return fewest;
}

Intensity IntensityOf(absl::Span<const core::SpeedPoint> speed, int32_t* flat_from_sms) {
  *flat_from_sms = 0;
  if (speed.empty()) return Intensity::kUnknown;
  const double limit = kFlatShare * speed.back().sms;
  // Without a size below the limit, a curve of one point would look flat.
  if (speed.front().sms > limit) return Intensity::kUnknown;
  double best = 0;
  for (const core::SpeedPoint& point : speed) best = std::max(best, point.speed);
  for (const core::SpeedPoint& point : speed) {
    if (point.speed < best * (1 - kFlatGain)) continue;
    if (point.sms > limit) break;
    *flat_from_sms = point.sms;
    return Intensity::kMemory;
  }
  return Intensity::kCompute;
}

}  // namespace gpushare::models
