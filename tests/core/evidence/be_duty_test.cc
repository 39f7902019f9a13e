// The share of time that BE work has where it makes later queries slower.

#include "src/core/evidence/be_duty.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace gpushare::core {
namespace {

constexpr int64_t kUs = 1'000;
constexpr int64_t kMs = 1'000'000;
constexpr int64_t kSoloNs = 1'594 * kUs;
constexpr int64_t kQuietNs = 1'570 * kUs;

class BeDutyTest : public ::testing::Test {
 protected:
  // Queries that take about this long.
  void Queries(int count, int64_t service_ns, bool quiet) {
    for (int i = 0; i < count; ++i) {
      now_ns += 9 * kMs;
      const int64_t off_ns = ++queries_ % 2 == 0 ? 15 * kUs : -15 * kUs;
      NoteServiceTime(duty, service_ns + off_ns, quiet, kTolerated, kSoloNs, now_ns);
    }
  }
  void Quiet() { Queries(16, kQuietNs, true); }
  void Judge(double longer) {
    const auto service_ns = static_cast<int64_t>((1 + longer) * static_cast<double>(kQuietNs));
    now_ns = std::max(now_ns, duty.settled_ns);
    do {
      Queries(1, service_ns, false);
    } while (duty.batch.count > 0);
  }

  static constexpr double kTolerated = 0.02;
  static constexpr int kQuarter = static_cast<int>(kDutyBatch) / 4;
  TimeNs now_ns = 1'000 * kMs;
  BeDuty duty;

 private:
  int queries_ = 0;
};

TEST_F(BeDutyTest, QueriesThatTakeAsLongAsQuietOnesLeaveAllTime) {
  Quiet();
  duty.batch = MeanTime();
  for (const double longer : {-0.01, 0.0, 0.015}) {
    Judge(longer);
    EXPECT_DOUBLE_EQ(duty.share, 1) << longer;
  }
  EXPECT_EQ(DutyAt(duty, now_ns).paused_until_ns, 0);
  EXPECT_EQ(DutyAt(duty, now_ns).pauses_at_ns, kNever);
}

TEST_F(BeDutyTest, LongerQueriesLeaveTheShareThatIsTolerated) {
  Quiet();
  duty.batch = MeanTime();
  Judge(0.08);
  EXPECT_NEAR(duty.share, 0.25, 0.01);
  Judge(0.02);
  EXPECT_NEAR(duty.share, 0.25, 0.01) << "within the error";
  Judge(0.04);
  EXPECT_NEAR(duty.share, 0.125, 0.01);
  for (int i = 0; i < 20; ++i) Judge(0.1);
  EXPECT_DOUBLE_EQ(duty.share, kDutyShareMin);
}

TEST_F(BeDutyTest, AQuarterOfABatchThatLeavesNoDoubtIsEnough) {
  Quiet();
  duty.batch = MeanTime();
  Queries(kQuarter - 1, kQuietNs * 110 / 100, false);
  EXPECT_DOUBLE_EQ(duty.share, 1);
  Queries(1, kQuietNs * 110 / 100, false);
  EXPECT_NEAR(duty.share, 0.2, 0.02);
}

TEST_F(BeDutyTest, QueriesCountOnceTheClockHasFollowedAChange) {
  Quiet();
  duty.batch = MeanTime();
  Queries(kQuarter, kQuietNs * 110 / 100, false);
  const TimeNs judged_ns = now_ns;
  while (now_ns + 9 * kMs < judged_ns + kDutyQuietNs) Queries(1, kQuietNs * 110 / 100, false);
  EXPECT_EQ(duty.batch.count, 0);
  EXPECT_NEAR(duty.share, 0.2, 0.02);
  Queries(kQuarter, kQuietNs * 110 / 100, false);
  EXPECT_NEAR(duty.share, kDutyShareMin, 0.01) << "they still take longer";
}

TEST_F(BeDutyTest, WhatMayBeChanceWaitsForTheBatch) {
  Quiet();
  duty.quiet.variance = 0;  // the doubt is the batch's
  duty.batch = MeanTime();
  Queries(static_cast<int>(kDutyBatch) - 1, kQuietNs * 1025 / 1000, false);
  EXPECT_EQ(duty.batch.count, kDutyBatch - 1) << "it is not judged";
  EXPECT_DOUBLE_EQ(duty.share, 1);
}

TEST_F(BeDutyTest, FewQuietQueriesThatVaryLeaveADoubt) {
  for (int i = 0; i < static_cast<int>(kDutyQuietLeast); ++i) {
    const int64_t off_ns = i % 2 == 0 ? 60 * kUs : -60 * kUs;
    NoteServiceTime(duty, kQuietNs + off_ns, true, kTolerated, kSoloNs, now_ns);
  }
  duty.batch = MeanTime();
  for (int i = 0; i < kQuarter; ++i) {
    NoteServiceTime(duty, kQuietNs * 105 / 100, false, kTolerated, kSoloNs, now_ns);
  }
  EXPECT_EQ(duty.batch.count, kQuarter) << "it is not judged";
}

TEST_F(BeDutyTest, AQuarterOfABatchAsksForQuietQueriesToo) {
  Queries(kQuarter, kSoloNs * 110 / 100, false);
  EXPECT_GT(duty.pause_until_ns, now_ns);
}

// Times that vary by a tenth, with BE work and without alike.
TEST_F(BeDutyTest, QueriesOfManyLengthsLeaveNearlyAllTime) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> time_ns(kQuietNs, 0.1 * kQuietNs);
  const auto note = [&](bool quiet) {
    now_ns += 9 * kMs;
    NoteServiceTime(duty, static_cast<int64_t>(time_ns(random)), quiet, kTolerated, kSoloNs,
                    now_ns);
  };
  for (int i = 0; i < 128; ++i) note(true);
  double shares = 0;
  constexpr int kQueries = 20'000;
  for (int i = 0; i < kQueries; ++i) {
    duty.next_pause_ns = kNever;  // these quiet times stay
    note(false);
    shares += duty.share;
  }
  EXPECT_GT(shares / kQueries, 0.9);
}

