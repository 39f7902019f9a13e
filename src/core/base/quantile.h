// Exact quantiles of measured values. Of values that come while a scheduler runs, in fixed memory:
// latency_histogram.h and recent_latencies.h. Pure functions; they allocate. Threads: any.

#ifndef GPUSHARE_SRC_CORE_BASE_QUANTILE_H_
#define GPUSHARE_SRC_CORE_BASE_QUANTILE_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace gpushare::core {

// The value at `index`, less than their count, of the sorted values. Linear time.
template <class T>
T SortedAt(std::vector<T> values, size_t index) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(index);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

// The smallest value that at least `share` (0 to 1) of the values do not exceed; 0 without a value.
template <class T>
T Quantile(std::vector<T> values, double share) {
  if (values.empty()) return T{0};
  const double rank = std::ceil(share * static_cast<double>(values.size()));
  const auto index = static_cast<size_t>(std::max(1.0, rank)) - 1;
  const size_t last = values.size() - 1;
  return SortedAt(std::move(values), std::min(index, last));
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_BASE_QUANTILE_H_
