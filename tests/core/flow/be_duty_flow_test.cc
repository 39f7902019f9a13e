// Queries that take longer since BE work began: adaptive gives it a share of time.

#include <gtest/gtest.h>

#include "tests/core/flow/open_loop.h"

namespace gpushare::core {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kUs = 1'000;
constexpr auto kDuty =
    static_cast<size_t>(Reason::kHoldDuty) - static_cast<size_t>(Reason::kHoldHeadroom);

class BeDutyFlowTest : public ::testing::Test {
 protected:
  static OpenLoop::Service Bounded(double p99_bound) {
    return {.load = 0.5, .solo_ns = kMs, .p99_bound = p99_bound, .p99_alone_ns = 4 * kMs};
  }
  static int AddKernel(OpenLoop& loop) {
    return loop.AddBe({.duration_ns = 2 * kMs, .block_task_ns = 20 * kUs});
  }
  static double HeldNs(const OpenLoop& loop, int be) {
    return static_cast<double>(loop.GuaranteeOf(be).held_ns[kDuty]);
  }
};

// 10 % longer: the bound tolerates 1.5 %.
TEST_F(BeDutyFlowTest, SlowerQueriesLeaveAShareOfTime) {
  OpenLoop loop("adaptive", Bounded(1.05));
  loop.Run(200);  // quiet ones
  loop.SlowDown(1.1);
  const int be = AddKernel(loop);
  loop.Run(40);
  const double before = loop.Rate(be);
  EXPECT_EQ(HeldNs(loop, be), 0) << "nothing is known yet";
  EXPECT_GT(before, 0);
  loop.Run(300);
  EXPECT_GT(HeldNs(loop, be), static_cast<double>(100 * kMs));
}

TEST_F(BeDutyFlowTest, QueriesThatTakeNoLongerLeaveAllTime) {
  OpenLoop loop("adaptive", Bounded(1.05));
  loop.Run(200);
  const int be = AddKernel(loop);
  loop.Run(1'000);
  EXPECT_EQ(HeldNs(loop, be), 0);
}

TEST_F(BeDutyFlowTest, ALooserBoundToleratesMore) {
  OpenLoop loop("adaptive", Bounded(1.6));
  loop.Run(200);
  loop.SlowDown(1.1);
  const int be = AddKernel(loop);
  loop.Run(400);
  EXPECT_EQ(HeldNs(loop, be), 0);
}

// Without queries the device is BE's.
TEST_F(BeDutyFlowTest, AnIdleAppLeavesAllTime) {
  OpenLoop loop("adaptive", Bounded(1.05));
  loop.Run(200);
  loop.SlowDown(1.2);
  const int be = AddKernel(loop);
  loop.Run(400);
  loop.RunFor(6'000 * kMs);
  const double held = HeldNs(loop, be);
  loop.RunFor(1'000 * kMs);
  EXPECT_EQ(HeldNs(loop, be), held);
}

}  // namespace
}  // namespace gpushare::core
