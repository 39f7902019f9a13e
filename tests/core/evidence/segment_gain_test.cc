// What BE graphs in segments gain beside queries: intervals, the first idea, what is forgotten.

#include "src/core/evidence/segment_gain.h"

#include <gtest/gtest.h>

namespace gpushare::core {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr KernelId kStep{3};
constexpr KernelId kOtherStep{4};
constexpr KernelId kGrid{5};

class SegmentGainTest : public ::testing::Test {
 protected:
  SegmentGainTest() { FollowPlan(gains, SegmentsRun::kBesideQueries, now_ns); }
  // Queries of `lc_ms` and a part of `be_ms`, alone, in an interval of `ms`.
  void Interval(double ms, int64_t lc_ms, double be_ms, KernelId kernel = kStep) {
    const TimeNs launched_ns = now_ns;
    now_ns += static_cast<TimeNs>(ms * kMs);
    NoteLcWork(gains, lc_ms * kMs);
    End(kernel, launched_ns, be_ms);
  }
  // A part of a grid, or of the only graph in segments on the device.
  void End(KernelId kernel, TimeNs launched_ns, double be_ms) {
    NoteBePart(gains, launched_ns, be_ms * kMs, now_ns);
    if (kernel == kGrid) return;
    CreditInterval(gains, kernel, now_ns);
    BeginInterval(gains, now_ns);
  }
  // On a split, whose first time does not count.
  void Settle() {
    for (int64_t ns = 0; ns < kSegmentGainSettleNs; ns += 10 * kMs) Interval(10, 5, 0);
  }
  double Gain(KernelId kernel = kStep) const { return GainOf(gains, kernel, now_ns); }

