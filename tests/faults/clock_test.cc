// A clock that jumps ahead or steps back, which no real device's clock does, and predictions that
// are wrong by ten: work goes on, completes once, and nothing healthy is taken for hung.

#include <string>

#include "tests/faults/flight.h"

namespace gpushare_test {
namespace {

constexpr int kTasks = 20;

class ClockTest : public ::testing::TestWithParam<const char*> {
 protected:
  // Tasks before and after the fault. All must be OK.
  void Run(const std::string& faults) {
    SCOPED_TRACE(faults);
    Api api;
    api.opening.profile_path = GPUSHARE_SMALL_PROFILE;
    api.Open({"sim", GPUSHARE_DRIVE_POLL}, faults.c_str(), GetParam());
    Flight flight;
    for (int round = 0; round < 2; ++round) {
      for (int i = 0; i < kTasks; ++i) {
        const bool lc = i % 2 == 0;
        ASSERT_TRUE(flight.Submit(lc ? api.lc_queue : api.be_queue,
                                  lc ? api.LcTask() : api.BeTask(5000), lc));
      }
      ASSERT_OK(gpushare_runtime_drain(api.runtime, api.Deadline()));
    }
    auto verdicts = flight.ExpectOnce();
    EXPECT_EQ(verdicts[GPUSHARE_VERDICT_OK], 2 * kTasks);
    for (size_t i = 0; i < flight.size(); ++i) EXPECT_GE(flight.record(i).measured_ns, 0);
    EXPECT_EQ(api.RuntimeStats().hung, 0);
    api.Close();
  }
};

INSTANTIATE_TEST_SUITE_P(Policies, ClockTest,
                         ::testing::Values("adaptive", "smguard", "baymax", "priority"),
                         [](const auto& policy) { return std::string(policy.param); });

TEST_P(ClockTest, AJumpAheadLosesNothing) {
  for (const int64_t jump_ns : {kMs, kS, 8 * kS}) {
    Run("clock_jump_at_ns=2000000,clock_jump_ns=" + std::to_string(jump_ns));
  }
}

TEST_P(ClockTest, AStepBackLosesNothing) {
  for (const int64_t at_ns : {1 * kMs, 2 * kMs, 5 * kMs}) {
    for (const int64_t step_ns : {kMs / 1000, kMs / 2, 4 * kS}) {
      Run("clock_jump_at_ns=" + std::to_string(at_ns) +
          ",clock_jump_ns=" + std::to_string(-step_ns));
    }
  }
}

TEST_P(ClockTest, PredictionsWrongByTenEitherWayLoseNothing) {
  for (const char* const factor : {"0.1", "10"}) {
    Run(std::string("misprediction=p1,misprediction_factor=") + factor);
    Run(std::string("misprediction=p0.5,misprediction_factor=") + factor);
  }
}

// Times near the end of 64 bits: nothing is added to them that does not fit.
TEST_P(ClockTest, TimesNearTheEndOfTheClockAreRefusedOrNoTimes) {
  Api api;
  api.opening.profile_path = GPUSHARE_SMALL_PROFILE;
  api.Open({"sim", GPUSHARE_DRIVE_POLL}, nullptr, GetParam());
  for (const int64_t far_ns : {INT64_MAX / 2, INT64_MAX - kS, INT64_MAX - 1}) {
    EXPECT_FAILS(gpushare_poll_until(api.runtime, far_ns), GPUSHARE_INVALID_ARGUMENT,
                 "no clock gets beyond");
    EXPECT_OK(gpushare_runtime_quiesce(api.runtime, far_ns));
    const gpushare_ticket held = api.Submit(api.BeTask(), false);
    EXPECT_FAILS(gpushare_ticket_wait(api.runtime, held, far_ns), GPUSHARE_DEADLINE_EXCEEDED,
                 "nothing is due");
    EXPECT_LT(api.NowNs(), 3600 * kS) << "the clock does not run to a deadline that is no time";
    EXPECT_OK(gpushare_runtime_resume(api.runtime));
    EXPECT_OK(gpushare_ticket_wait(api.runtime, held, far_ns));
    EXPECT_OK(gpushare_ticket_release(api.runtime, held));
  }
  api.Close();
}

}  // namespace
}  // namespace gpushare_test