TEST_F(BeDutyTest, TheShareGrowsAgain) {
  Quiet();
  duty.batch = MeanTime();
  Judge(0.08);
  Judge(0.005);
  EXPECT_NEAR(duty.share, 0.25 * kDutyShareGrows, 0.01);
  for (int i = 0; i < 10; ++i) Judge(0.0);
  EXPECT_DOUBLE_EQ(duty.share, 1);
}

// A difference of 5 % of times that vary by half says nothing yet.
TEST_F(BeDutyTest, NoiseIsNoReason) {
  for (int i = 0; i < 64; ++i) {
    const int64_t off_ns = i % 2 == 0 ? 800 * kUs : -800 * kUs;
    NoteServiceTime(duty, kQuietNs + off_ns, true, kTolerated, kSoloNs, now_ns);
  }
  duty.batch = MeanTime();
  for (int i = 0; i < 32; ++i) {
    const int64_t off_ns = i % 2 == 0 ? 800 * kUs : -800 * kUs;
    NoteServiceTime(duty, kQuietNs * 105 / 100 + off_ns, false, kTolerated, kSoloNs, now_ns);
  }
  EXPECT_DOUBLE_EQ(duty.share, 1);
}

TEST_F(BeDutyTest, BeWorkPausesOnceForQuietQueries) {
  Judge(0.08);
  const DutyWindow window = DutyAt(duty, now_ns);
  EXPECT_EQ(window.paused_until_ns, now_ns + kDutyPauseNs);
  // Queries of the pause are no part of a judgement, and the first ones end it.
  Queries(static_cast<int>(kDutyQuietLeast) - 1, kQuietNs, true);
  EXPECT_GT(DutyAt(duty, now_ns).paused_until_ns, now_ns);
  Queries(1, kQuietNs, true);
  EXPECT_EQ(DutyAt(duty, now_ns).paused_until_ns, 0);
  EXPECT_LT(duty.batch.count, 2) << "only the one that ended it";
  duty.batch = MeanTime();
  Judge(0.08);
  EXPECT_NEAR(duty.share, 0.25, 0.01) << "it begins at once";
}

