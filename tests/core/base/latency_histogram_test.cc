// The histogram against exact quantiles, and its buckets against their definition.

#include "src/core/base/latency_histogram.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <thread>
#include <vector>

#include "src/core/base/limits.h"

namespace gpushare::core {
namespace {

// Half a bucket: 1/256, under the 1 % that reports promise.
constexpr double kRelativeError = 1.0 / 256;

int64_t ExactQuantile(std::vector<int64_t> values, double q) {
  std::sort(values.begin(), values.end());
  const auto count = static_cast<double>(values.size());
  const auto rank = static_cast<size_t>(std::max(1.0, std::ceil(q * count * (1 - 1e-12))));
  return values[rank - 1];
}

TEST(LatencyHistogram, BucketsTileTheRangeWithoutGapOrOverlap) {
  int64_t next = 0;
  for (size_t bucket = 0; bucket < LatencyHistogram::kBuckets; ++bucket) {
    const int64_t first = LatencyHistogram::BucketFirst(bucket);
    const int64_t last = LatencyHistogram::BucketLast(bucket);
    ASSERT_EQ(first, next) << bucket;
    ASSERT_GE(last, first) << bucket;
    ASSERT_EQ(LatencyHistogram::BucketOf(first), bucket);
    ASSERT_EQ(LatencyHistogram::BucketOf(last), bucket);
    // At most 1/128 of the values that it holds.
    ASSERT_LE((last - first + 1) * 128, std::max<int64_t>(128, first)) << bucket;
    next = last + 1;
  }
  EXPECT_EQ(next, LatencyHistogram::kLargestTracked + 1);
  EXPECT_GT(LatencyHistogram::kLargestTracked, kMaxDurationNs);
}

TEST(LatencyHistogram, EmptyIsZero) {
  const LatencyHistogram histogram;
  EXPECT_EQ(histogram.Count(), 0);
  EXPECT_EQ(histogram.Quantile(0.99), 0);
  EXPECT_EQ(histogram.Max(), 0);
}

TEST(LatencyHistogram, SmallValuesAreExact) {
  LatencyHistogram histogram;
  for (int64_t value = 1; value <= 100; ++value) histogram.Add(value);
  EXPECT_EQ(histogram.Quantile(0), 1);
  EXPECT_EQ(histogram.Quantile(0.07), 7) << "0.07 x 100 rounds up in floating point";
  EXPECT_EQ(histogram.Quantile(0.5), 50);
  EXPECT_EQ(histogram.Quantile(0.99), 99);
  EXPECT_EQ(histogram.Quantile(1), 100);
  EXPECT_EQ(histogram.Sum(), 5050);
}

TEST(LatencyHistogram, OddArgumentsAreClamped) {
  LatencyHistogram histogram;
  histogram.Add(-5);
  histogram.Add(10);
  EXPECT_EQ(histogram.Quantile(-1), 0);
  EXPECT_EQ(histogram.Quantile(2), 10);
  EXPECT_EQ(histogram.Quantile(std::nan("")), 0);
}

TEST(LatencyHistogram, AValueBeyondTheRangeIsCountedAndItsMaximumIsExact) {
  LatencyHistogram histogram;
  const int64_t day = int64_t{86400} * 1'000'000'000;
  histogram.Add(1000);
  histogram.Add(day);
  EXPECT_EQ(histogram.Count(), 2);
  EXPECT_EQ(histogram.Max(), day);
  EXPECT_EQ(histogram.Quantile(1), day);
}

TEST(LatencyHistogram, ClearForgetsEverything) {
  LatencyHistogram histogram;
  histogram.Add(123456);
  histogram.Clear();
  EXPECT_EQ(histogram.Count(), 0);
  EXPECT_EQ(histogram.Sum(), 0);
  EXPECT_EQ(histogram.Max(), 0);
  histogram.Add(1'000'000);
  histogram.Add(2'000'000);
  EXPECT_NEAR(static_cast<double>(histogram.Quantile(0.5)), 1e6, 1e6 * kRelativeError)
      << "the old value is counted";
}

TEST(LatencyHistogram, ThreadsLoseNoValue) {
  const auto histogram = std::make_unique<LatencyHistogram>();
  constexpr int kThreads = 4;
  constexpr int kValues = 20000;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kValues; ++i) histogram->Add(int64_t{1000} * (t + 1));
    });
  }
  for (int i = 0; i < 100; ++i) {
    EXPECT_LE(histogram->Quantile(0.5), 4000 * 1.01);
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(histogram->Count(), kThreads * kValues);
  EXPECT_EQ(histogram->Sum(), int64_t{kValues} * (1000 + 2000 + 3000 + 4000));
  EXPECT_EQ(histogram->Max(), 4000);
  // The last value of each size has the rank of a quantile: one lost value moves it to the next.
  for (int t = 0; t + 1 < kThreads; ++t) {
    const double exact = 1000.0 * (t + 1);
    EXPECT_NEAR(static_cast<double>(histogram->Quantile((t + 1.0) / kThreads)), exact,
                exact * kRelativeError);
  }
}

// Durations from nanoseconds to an hour, all orders of magnitude alike.
rc::Gen<int64_t> Duration() {
  return rc::gen::mapcat(rc::gen::inRange(1, LatencyHistogram::kValueBits),
                         [](int bits) { return rc::gen::inRange<int64_t>(0, int64_t{1} << bits); });
}

RC_GTEST_PROP(LatencyHistogramProperty, QuantilesAgreeWithExactOnes, ()) {
  const auto values = *rc::gen::nonEmpty(rc::gen::container<std::vector<int64_t>>(Duration()));
  LatencyHistogram histogram;
  for (int64_t value : values) histogram.Add(value);
  for (double q : {0.0, 0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const auto exact = static_cast<double>(ExactQuantile(values, q));
    const auto got = static_cast<double>(histogram.Quantile(q));
    RC_ASSERT(std::abs(got - exact) <= std::max(0.5, kRelativeError * exact));
  }
  RC_ASSERT(histogram.Count() == static_cast<int64_t>(values.size()));
  RC_ASSERT(histogram.Max() == *std::max_element(values.begin(), values.end()));
}

}  // namespace
}  // namespace gpushare::core
