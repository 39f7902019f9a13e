// What the tests of reservations report: rows for GPUSHARE_RESERVATIONS_JSON, and how they sum up
// what they measured.

#ifndef GPUSHARE_TESTS_CUDA_RESERVATIONS_ROWS_H_
#define GPUSHARE_TESTS_CUDA_RESERVATIONS_ROWS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cuda/reservations_rig.h"

namespace gpushare::cuda {

using Json = nlohmann::ordered_json;

// An eviction of the rig's work: a block task of 100 us, or two segments of 100 us.
inline constexpr uint64_t kEvictionNs = 300'000;

// For a test's name.
std::string NameOfRow(const char* policy, Work work);

// The program writes all rows when its tests have ended.
void AddRow(const Json& row);

// Of no values: 0.
template <class Value>
Value QuantileOf(std::vector<Value> values, double quantile) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const auto last = static_cast<double>(values.size() - 1);
  return values[static_cast<size_t>(quantile * last + 0.5)];
}

inline double Us(int64_t ns) { return static_cast<double>(ns) / 1000; }

}  // namespace gpushare::cuda

#endif  // GPUSHARE_TESTS_CUDA_RESERVATIONS_ROWS_H_
