// How much of a bound's slack late queries leave to plans.

#include "src/core/evidence/slack_share.h"

#include <gtest/gtest.h>

namespace gpushare::core {
namespace {

constexpr int64_t kMs = 1'000'000;

class SlackShareTest : public ::testing::Test {
 protected:
  SlackShareTest() {
    promise.p99_bound = 1.05;
    promise.p99_alone_ns = 2 * kMs;
  }
  // Every `one_in`th query is late for BE work, and every `alone_in`th alone; 0: none.
  void Run(int queries, int one_in, int alone_in = 0) {
    for (int i = 1; i <= queries; ++i) {
      NoteLateness(slack, promise, solo_ns, one_in > 0 && i % one_in == 0,
                   alone_in > 0 && i % alone_in == 0);
    }
  }

  Promise promise;
  int64_t solo_ns = 2 * kMs;  // a queue without a tail: its p99 is that of a query
  SlackShare slack;
};

TEST_F(SlackShareTest, AllOfItIsLeftWhileFewQueriesAreLate) {
  EXPECT_EQ(PartOf(slack), 1);
  Run(20'000, 200);
  EXPECT_GE(PartOf(slack), 1 - kKeptOfSplit) << "half of what may be late";
}

TEST_F(SlackShareTest, MoreLateQueriesThanMayBeTakeIt) {
  Run(20'000, 50);
  EXPECT_EQ(PartOf(slack), kGainMin) << "some is always left";
  Run(20'000, 0);
  EXPECT_EQ(PartOf(slack), 1);
}

TEST_F(SlackShareTest, SomethingIsLeftWhereMoreAreLateAlone) {
  EXPECT_EQ(LeftOfLate(kLateShare, 1, promise, solo_ns), kTailShareMin);
}

TEST_F(SlackShareTest, OneLateQueryOfManyCountsAsOneOfTheWindow) {
  Run(static_cast<int>(kTailShareWindow), 0);
  Run(1, 0, 1);
  EXPECT_DOUBLE_EQ(slack.late_alone, 1.0 / static_cast<double>(kTailShareWindow));
}

TEST_F(SlackShareTest, WhatIsLateAloneIsNotLeft) {
  Run(20'000, 200);
  ASSERT_GE(PartOf(slack), 1 - kKeptOfSplit);
  Run(40'000, 200, 125);
  EXPECT_LT(PartOf(slack), 0.2) << "0.005 beside 0.008 are more than a hundredth";
}

TEST_F(SlackShareTest, AStatedTailCountsBeforeItIsSeen) {
  solo_ns = kMs;
  Run(20'000, 200);
  EXPECT_LT(PartOf(slack), 0.2);
}

TEST_F(SlackShareTest, BeWorkIsNotHeldForABoundThatIsMissedWithoutIt) {
  Run(40'000, 200, 60);
  EXPECT_LT(PartOf(slack), 0.2);
  Run(60'000, 200, 30);
  EXPECT_GE(PartOf(slack), 1 - kKeptOfSplit);
}

// What plans remember of a promise stays while the share hardly moves.
TEST_F(SlackShareTest, ItMovesInSteps) {
  Run(20'000, 50);
  const double before = PartOf(slack);
  int changes = 0;
  double last = before;
  for (int i = 0; i < 2'000; ++i) {
    Run(1, 0);
    changes += PartOf(slack) != last ? 1 : 0;
    last = PartOf(slack);
  }
  EXPECT_GT(last, before);
  EXPECT_LE(changes, kLoadSteps);
}

}  // namespace
}  // namespace gpushare::core
