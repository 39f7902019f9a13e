// A training step beside the queries of an app that promises a target alone: adaptive learns what
// its segments gain there, and uses a split where they gain less.

#include <gtest/gtest.h>

#include "tests/core/flow/open_loop.h"

namespace gpushare::core {
namespace {

constexpr int64_t kMs = 1'000'000;

// Queries of 1 ms at load 0.5, for which 84 of 132 SMs are enough. A split of these gives BE
// 0.5 + 0.5 x 48 / 132 = 0.68.
OpenLoop::Service ServiceOn(int32_t sms) {
  return {.load = 0.5,
          .solo_ns = kMs,
          .p99_alone_ns = 4 * kMs,
          .target_ns = 12 * kMs,
          .speed = {{84, 1}, {132, 1}},
          .nodes = 50,
          .sms = sms};
}

double RateBeside(const OpenLoop::Service& service, int32_t step_sms, double* late) {
  OpenLoop loop("adaptive", service);
  const int step = loop.AddBe({.duration_ns = 20 * kMs, .nodes = 1'000, .sms = step_sms});
  loop.Run(4'000);
  *late = loop.LateShare();
  return loop.Rate(step);
}

// Its kernels find the SMs that the queries leave.
TEST(SegmentsBesideQueriesTest, WhereQueriesLeaveSmsTheStepRunsBesideThem) {
  double late = 0;
  EXPECT_GT(RateBeside(ServiceOn(60), 60, &late), 0.85);
  EXPECT_LT(late, 0.01);
}

// Nothing is gained beside them, which a first idea cannot know.
TEST(SegmentsBesideQueriesTest, WhereQueriesLeaveNoneTheStepGetsItsSideOfASplit) {
  double late = 0;
  EXPECT_GT(RateBeside(ServiceOn(0), 0, &late), 0.62);
  EXPECT_LT(late, 0.01);
}

}  // namespace
}  // namespace gpushare::core
