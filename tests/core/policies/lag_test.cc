// adaptive: LC queries leave a split by their lag, whatever the loads say.

#include <gtest/gtest.h>

#include "src/core/policies/adaptive/arrangement/tuning.h"
#include "tests/core/policies/snapshot_builder.h"

namespace gpushare::core::testing {
namespace {

// A service of 1 ms queries with a p99 alone of 2 ms and a bound of 1.5, which leaves 0.8 x 1 ms;
// on the split of 84 SMs it runs at 0.8 of its speed beside the kernel, so that each query there
// takes 250 us more.
class LagTest : public ::testing::Test {
 protected:
  LagTest() {
    app().main_kernel = KernelId{1};
    builder.AddBeHead(builder.AddBeApp(), kernel, 8 * kMs);
    SetSpeed(0.8f);
    builder.snapshot.in_force.split = split;
  }
  LcAppView& app(int32_t index = 0) { return builder.lc_apps[static_cast<size_t>(index)]; }
  void SetSpeed(float speed) { builder.Pair(lc, kernel, 84) = {speed, speed, 0.7f, 0.3f}; }
  // `lag_ns`: with all queries on the whole device from now on.
  void SetQueries(int32_t count, int64_t lag_ns, int64_t age_ns = 0) {
    app().active_queries = app().tasks_in_flight = count;
    app().lag_ns = lag_ns;
    app().service_age_ns = age_ns;
  }
  PlaceIndex Route() { return PlanOf("adaptive", builder).routes[0].place; }
  PlaceIndex Side() { return builder.LcPlace(84); }

  SnapshotBuilder builder{{84}};
  int32_t lc = builder.AddLcApp(0.1, 1 * kMs, 2 * kMs, 1.52);
  int32_t kernel = builder.AddKernel(2 * kUs);
  int32_t split = builder.Split(84);
};

TEST_F(LagTest, AnIdleAppMayGoToTheSplit) { EXPECT_EQ(Route(), Side()); }

// On the split: the lag, 250 us for each query in flight, and 250 us for the next one, of 1 ms.
TEST_F(LagTest, ABurstLeavesTheSplit) {
  SetQueries(1, 0);
  EXPECT_EQ(Route(), Side());
  SetQueries(2, 245 * kUs);
  EXPECT_EQ(Route(), Side());
  SetQueries(2, 255 * kUs);
  EXPECT_EQ(Route(), kWholeDevice);
  SetQueries(4, 0);
  EXPECT_EQ(Route(), kWholeDevice) << "what is in flight there is late already";
}

// The evidence counts 400 us of the first query as served, and 320 are.
TEST_F(LagTest, TheFirstQueryIsServedAtTheSpeedOfTheSide) {
  SetQueries(1, 510 * kUs, 400 * kUs);
  EXPECT_EQ(Route(), kWholeDevice) << "510 + 80 + 0.25 x 680 + 250";
  SetQueries(1, 490 * kUs, 400 * kUs);
  EXPECT_EQ(Route(), Side());
}

TEST_F(LagTest, AQueueThatLeftComesBackWhenItIsShortOrEmpty) {
  builder.snapshot.in_force.split = kNoSplit;
  SetSpeed(0.9f);  // 111 us more for the next query
  const auto most = static_cast<int64_t>(kLagReturn * 1e6) - 111 * kUs;
  SetQueries(2, most - 5 * kUs);
  EXPECT_EQ(Route(), Side());
  SetQueries(2, most + 5 * kUs);
  EXPECT_EQ(Route(), kWholeDevice);
  SetQueries(0, 0);
  EXPECT_EQ(Route(), Side());
}

// Of a p99 alone of 1.2 ms a plan uses 600 us, and two queries take 2 x (1 / v - 1) ms more.
TEST_F(LagTest, ASideThatTwoQueriesMakeTooLateIsNeverChosen) {
  app().promise.p99_alone_ns = 1'200 * kUs;
  SetSpeed(0.78f);
  EXPECT_EQ(Route(), Side());
  SetSpeed(0.76f);
  EXPECT_EQ(Route(), kWholeDevice);
}

// An accepted eviction of 100 us moves the p99 by 50 us on the mean.
TEST_F(LagTest, AnEvictionThatTheBudgetAcceptsCountsByHalf) {
  const int32_t longer = builder.AddKernel(100 * kUs);
  builder.Pair(lc, longer, 84) = builder.Pair(lc, kernel, 84);
  builder.AddBeHead(0, longer, 8 * kMs);
  SetQueries(2, 290 * kUs);
  EXPECT_EQ(Route(), Side());
  SetQueries(2, 310 * kUs);
  EXPECT_EQ(Route(), kWholeDevice);
}

// It leaves after 6 ms, on the mean after 3 ms. A burst loses 0.2 of these, beside 250 us for the
// query in flight and 250 us for the next one.
TEST_F(LagTest, WorkThatStaysOnTheOtherSideCounts) {
  const auto route_beside = [this](int64_t eviction_ns) {
    builder.heads.back().eviction_ns = eviction_ns;
    return Route();
  };
  SetQueries(1, 0);
  EXPECT_EQ(route_beside(1300 * kUs), Side()) << "gone before two queries are";
  EXPECT_EQ(route_beside(4 * kMs), Side());
  EXPECT_EQ(route_beside(6 * kMs), kWholeDevice);
  SetQueries(0, 0);
  EXPECT_EQ(route_beside(6 * kMs), Side());
  EXPECT_EQ(route_beside(9 * kMs), kWholeDevice);
}

TEST_F(LagTest, AppsThatHaveQueriesAtOnceShareTheWholeDevice) {
  const int32_t other = builder.AddLcApp(0.1, 1 * kMs, 2 * kMs, 1.52);
  app(other).main_kernel = KernelId{2};
  builder.Pair(other, kernel, 84) = builder.Pair(lc, kernel, 84);
  SetQueries(1, 0);
  EXPECT_EQ(Route(), Side());
  app(other).active_queries = 1;
  EXPECT_EQ(Route(), kWholeDevice);
}

// Half of the p99 that was stated.
TEST_F(LagTest, TheShadowsP99CountsWhereItIsBelowTheStatedOne) {
  SetQueries(1, 290 * kUs);
  EXPECT_EQ(Route(), Side());
  app().shadow_p99_ns = 1'200 * kUs;
  EXPECT_EQ(Route(), kWholeDevice);
}

TEST_F(LagTest, AForcedMechanismKeepsItsSplit) {
  SetQueries(3, 10 * kMs);
  EXPECT_EQ(PlanOf("adaptive:partition", builder).routes[0].place, Side());
}

}  // namespace
}  // namespace gpushare::core::testing
