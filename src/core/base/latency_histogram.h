// A log-linear histogram of durations: fixed memory, lock-free, relative error under 0.4 %.
//
// Like HdrHistogram: values below 256 ns have a bucket each; every power of two above is cut into
// 128 equal buckets, so a bucket is at most 1/128 of its values wide. A quantile is the middle of
// its bucket, so its error is at most 1/256 of the value. Values above the range (about 73 minutes,
// above kMaxDurationNs) are counted in the last bucket; Max() is exact. 37 KB an instance.
//
// Where in the flow: the complete stage adds, Stats and OpenMetrics read.
// Threads: Add from any, reads from any; a concurrent reader sees some of the newest values and
// not others. Relaxed atomics: counts carry no other data. Nothing allocates.

#ifndef GPUSHARE_SRC_CORE_BASE_LATENCY_HISTOGRAM_H_
#define GPUSHARE_SRC_CORE_BASE_LATENCY_HISTOGRAM_H_

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace gpushare::core {

class LatencyHistogram {
 public:
  static constexpr int kSubBucketBits = 7;
  static constexpr int kValueBits = 42;  // 2^42 ns = 73 minutes
  static constexpr int64_t kLargestTracked = (int64_t{1} << kValueBits) - 1;
  static constexpr size_t kBuckets = size_t{kValueBits - kSubBucketBits + 1} << kSubBucketBits;

  LatencyHistogram() = default;
  LatencyHistogram(const LatencyHistogram&) = delete;
  LatencyHistogram& operator=(const LatencyHistogram&) = delete;

  // Negative values (a clock that jumped) count as 0.
  void Add(int64_t value_ns);

  // Not while others write.
  void Clear();

  int64_t Count() const { return count_.load(std::memory_order_relaxed); }
  int64_t Max() const { return max_.load(std::memory_order_relaxed); }
  int64_t Sum() const { return sum_.load(std::memory_order_relaxed); }

  // The value of rank ceil(q x count), at least 1, in ascending order (nearest rank); q is clamped
  // to 0..1. 0 when empty. Never above Max().
  int64_t Quantile(double q) const;

  // The bucket of a value and the values that a bucket holds, first and last.
  static constexpr size_t BucketOf(int64_t value_ns);
  static constexpr int64_t BucketFirst(size_t bucket);
  static constexpr int64_t BucketLast(size_t bucket);

 private:
  static constexpr size_t kSubBuckets = size_t{1} << kSubBucketBits;

  std::array<std::atomic<int64_t>, kBuckets> buckets_{};
  std::atomic<int64_t> count_{0};
  std::atomic<int64_t> sum_{0};
  std::atomic<int64_t> max_{0};
};

constexpr size_t LatencyHistogram::BucketOf(int64_t value_ns) {
  if (value_ns <= 0) return 0;
  if (value_ns > kLargestTracked) value_ns = kLargestTracked;
  const auto value = static_cast<uint64_t>(value_ns);
  // Shift that leaves kSubBucketBits + 1 leading bits: 128..255, so 128 buckets an octave.
  const int octave = static_cast<int>(std::bit_width(value)) - (kSubBucketBits + 1);
  if (octave <= 0) return static_cast<size_t>(value);
  return (static_cast<size_t>(octave) << kSubBucketBits) + static_cast<size_t>(value >> octave);
}

constexpr int64_t LatencyHistogram::BucketFirst(size_t bucket) {
  const size_t row = bucket >> kSubBucketBits;
  if (row <= 1) return static_cast<int64_t>(bucket);
  const size_t octave = row - 1;
  return static_cast<int64_t>((bucket - (octave << kSubBucketBits)) << octave);
}

constexpr int64_t LatencyHistogram::BucketLast(size_t bucket) {
  return BucketFirst(bucket + 1) - 1;
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_BASE_LATENCY_HISTOGRAM_H_
