// Exact quantiles of measured values. The library's LatencyHistogram is not used here: its buckets
// are up to 1 % wide, and benchmarks compare differences smaller than that.

#ifndef GPUSHARE_BENCHMARKS_HARNESS_QUANTILES_H_
#define GPUSHARE_BENCHMARKS_HARNESS_QUANTILES_H_

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace gpushare::benchmarks {

// The value whose rank is nearest to `quantile` in [0, 1]: of n sorted values the one at index
// quantile * (n - 1), rounded half up. 0 of no values. Takes a copy; linear time.
template <class T>
T Quantile(std::vector<T> values, double quantile) {
  if (values.empty()) return T{0};
  const double index = quantile * static_cast<double>(values.size() - 1);
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(index + 0.5);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

template <class T>
T Median(std::vector<T> values) {
  return Quantile(std::move(values), 0.5);
}

}  // namespace gpushare::benchmarks

#endif  // GPUSHARE_BENCHMARKS_HARNESS_QUANTILES_H_
