// See quota.h.

#include "benchmarks/gpu/quota.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "benchmarks/kernels/device_buffer.h"

namespace gpushare::quota {

void Fail(const std::string& why) {
  std::fprintf(stderr, "quota_benchmark: %s\n", why.c_str());
  std::exit(1);
}

void Require(const absl::Status& status) {
  if (!status.ok()) Fail(std::string(status.message()));
}

void Require(const kernels::Status& status) {
  if (!status.ok()) Fail(status.message);
}

void Cuda(int code, const char* step) { Require(kernels::CudaStatus(code, step)); }

double Quantile(std::vector<double> values, double quantile) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const auto rank = static_cast<size_t>(std::ceil(quantile * static_cast<double>(values.size())));
  return values[std::min(std::max<size_t>(rank, 1), values.size()) - 1];
}

double Median(std::vector<double> values) { return Quantile(std::move(values), 0.5); }

double Ratio(double value, double reference) { return reference > 0 ? value / reference : 0; }

}  // namespace gpushare::quota