  TimeNs now_ns = 7 * kMs;
  SegmentGains gains;
};

TEST_F(SegmentGainTest, IsTheFirstIdeaUntilItIsMeasured) {
  EXPECT_DOUBLE_EQ(Gain(), kSegmentGain);
  Interval(10, 5, 6);
  EXPECT_NE(Gain(), kSegmentGain);
  EXPECT_DOUBLE_EQ(Gain(kOtherStep), kSegmentGain);
}

// 5 ms of queries and 6 ms of BE work in 10 ms: 1 ms in 5.
TEST_F(SegmentGainTest, BecomesWhatSharingSavesOfTheTime) {
  for (int i = 0; i < 300; ++i) Interval(10, 5, 6);
  EXPECT_NEAR(Gain(),
              0.2 + (kSegmentGain - 0.2) * kSegmentGainFirstNs /
                        (kSegmentGainFirstNs + kSegmentGainMemoryNs),
              1e-6);
}

TEST_F(SegmentGainTest, TheFirstIdeaCountsAsSomeLcWork) {
  const int64_t first_ms = static_cast<int64_t>(kSegmentGainFirstNs) / kMs;
  Interval(2.0 * static_cast<double>(first_ms), first_ms, 1.2 * static_cast<double>(first_ms));
  EXPECT_NEAR(Gain(), (kSegmentGain + 0.2) / 2, 1e-6);
}

TEST_F(SegmentGainTest, IsNeitherBelowNothingNorAboveAll) {
  for (int i = 0; i < 100; ++i) Interval(20, 5, 6);
  EXPECT_DOUBLE_EQ(Gain(), 0);
  for (int i = 0; i < 200; ++i) Interval(5, 5, 20);
  EXPECT_DOUBLE_EQ(Gain(), 1);
}

TEST_F(SegmentGainTest, FollowsAChange) {
  for (int i = 0; i < 1'000; ++i) Interval(10, 5, 5);
  EXPECT_LT(Gain(), 0.1);
  for (int i = 0; i < 1'000; ++i) Interval(10, 5, 9);
  EXPECT_GT(Gain(), 0.7);
}

// Its work is part of the next interval of a graph.
TEST_F(SegmentGainTest, OtherBeWorkCountsToo) {
  for (int i = 0; i < 300; ++i) {
    Interval(5, 2, 2, kGrid);
    Interval(5, 3, 4);
  }
  EXPECT_NEAR(Gain(), 0.2, 0.05);
}

TEST_F(SegmentGainTest, OnlyWhileSegmentsRunBesideQueries) {
  FollowPlan(gains, SegmentsRun::kNone, now_ns);
  for (int i = 0; i < 100; ++i) Interval(10, 5, 5);
  EXPECT_DOUBLE_EQ(Gain(), kSegmentGain);
  FollowPlan(gains, SegmentsRun::kBesideQueries, now_ns);
  Interval(10, 5, 9);
  // 4 ms of 5, and the first idea.
  const double first_ms = kSegmentGainFirstNs / kMs;
  EXPECT_NEAR(Gain(), (kSegmentGain * first_ms + 4) / (first_ms + 5), 1e-6);
}

// What else was on the device began before, and would count whole.
TEST_F(SegmentGainTest, APartThatWasThereWhenItBeganAnewDoesNotCountEither) {
  const TimeNs launched_ns = now_ns;
  now_ns += 5 * kMs;
  BeginAnew(gains, now_ns);
  now_ns += kMs;
  End(kStep, launched_ns, 6);
  EXPECT_DOUBLE_EQ(Gain(), kSegmentGain);
}

// Two parts at a time, one of them from before.
TEST_F(SegmentGainTest, PartsThatOverlapAreMeasuredAllTheSame) {
  TimeNs launched_ns[] = {now_ns - 20 * kMs, now_ns};
  for (int i = 0; i < 400; ++i) {
    now_ns += 20 * kMs;
    NoteLcWork(gains, 10 * kMs);
    End(kStep, launched_ns[i % 2], 12);
    launched_ns[i % 2] = now_ns;
  }
  EXPECT_NEAR(Gain(), 0.2, 0.1);
}

// Steps of 5 and 40 ms: what both do in the time counts for both.
TEST_F(SegmentGainTest, TwoGraphsHaveTheGainOfBoth) {
  for (int i = 0; i < 400; ++i) {
    const TimeNs launched_ns = now_ns;
    now_ns += 10 * kMs;
    NoteLcWork(gains, 5 * kMs);
    NoteBePart(gains, launched_ns, 5.0 * kMs, now_ns);
    if (i % 20 == 19) NoteBePart(gains, launched_ns, 40.0 * kMs, now_ns);
    for (const KernelId graph : {kStep, kOtherStep}) CreditInterval(gains, graph, now_ns);
    BeginInterval(gains, now_ns);
  }
  EXPECT_NEAR(Gain(kStep), Gain(kOtherStep), 1e-6);
  EXPECT_NEAR(Gain(kStep), 0.4, 0.15);
}

// It ran on a split before.
TEST_F(SegmentGainTest, APartFromBeforeBeginsTheIntervalAnew) {
  NoteLcWork(gains, 50 * kMs);
  const TimeNs before_ns = now_ns - 1;
  now_ns += 100 * kMs;
  End(kStep, before_ns, 100);
  EXPECT_DOUBLE_EQ(Gain(), kSegmentGain);
  const int64_t first_ms = static_cast<int64_t>(kSegmentGainFirstNs) / kMs;
  Interval(2.0 * static_cast<double>(first_ms), first_ms, 1.2 * static_cast<double>(first_ms));
  EXPECT_NEAR(Gain(), (kSegmentGain + 0.2) / 2, 1e-6);
}

// 5 ms of queries and 4 ms of BE work in 10 ms: 1 ms of 5 is lost.
TEST_F(SegmentGainTest, OnASplitItIsMeasuredApart) {
  EXPECT_DOUBLE_EQ(SplitGainOf(gains, kStep, now_ns).known, 0);
  for (int i = 0; i < 100; ++i) Interval(10, 5, 6);
  const double beside = Gain();
  EXPECT_DOUBLE_EQ(SplitGainOf(gains, kStep, now_ns).known, 0);
  FollowPlan(gains, SegmentsRun::kOnSplit, now_ns);
  Settle();
  const int64_t first_ms = static_cast<int64_t>(kSegmentGainFirstNs) / kMs;
  for (int64_t ms = 0; ms < first_ms; ms += 5) Interval(10, 5, 4);
  const SplitGain on_split = SplitGainOf(gains, kStep, now_ns);
  EXPECT_NEAR(on_split.gain, -0.2, 1e-6);
  EXPECT_NEAR(on_split.known, 0.5, 1e-3) << "as much as the first idea";
  EXPECT_NEAR(Gain(), beside, 0.01);
  now_ns += static_cast<TimeNs>(kMeasuredFadesNs);
  EXPECT_DOUBLE_EQ(SplitGainOf(gains, kStep, now_ns).known, 0);
}

TEST_F(SegmentGainTest, BeginningAnewDoesNotShortenTheFirstTimeOnASplit) {
  FollowPlan(gains, SegmentsRun::kOnSplit, now_ns);
  BeginAnew(gains, now_ns);
  Interval(10, 5, 4);
  EXPECT_DOUBLE_EQ(SplitGainOf(gains, kStep, now_ns).known, 0);
}

TEST_F(SegmentGainTest, APartFromTheOtherWayBeginsTheIntervalAnew) {
  const TimeNs launched_ns = now_ns;
  now_ns += 5 * kMs;
  FollowPlan(gains, SegmentsRun::kOnSplit, now_ns);
  Settle();
  NoteLcWork(gains, kMs);
  End(kStep, launched_ns, 6);
  EXPECT_DOUBLE_EQ(SplitGainOf(gains, kStep, now_ns).known, 0);
}

TEST_F(SegmentGainTest, FadesToTheFirstIdea) {
  for (int i = 0; i < 100; ++i) Interval(10, 5, 6);
  const double measured = Gain();
  now_ns += static_cast<TimeNs>(kMeasuredFadesNs / 2);
  EXPECT_GT(Gain(), measured);
  EXPECT_LT(Gain(), kSegmentGain);
  now_ns += static_cast<TimeNs>(kMeasuredFadesNs / 2);
  EXPECT_DOUBLE_EQ(Gain(), kSegmentGain);
  BeginInterval(gains, now_ns);
  Interval(10, 5, 5);
  EXPECT_NEAR(Gain(), kSegmentGain, 0.1) << "what had faded came back";
}

}  // namespace
}  // namespace gpushare::core
