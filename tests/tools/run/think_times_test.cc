// Think times of closed loops, and the steps, gaps and silences of an engine.

#include "tools/gpushare/run/think_times.h"

#include <gtest/gtest.h>

namespace gpushare::tool {
namespace {

constexpr int64_t kMs = 1'000'000;

class ThinkTimesTest : public ::testing::Test {
 protected:
  ThinkTimesTest() {
    app_.arrivals.kind = ArrivalKind::kSteps;
    app_.arrivals.steps = {50'000, 300'000, 20 * kMs, 500 * kMs, true};
    plan_.app = &app_;
    plan_.think_seed = 3;
    plan_.solo_ns = 2 * kMs;
    plan_.load = 0.25;
  }
  LcApp app_;
  LcPlan plan_;
};

TEST_F(ThinkTimesTest, ClientsThinkAsLongAsTheScenarioSays) {
  app_.arrivals = ArrivalSpec();
  app_.arrivals.kind = ArrivalKind::kClosedLoop;
  app_.arrivals.think_ns = 700;
  ThinkTimes fixed(plan_);
  EXPECT_EQ(fixed.Draw().time_ns, 700);
  EXPECT_EQ(fixed.Draw().next_within_ns, 0);
  app_.arrivals.random_think = true;
  ThinkTimes random(plan_);
  EXPECT_NE(random.Draw().time_ns, random.Draw().time_ns);
}

TEST_F(ThinkTimesTest, BusyPeriodsHaveTheirShareOfTime) {
  ThinkTimes times(plan_);
  int64_t steps = 0;
  int64_t silences = 0;
  double busy_ns = 0;
  double silent_ns = 0;
  for (int i = 0; i < 200'000; ++i) {
    const Think think = times.Draw();
    busy_ns += static_cast<double>(plan_.solo_ns);
    ++steps;
    if (think.next_within_ns == GPUSHARE_NO_NEXT) {
      ++silences;
      silent_ns += static_cast<double>(think.time_ns);
      continue;
    }
    ASSERT_EQ(think.next_within_ns, 300'000);
    ASSERT_GE(think.time_ns, 50'000);
    ASSERT_LE(think.time_ns, 300'000);
    busy_ns += static_cast<double>(think.time_ns);
  }
  EXPECT_NEAR(busy_ns / (busy_ns + silent_ns), plan_.load, 0.02);
  EXPECT_NEAR(busy_ns / static_cast<double>(silences), 260.0 * kMs, 8.0 * kMs);
}

TEST_F(ThinkTimesTest, StepsMayStateNothing) {
  app_.arrivals.steps.stated = false;
  ThinkTimes times(plan_);
  for (int i = 0; i < 1'000; ++i) ASSERT_EQ(times.Draw().next_within_ns, 0);
}

TEST_F(ThinkTimesTest, TheSameSeedDrawsTheSame) {
  ThinkTimes one(plan_);
  ThinkTimes other(plan_);
  for (int i = 0; i < 1'000; ++i) ASSERT_EQ(one.Draw().time_ns, other.Draw().time_ns);
}

}  // namespace
}  // namespace gpushare::tool
