// Faults of the device, each at every launch in turn: lost, refused, failed, hung, evictions that
// are blocked. One fault costs one task; a lost device costs what is on it.

#include <string>

#include "tests/faults/flight.h"

namespace gpushare_test {
namespace {

constexpr int kTasks = 12;  // LC and BE in turn: each is a launch at least

class DeviceFaultsTest : public ::testing::TestWithParam<const char*> {
 protected:
  // Runs the tasks under a fault, then drains and shuts down. How many ended with each verdict.
  std::map<gpushare_verdict, int> Run(const std::string& faults, int64_t hang_floor_ns = 0) {
    Api api;
    api.opening.profile_path = GPUSHARE_SMALL_PROFILE;
    api.opening.hang_floor_ns = hang_floor_ns;
    api.Open({"sim", GPUSHARE_DRIVE_POLL}, faults.c_str(), GetParam());
    Flight flight;
    for (int i = 0; i < kTasks; ++i) {
      const bool lc = i % 2 == 0;
      flight.Submit(lc ? api.lc_queue : api.be_queue, lc ? api.LcTask() : api.BeTask(2000), lc);
    }
    EXPECT_OK(gpushare_runtime_drain(api.runtime, api.Deadline()));
    accepted_ = static_cast<int>(flight.size());
    stats_ = api.RuntimeStats();
    api.Close();
    return flight.ExpectOnce();
  }

