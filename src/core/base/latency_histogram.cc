// Adding, merging and reading a latency histogram (latency_histogram.h describes its buckets).

#include "src/core/base/latency_histogram.h"

#include <algorithm>
#include <cmath>

namespace gpushare::core {
namespace {

void RaiseTo(std::atomic<int64_t>& max, int64_t value) {
  int64_t seen = max.load(std::memory_order_relaxed);
  while (seen < value && !max.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

}  // namespace

static_assert(LatencyHistogram::BucketOf(LatencyHistogram::kLargestTracked) ==
              LatencyHistogram::kBuckets - 1);

void LatencyHistogram::Add(int64_t value_ns) {
  value_ns = std::max<int64_t>(0, value_ns);
  buckets_[BucketOf(value_ns)].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value_ns, std::memory_order_relaxed);
  RaiseTo(max_, value_ns);
  count_.fetch_add(1, std::memory_order_relaxed);
}

void LatencyHistogram::Clear() {
  for (auto& bucket : buckets_) bucket.store(0, std::memory_order_relaxed);
  count_.store(0, std::memory_order_relaxed);
  sum_.store(0, std::memory_order_relaxed);
  max_.store(0, std::memory_order_relaxed);
}

int64_t LatencyHistogram::Quantile(double q) const {
  const int64_t count = Count();
  if (count == 0) return 0;
  const double clamped = q >= 0 ? std::min(q, 1.0) : 0.0;  // NaN: 0
  // The margin keeps 0.07 x 100 = 7.000000000000001 at rank 7.
  const double exact_rank = clamped * static_cast<double>(count) * (1 - 1e-12);
  const auto rank = std::clamp<int64_t>(static_cast<int64_t>(std::ceil(exact_rank)), 1, count);
  if (rank == count) return Max();  // exact, also beyond the range
  int64_t seen = 0;
  for (size_t i = 0; i < kBuckets; ++i) {
    seen += buckets_[i].load(std::memory_order_relaxed);
    if (seen >= rank) {
      return std::min(BucketFirst(i) + (BucketLast(i) - BucketFirst(i)) / 2, Max());
    }
  }
  return Max();
}

}  // namespace gpushare::core
