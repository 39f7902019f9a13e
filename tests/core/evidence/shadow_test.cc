// The queue that an LC app would have alone, and how far behind it the app is: by hand.

#include "src/core/evidence/shadow.h"

#include <gtest/gtest.h>

#include <array>

namespace gpushare::core {
namespace {

constexpr int64_t kUs = 1'000;

class ShadowTest : public ::testing::Test {
 protected:
  // A query arrives and begins at once; times in microseconds.
  ShadowQuery Begin(int64_t arrival_us, int64_t predicted_us) {
    ShadowQuery query;
    shadow.Begin(arrival_us * kUs, predicted_us * kUs, arrival_us * kUs, query);
    return query;
  }
  int64_t End(const ShadowQuery& query, int64_t alone_us, int64_t now_us) {
    return shadow.End(query, alone_us * kUs, now_us * kUs) / kUs;
  }
  int64_t Lag(int64_t now_us) const { return shadow.LagNs(now_us * kUs) / kUs; }

  Shadow shadow;
};

TEST_F(ShadowTest, AnAppWithoutQueriesHasNoLag) {
  EXPECT_EQ(Lag(0), 0);
  EXPECT_EQ(Lag(1'000'000), 0);
}

TEST_F(ShadowTest, AQueryThatRunsAsAloneHasNoLag) {
  const ShadowQuery query = Begin(1'000, 100);
  EXPECT_EQ(Lag(1'000), 0);
  EXPECT_EQ(Lag(1'060), 0);
  EXPECT_EQ(Lag(1'100), 0);
  EXPECT_EQ(End(query, 100, 1'100), 100);
  EXPECT_EQ(Lag(1'100), 0);
}

// At 1,150 all of the 100 predicted are over, and the shadow ended at 1,100.
TEST_F(ShadowTest, AQueryThatTakesLongerThanAloneFallsBehind) {
  Begin(1'000, 100);
  EXPECT_EQ(Lag(1'150), 50);
}

// Alone they end at 1,100 and 1,200. The first one ends at 1,130: 30 behind, and so is the second.
TEST_F(ShadowTest, TheQueueInheritsTheLag) {
  const ShadowQuery first = Begin(1'000, 100);
  const ShadowQuery second = Begin(1'020, 100);
  EXPECT_EQ(Lag(1'020), 0) << "the second one waits as it would alone";
  EXPECT_EQ(End(first, 100, 1'130), 100);
  EXPECT_EQ(Lag(1'130), 30);
  EXPECT_EQ(Lag(1'200), 30);
  EXPECT_EQ(End(second, 100, 1'230), 180) << "80 of waiting, as alone";
  EXPECT_EQ(Lag(1'230), 0) << "nothing is left to be late";
}

// The shadow is idle from 1,100 to 1,200, although the first query still runs then.
TEST_F(ShadowTest, IdleTimeOfTheShadowIsItsOwn) {
  const ShadowQuery first = Begin(1'000, 100);
  const ShadowQuery second = Begin(1'200, 100);
  EXPECT_EQ(Lag(1'200), 0) << "of the mean of both at most";
  EXPECT_EQ(End(first, 100, 1'250), 100);
  EXPECT_EQ(Lag(1'250), 50);
  EXPECT_EQ(End(second, 100, 1'350), 100);
}

// Predicted 100, real 130: the shadow of both moves by 30, and the app is not behind.
TEST_F(ShadowTest, AnEndCorrectsTheShadowByWhatThePredictionMissed) {
  const ShadowQuery first = Begin(1'000, 100);
  const ShadowQuery second = Begin(1'010, 100);
  EXPECT_EQ(Lag(1'130), 30) << "before anything is known";
  EXPECT_EQ(End(first, 130, 1'130), 130);
  EXPECT_EQ(Lag(1'130), 0);
  EXPECT_EQ(End(second, 100, 1'230), 220);
}

TEST_F(ShadowTest, ACorrectionDoesNotReachBeyondIdleTimeOfTheShadow) {
  const ShadowQuery first = Begin(1'000, 100);
  const ShadowQuery second = Begin(1'200, 100);
  EXPECT_EQ(End(first, 150, 1'300), 150);
  EXPECT_EQ(End(second, 100, 1'400), 100) << "it found the shadow idle";
}

// A prefill of 500 among decode steps of 100: alone it ends at 1,500, and the step behind it at
// 1,600.
TEST_F(ShadowTest, AQueryThatIsKnownToBeLongerThanOthersIsNotBehind) {
  ShadowQuery prefill = Begin(1'000, 100);
  shadow.Predict(500 * kUs, prefill);
  const ShadowQuery decode = Begin(1'010, 100);
  EXPECT_EQ(Lag(1'250), 0);
  EXPECT_EQ(Lag(1'310), 10) << "of the mean of both at most";
  EXPECT_EQ(End(prefill, 500, 1'500), 500);
  EXPECT_EQ(Lag(1'500), 0);
  EXPECT_EQ(End(decode, 100, 1'600), 590);
}

TEST_F(ShadowTest, WhatIsKnownLateMovesTheQueriesBehindIt) {
  ShadowQuery first = Begin(1'000, 100);
  const ShadowQuery second = Begin(1'010, 100);
  shadow.Predict(300 * kUs, first);
  EXPECT_EQ(End(first, 300, 1'300), 300);
  EXPECT_EQ(End(second, 100, 1'400), 390);
  ShadowQuery before = Begin(2'000, 100);
  const ShadowQuery behind = Begin(2'200, 100);
  shadow.Predict(150 * kUs, before);
  EXPECT_EQ(End(before, 150, 2'200), 150);
  EXPECT_EQ(End(behind, 100, 2'300), 100) << "it found the shadow idle";
}

// Alone the first one ends at 1,100, whatever the second one takes.
TEST_F(ShadowTest, WhatIsKnownLateMovesNoQueryAhead) {
  const ShadowQuery first = Begin(1'000, 100);
  ShadowQuery second = Begin(1'010, 100);
  shadow.Predict(500 * kUs, second);
  EXPECT_EQ(End(first, 100, 1'100), 100);
  EXPECT_EQ(End(second, 500, 1'600), 590);
}

// Three queries begin, and then each is predicted, in order: 100, 300 and 200.
TEST_F(ShadowTest, QueriesThatBeganTogetherAreCorrectedOneByOne) {
  ShadowQuery first = Begin(1'000, 150);
  ShadowQuery second = Begin(1'010, 150);
  ShadowQuery third = Begin(1'020, 150);
  shadow.Predict(100 * kUs, first);
  shadow.Predict(300 * kUs, second);
  shadow.Predict(200 * kUs, third);
  EXPECT_EQ(Lag(1'000), 0);
  EXPECT_EQ(End(first, 100, 1'100), 100);
  EXPECT_EQ(End(second, 300, 1'400), 390);
  EXPECT_EQ(End(third, 200, 1'600), 580);
  EXPECT_EQ(Lag(1'600), 0);
}

// So many that not each correction is kept: the oldest ones wait for the end of their query.
TEST_F(ShadowTest, OfManyQueriesNoneAheadMoves) {
  std::array<ShadowQuery, 100> queries;
  for (ShadowQuery& query : queries) query = Begin(1'000, 100);
  for (size_t i = queries.size(); i-- > 0;) shadow.Predict(200 * kUs, queries[i]);
  int64_t end_us = 0;
  for (const ShadowQuery& query : queries) {
    end_us += 200;
    EXPECT_EQ(End(query, 200, 1'000 + end_us), end_us);
  }
}

TEST_F(ShadowTest, AQueryOfUnknownTimeCountsOnceItHasEnded) {
  const ShadowQuery query = Begin(1'000, 0);
  EXPECT_EQ(Lag(1'000), 0);
  EXPECT_EQ(End(query, 80, 1'080), 80);
  const ShadowQuery next = Begin(1'080, 80);
  EXPECT_EQ(End(next, 80, 1'160), 80);
}

// It was admitted 40 after it arrived: that is lag.
TEST_F(ShadowTest, NobodyKnowsTheLagOfQueriesOfUnknownTime) {
  Begin(0, 0);
  EXPECT_EQ(Lag(700), 0) << "its own time is no lag";
}

TEST_F(ShadowTest, ALateBeginIsLag) {
  ShadowQuery query;
  shadow.Begin(1'000 * kUs, 100 * kUs, 1'040 * kUs, query);
  EXPECT_EQ(Lag(1'040), 40);
  EXPECT_EQ(End(query, 100, 1'140), 100);
}

TEST_F(ShadowTest, TheFirstQueryHasAnAge) {
  EXPECT_EQ(shadow.ServiceAgeNs(1'000 * kUs), 0);
  const ShadowQuery first = Begin(1'000, 100);
  const ShadowQuery second = Begin(1'020, 100);
  EXPECT_EQ(shadow.ServiceAgeNs(1'050 * kUs), 50 * kUs);
  End(first, 100, 1'110);
  EXPECT_EQ(shadow.ServiceAgeNs(1'150 * kUs), 40 * kUs);
  End(second, 100, 1'210);
  EXPECT_EQ(shadow.ServiceAgeNs(1'300 * kUs), 0);
}

TEST_F(ShadowTest, AnArrivalFarAwayOverflowsNothing) {
  ShadowQuery query;
  shadow.Begin(kNever - 1, 100 * kUs, 0, query);
  EXPECT_EQ(shadow.LagNs(0), 0);
  EXPECT_EQ(End(query, 100, 100), 100);
}

// One in 26 waits for a whole query before it, alone too. A bucket of the window is 1/64 wide.
TEST_F(ShadowTest, ThePercentileIsThatOfTheLatenciesAlone) {
  int64_t now_us = 0;
  for (int i = 0; i < 500; ++i) {
    now_us += 10'000;
    const ShadowQuery first = Begin(now_us, 1'000);
    if (i % 25 == 0) {
      const ShadowQuery second = Begin(now_us, 1'000);
      End(first, 1'000, now_us + 3'000);
      EXPECT_EQ(End(second, 1'000, now_us + 4'000), 2'000);
    } else {
      EXPECT_EQ(End(first, 1'000, now_us + 3'000), 1'000);
    }
    if (i < kTailQueriesMin / 2) {
      EXPECT_EQ(shadow.p99_ns(), 0) << "too few to say";
    }
  }
  EXPECT_NEAR(static_cast<double>(shadow.p99_ns()), 2'000.0 * kUs, 40.0 * kUs);
  EXPECT_NEAR(static_cast<double>(shadow.EstimateNow(1).p99_ns), 2'000.0 * kUs, 40.0 * kUs);
}

}  // namespace
}  // namespace gpushare::core