  int accepted_ = 0;
  gpushare_runtime_stats stats_ = GPUSHARE_RUNTIME_STATS_INIT;
};

INSTANTIATE_TEST_SUITE_P(Policies, DeviceFaultsTest,
                         ::testing::Values("adaptive:evict", "smguard", "baymax", "priority",
                                           "fifo"),
                         [](const auto& policy) {
                           const std::string name = policy.param;
                           return name == "adaptive:evict" ? std::string("adaptive_evict") : name;
                         });

TEST_P(DeviceFaultsTest, ALostDeviceAtEachLaunchEndsEveryTaskOnce) {
  for (int nth = 1; nth <= kTasks; ++nth) {
    SCOPED_TRACE("device_lost=" + std::to_string(nth));
    const auto verdicts = Run("device_lost=" + std::to_string(nth));
    EXPECT_EQ(stats_.device_lost, 1);
    EXPECT_EQ(stats_.tasks_pending, 0);
    for (const auto& [verdict, count] : verdicts) {
      EXPECT_TRUE(verdict == GPUSHARE_VERDICT_OK || verdict == GPUSHARE_VERDICT_DEVICE_LOST)
          << count << " tasks end " << gpushare_verdict_name(verdict);
    }
  }
}

TEST_P(DeviceFaultsTest, ALostDeviceAtAnyTimeEndsEveryTaskOnce) {
  for (int64_t at_ns = 1; at_ns < 4 * kMs; at_ns += 173'000) {
    SCOPED_TRACE(at_ns);
    Run("device_lost_at_ns=" + std::to_string(at_ns));
    EXPECT_EQ(stats_.tasks_pending, 0);
  }
}

TEST_P(DeviceFaultsTest, ARefusedOrFailedLaunchCostsOneTask) {
  for (const char* const fault : {"launch_error", "launch_failure"}) {
    for (int nth = 1; nth <= kTasks; ++nth) {
      SCOPED_TRACE(std::string(fault) + "=" + std::to_string(nth));
      auto verdicts = Run(std::string(fault) + "=" + std::to_string(nth));
      EXPECT_EQ(stats_.device_lost, 0);
      EXPECT_EQ(verdicts[GPUSHARE_VERDICT_FAILED], 1);
      EXPECT_EQ(verdicts[GPUSHARE_VERDICT_OK], accepted_ - 1);
    }
  }
}

// What is behind it on its lane goes with it, and what waits for the SMs that it keeps, until its
// lane is given up; the rest runs.
TEST_P(DeviceFaultsTest, AHungLaunchTimesOutAndTheOthersRun) {
  for (int nth = 1; nth <= kTasks; ++nth) {
    SCOPED_TRACE("hang=" + std::to_string(nth));
    auto verdicts = Run("hang=" + std::to_string(nth), 20 * kMs);
    EXPECT_GE(stats_.hung, 1);
    EXPECT_EQ(stats_.device_lost, 0);
    EXPECT_GE(verdicts[GPUSHARE_VERDICT_TIMED_OUT], 1);
    EXPECT_EQ(verdicts[GPUSHARE_VERDICT_OK] + verdicts[GPUSHARE_VERDICT_TIMED_OUT], accepted_);
  }
}

TEST_P(DeviceFaultsTest, ACompletionThatIsLostOrDoubledIsReportedOnce) {
  for (int nth = 1; nth <= kTasks; ++nth) {
    SCOPED_TRACE(nth);
    auto verdicts = Run("duplicated_completion=" + std::to_string(nth));
    EXPECT_EQ(verdicts[GPUSHARE_VERDICT_OK], accepted_);
    verdicts = Run("dropped_completion=" + std::to_string(nth), 20 * kMs);
    EXPECT_GE(verdicts[GPUSHARE_VERDICT_TIMED_OUT], 1);
    EXPECT_EQ(verdicts[GPUSHARE_VERDICT_OK] + verdicts[GPUSHARE_VERDICT_TIMED_OUT], accepted_);
  }
}

// The eviction takes effect with the launch's own end: LC waits for one launch, not for ever.
TEST_P(DeviceFaultsTest, EvictionsThatAreBlockedDelayAndLoseNothing) {
  Api api;
  api.opening.profile_path = GPUSHARE_SMALL_PROFILE;
  api.Open({"sim", GPUSHARE_DRIVE_POLL}, "blocked_eviction=p1", GetParam());
  const gpushare_ticket be = api.Submit(api.BeTask(528'000), false);
  ASSERT_OK(gpushare_poll_until(api.runtime, api.NowNs() + kMs));
  const std::string policy = GetParam();
  if (policy == "smguard") {  // evicts for reservations alone
    gpushare_reservation_options reservation = GPUSHARE_RESERVATION_OPTIONS_INIT;
    reservation.capsms = 132;
    ASSERT_OK(gpushare_reserve_capsm(api.lc_app, &reservation));
  }
  const gpushare_ticket lc = api.Submit(api.LcTask(), true);
  EXPECT_EQ(api.Finish(lc).verdict, GPUSHARE_VERDICT_OK);
  EXPECT_EQ(api.Finish(be).verdict, GPUSHARE_VERDICT_OK);
  if (policy == "adaptive:evict" || policy == "smguard") {
    EXPECT_GT(api.RuntimeStats().evictions_blocked, 0);
  }
  api.Close();
}

TEST_P(DeviceFaultsTest, DeviceMemoryThatRunsOutIsRefusedAndLosesNothing) {
  for (const char* const fault :
       {"place_out_of_memory", "lane_out_of_memory", "kernel_out_of_memory"}) {
    for (int nth = 1; nth <= 20; ++nth) {
      const std::string text = std::string(fault) + "=" + std::to_string(nth);
      SCOPED_TRACE(text);
      gpushare_runtime_options options = GPUSHARE_RUNTIME_OPTIONS_INIT;
      options.device = "sim";
      options.drive = GPUSHARE_DRIVE_POLL;
      options.policy = GetParam();
      options.profile_path = GPUSHARE_SMALL_PROFILE;
      options.sim_faults = text.c_str();
      gpushare_runtime* runtime = nullptr;
      const gpushare_status status = gpushare_runtime_create(&options, &runtime);
      if (status != GPUSHARE_OK) {
        EXPECT_EQ(status, GPUSHARE_RESOURCE_EXHAUSTED) << gpushare_last_error_message();
        continue;
      }
      gpushare_kernel_options kernel = GPUSHARE_KERNEL_OPTIONS_INIT;
      kernel.name = "sincos_27us";
      gpushare_kernel* registered = nullptr;
      if (gpushare_kernel_register(runtime, &kernel, &registered) != GPUSHARE_OK) {
        EXPECT_OK(gpushare_kernel_register(runtime, &kernel, &registered));  // the name is free
      }
      EXPECT_OK(gpushare_kernel_release(registered));
      EXPECT_OK(gpushare_runtime_release(runtime));
    }
  }
}

}  // namespace
}  // namespace gpushare_test
