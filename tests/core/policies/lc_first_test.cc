// Routes of LC apps with different priorities.

#include "src/core/policies/parts/lc_first.h"

#include <gtest/gtest.h>

#include "tests/core/policies/snapshot_builder.h"

namespace gpushare::core {
namespace {

using testing::kMs;
using testing::SnapshotBuilder;

class LcFirstTest : public ::testing::Test {
 protected:
  LcFirstTest() {
    decode_ = builder_.AddLcApp(0.3, kMs, 2 * kMs, 1.05);
    prefill_ = builder_.AddLcApp(0.3, kMs, 2 * kMs, 1.05);
  }
  LaneClass LaneOf(int32_t app, const LcRoute& route) {
    Plan plan;
    PublishRoutes(builder_.Get(), route, plan);
    return plan.routes[static_cast<size_t>(app)].lane_class;
  }

  SnapshotBuilder builder_;
  int32_t decode_ = 0;
  int32_t prefill_ = 0;
};

TEST_F(LcFirstTest, AppsOfOnePriorityHaveTheSameRoute) {
  builder_.lc_apps[0].priority = builder_.lc_apps[1].priority = 7;
  EXPECT_EQ(LaneOf(decode_, LcRoute()), LaneClass::kLc);
  EXPECT_EQ(LaneOf(prefill_, LcRoute()), LaneClass::kLc);
}

TEST_F(LcFirstTest, OnlyAppsOfTheHighestPriorityHaveTheHighestStreams) {
  builder_.lc_apps[0].priority = -1;
  builder_.lc_apps[1].priority = -2;
  EXPECT_EQ(LaneOf(decode_, LcRoute()), LaneClass::kLc);
  EXPECT_EQ(LaneOf(prefill_, LcRoute()), LaneClass::kPlain);
}

// A side of a split has one lane for LC work.
TEST_F(LcFirstTest, OnASideOfASplitAllHaveItsLane) {
  builder_.lc_apps[0].priority = 1;
  LcRoute route;
  route.place = builder_.LcPlace(84);
  EXPECT_EQ(LaneOf(prefill_, route), LaneClass::kLc);
}

TEST_F(LcFirstTest, APolicyWithoutStreamPrioritiesGetsNone) {
  builder_.lc_apps[0].priority = 1;
  LcRoute route;
  route.lane_class = LaneClass::kPlain;
  EXPECT_EQ(LaneOf(decode_, route), LaneClass::kPlain);
}

}  // namespace
}  // namespace gpushare::core
