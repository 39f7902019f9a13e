#include "tools/gpushare/datacenter/gpu_figures.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace gpushare::tool {

double GpuFigures::BeTime() const {
  if (colocations.empty()) return 0;
  double sum = 0;
  for (const ColocationFigures& one : colocations) sum += one.be_time;
  return sum / static_cast<double>(colocations.size());
}

int64_t PooledQuantile(const std::vector<const SortedLatencies*>& parts, double fraction) {
  size_t count = 0;
  for (const SortedLatencies* part : parts) count += part->size();
  if (count == 0) return 0;
  // Nearest rank, with the slack of Quantile().
  const double rank = std::ceil(fraction * static_cast<double>(count) - 1e-9);
  const size_t place = static_cast<size_t>(std::clamp(rank, 1.0, static_cast<double>(count)));
  std::vector<size_t> left;  // of each part: samples not passed yet
  left.reserve(parts.size());
  for (const SortedLatencies* part : parts) left.push_back(part->size());
  int64_t largest = 0;
  for (size_t passed = 0; passed + place <= count; ++passed) {
    size_t best = parts.size();
    for (size_t i = 0; i < parts.size(); ++i) {
      if (left[i] == 0) continue;
      const int64_t sample = (*parts[i])[left[i] - 1];
      if (best < parts.size() && sample <= largest) continue;
      best = i;
      largest = sample;
    }
    --left[best];
  }
  return largest;
}

Latency LatencyOf(const std::vector<const SortedLatencies*>& parts, int64_t limit_ns) {
  Latency out;
  out.limit_ns = limit_ns;
  out.p99_ns = PooledQuantile(parts, 0.99);
  for (const SortedLatencies* part : parts) {
    out.queries += static_cast<int64_t>(part->size());
    out.late += part->end() - std::upper_bound(part->begin(), part->end(), limit_ns);
  }
  return out;
}

}  // namespace gpushare::tool