TEST_F(BeDutyTest, AFruitlessPauseIsNotRepeatedSoon) {
  Judge(0.08);
  now_ns = duty.pause_until_ns;
  EXPECT_EQ(DutyAt(duty, now_ns).paused_until_ns, 0);
  Judge(0.08);
  Judge(0.08);
  EXPECT_EQ(DutyAt(duty, now_ns).paused_until_ns, 0);
  now_ns += kMeasuredFadesNs;
  Judge(0.08);
  EXPECT_GT(DutyAt(duty, now_ns).paused_until_ns, now_ns);
}

TEST_F(BeDutyTest, OldQuietTimesAreRenewedWhileBeWorkHasAShare) {
  Quiet();
  duty.batch = MeanTime();
  Judge(0.08);
  EXPECT_EQ(duty.pause_until_ns, 0) << "they are new";
  now_ns += kMeasuredFadesNs;
  Judge(0.02);
  EXPECT_GT(DutyAt(duty, now_ns).paused_until_ns, now_ns);
  // All queries take longer now: it was not BE work.
  Queries(static_cast<int>(kDutyQuietLeast), kQuietNs * 108 / 100, true);
  duty.batch = MeanTime();
  for (int i = 0; i < 10; ++i) Judge(0.08);
  EXPECT_DOUBLE_EQ(duty.share, 1);
}

TEST_F(BeDutyTest, WithoutQuietTimesBeWorkHasAllTime) {
  Quiet();
  duty.batch = MeanTime();
  Judge(0.08);
  now_ns += kMeasuredFadesNs;
  Judge(0.02);
  now_ns = duty.pause_until_ns;  // which brings none
  Judge(0.08);
  EXPECT_DOUBLE_EQ(duty.share, 1);
}

TEST_F(BeDutyTest, QueriesAsShortAsOneAloneNeedNoPause) {
  Queries(100, kSoloNs + 20 * kUs, false);
  EXPECT_EQ(DutyAt(duty, now_ns).paused_until_ns, 0);
}

// Queries may have become ones that cannot be compared.
TEST_F(BeDutyTest, AShareThatNoQueryConfirmsIsOver) {
  Quiet();
  duty.batch = MeanTime();
  Judge(0.3);
  now_ns = (now_ns / kDutyPeriodNs + 1) * kDutyPeriodNs - 1;
  EXPECT_GT(DutyAt(duty, now_ns).paused_until_ns, now_ns);
  now_ns += kMeasuredFadesNs;
  EXPECT_EQ(DutyAt(duty, now_ns).paused_until_ns, 0);
  EXPECT_EQ(DutyAt(duty, now_ns).pauses_at_ns, kNever);
}

TEST_F(BeDutyTest, BeWorkHasTheFirstPartOfEachPeriod) {
  duty.share = 0.25;
  const TimeNs begin_ns = 70 * kDutyPeriodNs;
  duty.noted_ns = begin_ns;
  const DutyWindow first = DutyAt(duty, begin_ns);
  EXPECT_EQ(first.paused_until_ns, 0);
  EXPECT_EQ(first.pauses_at_ns, begin_ns + kDutyPeriodNs / 4);
  EXPECT_EQ(DutyAt(duty, first.pauses_at_ns - 1).paused_until_ns, 0);
  const DutyWindow then = DutyAt(duty, first.pauses_at_ns);
  EXPECT_EQ(then.paused_until_ns, begin_ns + kDutyPeriodNs);
  EXPECT_EQ(then.pauses_at_ns, kNever);
}

}  // namespace
}  // namespace gpushare::core
