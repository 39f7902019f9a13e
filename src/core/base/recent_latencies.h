// The latencies of an app's last queries: quantiles of a window in fixed memory.
//
// Two log-linear histograms: one fills, the one before it is full. Together they hold the last
// kRecentQueries to 2 x kRecentQueries values. A bucket is 1/64 of its values wide, and a quantile
// is interpolated within its bucket. 6 KB an instance; nothing allocates.
//
// Threads: one at a time.

#ifndef GPUSHARE_SRC_CORE_BASE_RECENT_LATENCIES_H_
#define GPUSHARE_SRC_CORE_BASE_RECENT_LATENCIES_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "src/core/base/limits.h"

namespace gpushare::core {

class RecentLatencies {
 public:
  // How far a quantile may be above the value that it is of, as a share.
  static constexpr double kResolution = 1.0 / 64;

  // Values outside 1 us to 17 s count as the nearer end.
  void Add(int64_t value_ns, bool late = false) {
    if (counts_[filling_] >= kRecentQueries) {
      filling_ ^= 1;
      buckets_[filling_].fill(0);
      counts_[filling_] = late_[filling_] = 0;
    }
    ++buckets_[filling_][BucketOf(value_ns)];
    ++counts_[filling_];
    late_[filling_] += late ? 1 : 0;
  }
  void Clear() { *this = RecentLatencies(); }

  int32_t count() const { return counts_[0] + counts_[1]; }
  int32_t late() const { return late_[0] + late_[1]; }

  // The value that a share q of the window is below; 0 when the window is empty.
  double Quantile(double q) const {
    const double rank = std::clamp(q, 0.0, 1.0) * count();
    double before = 0;
    for (size_t bucket = 0; bucket < kBuckets; ++bucket) {
      const double here = buckets_[0][bucket] + buckets_[1][bucket];
      if (here > 0 && before + here >= rank) {
        return First(bucket) + (rank - before) / here * (First(bucket + 1) - First(bucket));
      }
      before += here;
    }
    return 0;
  }

 private:
  static constexpr int kSubBucketBits = 6;
  static constexpr int kLeastBits = 10;  // 1 us
  static constexpr int kMostBits = 34;   // 17 s
  static_assert(kResolution == 1.0 / (1 << kSubBucketBits));
  static constexpr size_t kBuckets = size_t{kMostBits - kLeastBits} << kSubBucketBits;

  static size_t BucketOf(int64_t value_ns) {
    const auto value = static_cast<uint64_t>(
        std::clamp(value_ns, int64_t{1} << kLeastBits, (int64_t{1} << kMostBits) - 1));
    const int octave = static_cast<int>(std::bit_width(value)) - 1;
    const uint64_t within = (value >> (octave - kSubBucketBits)) & ((1U << kSubBucketBits) - 1);
    return (static_cast<size_t>(octave - kLeastBits) << kSubBucketBits) + within;
  }
  static double First(size_t bucket) {
    const auto octave = static_cast<int>(bucket >> kSubBucketBits) + kLeastBits;
    const size_t within = bucket & ((size_t{1} << kSubBucketBits) - 1);
    return std::ldexp(1 + static_cast<double>(within) / (1 << kSubBucketBits), octave);
  }

  std::array<std::array<uint16_t, kBuckets>, 2> buckets_{};
  std::array<int32_t, 2> counts_{};
  std::array<int32_t, 2> late_{};
  size_t filling_ = 0;
};

static_assert(kRecentQueries < (1 << 16));

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_BASE_RECENT_LATENCIES_H_
