// What bounds and targets leave to BE work, by worked examples.

#include "src/core/promise/promise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "src/core/base/limits.h"
#include "src/core/promise/tuning.h"

namespace gpushare::core {
namespace {

using ::testing::HasSubstr;

Promise BoundOf(double bound, int64_t p99_alone_ns = 0) {
  return {.p99_bound = bound, .p99_alone_ns = p99_alone_ns};
}
Promise TargetOf(int64_t target_ns, int64_t p99_alone_ns = 0) {
  return {.target_ns = target_ns, .p99_alone_ns = p99_alone_ns};
}
double AsDouble(int64_t ns) { return static_cast<double>(ns); }

TEST(Promise, TheSlackIsThePlannedShareOfTheBound) {
  // The first chain of the measurements: 667 us alone, p99 2,176 us, bound 1.05: 108.8 us in all.
  EXPECT_NEAR(AsDouble(BoundOf(1.05, 2'176'000).Slack(667'000)), kPlannedShare * 108'800, 1);
  EXPECT_NEAR(AsDouble(BoundOf(4, 2'000'000).Slack(667'000)), (3 - kBoundMarginMax) * 2e6, 1)
      << "a wide bound keeps a small reserve";
}

TEST(Promise, TheSlackIsUnlimitedOnlyWithoutABound) {
  EXPECT_EQ(Promise().Slack(667'000), kNever);
  EXPECT_EQ(BoundOf(1.05).Slack(0), 0) << "a bound on an unknown p99 tolerates nothing yet";
  EXPECT_NEAR(AsDouble(BoundOf(1.1).Slack(100'000)), 9'000, 1)
      << "p99 alone is at least the solo duration";
  EXPECT_EQ(BoundOf(1, 1'000).Slack(1'000), 0);
  EXPECT_EQ(BoundOf(1e300, kNever - 1).Slack(0), kNever - 1);
}

// Of 2 ms alone at a bound of 1.5, 0.8 of the slack of 1 ms.
TEST(Promise, TheLagMayTakeThePlannedShareOfTheSmallerP99) {
  const Promise stated = BoundOf(1.05, 2'000'000);
  EXPECT_NEAR(AsDouble(stated.LagSlack(667'000, 0)), kBoundShareOfSplit * 100'000, 1);
  EXPECT_NEAR(AsDouble(stated.LagSlack(667'000, 1'000'000)), kBoundShareOfSplit * 50'000, 1)
      << "the stated one may be of a higher load";
  EXPECT_NEAR(AsDouble(stated.LagSlack(667'000, 3'000'000)), kBoundShareOfSplit * 100'000, 1);
  EXPECT_NEAR(AsDouble(BoundOf(1.05).LagSlack(1'000'000, 0)), kBoundShareOfSplit * 50'000, 1);
  EXPECT_EQ(Promise().LagSlack(667'000, 1'000'000), kNever);
}

TEST(Promise, TheLagMayTakeAShareOfWhatATargetLeaves) {
  Promise promise;
  promise.target_ns = 3'000'000;
  EXPECT_EQ(promise.LagSlack(667'000, 0), kNever) << "nobody knows the p99";
  EXPECT_NEAR(AsDouble(promise.LagSlack(667'000, 2'000'000)), kBoundShareOfSplit * 1e6, 1);
  EXPECT_EQ(promise.LagSlack(667'000, 3'000'000), kNever) << "it is missed alone";
  promise.p99_bound = 1.05;
  EXPECT_NEAR(AsDouble(promise.LagSlack(667'000, 2'000'000)), kBoundShareOfSplit * 1e5, 1);
}

TEST(Promise, TheMedianHasASlackOfItsOwn) {
  EXPECT_EQ((Promise{.p50_bound = 1.5}).MedianSlack(1'000), 500);
  EXPECT_EQ(BoundOf(1.5, 1'000).MedianSlack(1'000), kNever);
}

TEST(Promise, ATargetLeavesWhatLiesBeyondTheTail) {
  EXPECT_EQ(TargetOf(10'000'000).TargetSlack(2'000'000, 1), 8'000'000);
  EXPECT_EQ(TargetOf(10'000'000).TargetSlack(2'000'000, 4), 2'000'000);
  EXPECT_EQ(TargetOf(10'000'000, 3'000'000).TargetSlack(2'000'000, 1), 7'000'000)
      << "the longer one of the stated and the queue's p99";
  EXPECT_EQ(Promise().TargetSlack(2'000'000, 1), kNever);
}

TEST(Promise, ALostTargetKeepsAFloorForEvictableWork) {
  EXPECT_NEAR(AsDouble(TargetOf(1'000'000).TargetSlack(2'000'000, 1)), 100e3, 1);
  EXPECT_NEAR(AsDouble(TargetOf(2'000'000).TargetSlack(0, 0.5)), 100e3, 1)
      << "nothing is known of its queries";
}

TEST(Promise, AQueryIsLateAboveTheSmallerLimit) {
  EXPECT_EQ(Promise().LatencyLimit(), kNever);
  EXPECT_EQ(BoundOf(1.05).LatencyLimit(), kNever) << "nobody knows the p99";
  EXPECT_EQ(BoundOf(1.5, 2'000).LatencyLimit(), 3'000);
  EXPECT_EQ((Promise{.target_ns = 2'500, .p99_bound = 1.5, .p99_alone_ns = 2'000}).LatencyLimit(),
            2'500);
  EXPECT_EQ(BoundOf(1e300, kNever - 1).LatencyLimit(), kNever);
}

TEST(Promise, TheP99MayBeOverTheP99AloneByTheTighterOfBoundAndTarget) {
  EXPECT_EQ(Promise().MostP99(), kUnstatedInflation);
  EXPECT_EQ(TargetOf(3'000).MostP99(), kUnstatedInflation) << "nobody knows the p99";
  EXPECT_EQ(BoundOf(1.3).MostP99(), 1.3);
  Promise both = {.target_ns = 2'500, .p99_bound = 1.5, .p99_alone_ns = 2'000};
  EXPECT_EQ(both.MostP99(), 1.25);
  both.target_ns = 4'000;
  EXPECT_EQ(both.MostP99(), 1.5);
  both.p99_bound = 0;
  EXPECT_EQ(both.MostP99(), 2);
}

// (1 + x)(1 - rho) / (1 - rho (1 + x)) is 1 plus that part of the slack.
TEST(Promise, QueriesMayTakeLongerByAPartOfTheSlack) {
  for (const double rho : {0.0, 0.3, 0.5, 0.8}) {
    const double longer = Promise{.p99_bound = 1.05}.ToleratedLonger(rho);
    EXPECT_NEAR((1 + longer) * (1 - rho) / (1 - rho * (1 + longer)), 1 + 0.05 * kDutyShareOfBound,
                1e-9)
        << rho;
  }
}

TEST(PlannedPromise, ASplitMayUseAShareOfTheSlack) {
  EXPECT_NEAR(BoundOf(1.05).Planned(1'000, 0).p99_bound, 1 + 0.05 * kBoundShareOfSplit, 1e-12);
  EXPECT_NEAR(BoundOf(4).Planned(1'000, 0).p99_bound, 4 - kBoundMarginMax, 1e-12);
  EXPECT_EQ(BoundOf(1).Planned(1'000, 0).p99_bound, 1);
  EXPECT_EQ(Promise().Planned(1'000, 0).p99_bound, 0);
}

// Keeps() and MostInflation() are one rule.
TEST(PlannedPromise, KeepsItUpToTheMostInflation) {
  for (const Promise& promise : {BoundOf(1.2, 2'000'000), Promise{.p50_bound = 1.3}, Promise(),
                                 TargetOf(5'000'000, 2'000'000)}) {
    for (const int blocking_ns : {0, 50'000}) {
      const PlannedPromise planned = promise.Planned(1'000'000, 0);
      const double most = planned.MostInflation().At(blocking_ns);
      EXPECT_TRUE(planned.Keeps({.inflation = most - 1e-6}, blocking_ns)) << promise.target_ns;
      EXPECT_FALSE(planned.Keeps({.inflation = most + 1e-6}, blocking_ns)) << promise.target_ns;
    }
  }
}

TEST(Promise, AnUpdateKeepsWhatItLeavesOut) {
  const Promise before = {.target_ns = 1, .p99_bound = 1.1, .p50_bound = 1.2, .p99_alone_ns = 2};
  const PromiseUpdate update = {.p99_bound = 0.0, .p99_alone_ns = 3};
  EXPECT_TRUE(update.StatesAny());
  EXPECT_FALSE(PromiseUpdate().StatesAny());
  const Promise after = update.Over(before);
  EXPECT_EQ(after.target_ns, 1);
  EXPECT_EQ(after.p99_bound, 0);
  EXPECT_EQ(after.p50_bound, 1.2);
  EXPECT_EQ(after.p99_alone_ns, 3);
  const Promise all = PromiseUpdate::Of(before).Over(after);
  EXPECT_EQ(all.p99_bound, 1.1);
  EXPECT_EQ(all.p99_alone_ns, 2);
}

TEST(Promise, ABoundIsNoneOrOneToAThousand) {
  for (const double bound : {0.0, 1.0, 1000.0}) {
    EXPECT_TRUE(Promise{.p99_bound = bound}.CheckBounds("lc").ok()) << bound;
  }
  for (const double bound : {-1.0, 0.99, 1000.5, std::nan("")}) {
    const Promise p99 = {.p99_bound = bound};
    const Promise p50 = {.p50_bound = bound};
    EXPECT_THAT(p99.CheckBounds("lc").message(), HasSubstr("p99 bound of app 'lc'")) << bound;
    EXPECT_THAT(p50.CheckBounds("lc").message(), HasSubstr("p50 bound of app 'lc'")) << bound;
  }
}

TEST(PlannedPromise, AnAppThatStatesNothingKeepsTheUnstatedInflation) {
  const PlannedPromise planned = Promise().Planned(1'000'000, 0);
  EXPECT_TRUE(planned.Keeps({.inflation = kUnstatedInflation}, 0));
  EXPECT_FALSE(planned.Keeps({.inflation = kUnstatedInflation + 0.01}, 0));
}

TEST(PlannedPromise, ABareTargetNeedsAKnownQuery) {
  const PlannedPromise unknown = TargetOf(5'000'000).Planned(0, 1);
  EXPECT_FALSE(unknown.Keeps({.tail_p99_ns = 1'000}, 0));
  const PlannedPromise known = TargetOf(5'000'000).Planned(1'000'000, 2);
  EXPECT_TRUE(known.Keeps({.tail_p99_ns = kPlannedShare * 2'490'000}, 0));
  EXPECT_FALSE(known.Keeps({.tail_p99_ns = kPlannedShare * 2'510'000}, 0));
}

TEST(Promise, WithoutALostTargetTheBoundsRemain) {
  const Promise bounded = {
      .target_ns = 5'000'000, .p99_bound = 1.2, .p50_bound = 1.1, .p99_alone_ns = 1'000'000};
  const Promise left = bounded.WithoutTarget(3'000'000);
  EXPECT_EQ(left.target_ns, 0);
  EXPECT_EQ(left.p99_bound, 1.2);
  EXPECT_EQ(left.p50_bound, 1.1);
  EXPECT_EQ(left.LatencyLimit(), 1'200'000);
  // Without one it may take 5 % more than what was found, and nobody knows that yet at 0.
  const Promise target = {.target_ns = 5'000'000, .p99_alone_ns = 1'000'000};
  EXPECT_EQ(target.WithoutTarget(2'000'000).LatencyLimit(), 2'100'000);
  EXPECT_EQ(target.WithoutTarget(0).LatencyLimit(), kNever);
}

TEST(PlannedPromise, TheWorstIsTheOneClosestToItsLimit) {
  Promise both = BoundOf(1.5, 2'000'000);
  both.target_ns = 10'000'000;
  const PlannedPromise planned = both.Planned(1'000'000, 0);
  const auto bound = planned.Worst({.inflation = 1.6}, true);
  EXPECT_NEAR(bound.value_ns, 3.2e6, 1);
  EXPECT_NEAR(bound.limit_ns, planned.p99_bound * 2e6, 1);
  EXPECT_GT(bound.ratio(), 1);
  EXPECT_EQ(bound.alone_ns, 2e6);
  EXPECT_NEAR(planned.Worst({.inflation = 1.6}, true, 50'000).value_ns, 3.25e6, 1);
  EXPECT_EQ(planned.Worst({}, false).value_ns, static_cast<double>(kMaxDurationNs));
  EXPECT_EQ(Promise().Planned(1'000, 0).Worst({.inflation = 9}, true).limit_ns, 0);
}

TEST(Promise, TheShareThatIsLateAloneFallsWithTheSlack) {
  EXPECT_NEAR(BoundOf(1.05, 2'000'000).LateAlone(1'000'000), 0.01 * std::pow(0.01, 0.1), 1e-9);
  EXPECT_NEAR(BoundOf(1.5, 2'000'000).LateAlone(1'000'000), 0.01 * 0.01, 1e-9);
  EXPECT_NEAR(BoundOf(1, 2'000'000).LateAlone(1'000'000), 0.01, 1e-9);
  EXPECT_EQ(BoundOf(1.05, 2'000'000).LateAlone(2'000'000), 0) << "no query waits";
  EXPECT_EQ(BoundOf(1.05, 0).LateAlone(1'000'000), 0) << "nothing is stated";
  EXPECT_EQ(Promise().LateAlone(1'000'000), 0);
}

// What late queries take from plans; when a query is late stays as it was promised.
TEST(Promise, APartOfTheSlackIsAPartOfEachBudget) {
  Promise promise = BoundOf(1.2, 2'000'000);
  const Promise whole = promise;
  promise.slack_share = 0.25;
  EXPECT_NEAR(static_cast<double>(promise.Slack(1'000'000)),
              0.25 * static_cast<double>(whole.Slack(1'000'000)), 2);
  EXPECT_NEAR(static_cast<double>(promise.LagSlack(1'000'000, 0)),
              0.25 * static_cast<double>(whole.LagSlack(1'000'000, 0)), 2);
  EXPECT_NEAR(promise.Planned(1'000'000, 0).p99_bound - 1,
              0.25 * (whole.Planned(1'000'000, 0).p99_bound - 1), 1e-9);
  EXPECT_EQ(promise.LatencyLimit(), whole.LatencyLimit());
}

TEST(StatedTail, TheTailOfTheQueueCountsWhereItIsLonger) {
  const StatedTail stated{1'600'000, 2'200'000};
  EXPECT_DOUBLE_EQ(stated.P99(1, 2'200'000, 1), 2'200'000);
  EXPECT_DOUBLE_EQ(stated.P99(2, 3'000'000, 1), 3'200'000);
  EXPECT_DOUBLE_EQ(stated.P99(1, 2'200'000, 0.5), 1'600'000) << "queries on time";
  EXPECT_DOUBLE_EQ(stated.P99(1, 2'200'000, 2), 4'400'000) << "late queries";
}

TEST(StatedTail, LateQueriesRaiseAStatedP99OfBurstsToo) {
  const StatedTail stated{6'000'000, 2'200'000};
  EXPECT_DOUBLE_EQ(stated.P99(1, 2'200'000, 1.5), 9'000'000);
  EXPECT_DOUBLE_EQ(stated.P99(1, 2'200'000, 0.5), 6'000'000);
}

TEST(StatedTail, RegularArrivalsAreNoSuchQueue) {
  const StatedTail stated{500'000, 2'200'000};
  EXPECT_DOUBLE_EQ(stated.P99(1.2, 3'000'000, 1), 600'000);
}

}  // namespace
}  // namespace gpushare::core
