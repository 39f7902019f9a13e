// The device "sim:realtime" through the C ABI: its clock is the system's, waits take as long as
// work does, and an idle runtime costs nothing. And the sentence about virtual time, which a
// runtime with a thread logs.

#include <atomic>
#include <chrono>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

#include "tests/abi/api_fixture.h"

namespace gpushare_test {
namespace {

int64_t ClockNs(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return time.tv_sec * kS + time.tv_nsec;
}
int64_t MonotonicNs() { return ClockNs(CLOCK_MONOTONIC); }

void SleepMs(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

class RealTimeApiTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(api_.Open({"sim:realtime", GPUSHARE_DRIVE_THREAD}));
  }
  void TearDown() override { api_.Close(); }
  Api api_;
};

TEST_F(RealTimeApiTest, ItsClockIsTheMonotonicOne) {
  const int64_t before_ns = MonotonicNs();
  const int64_t now_ns = api_.NowNs();
  EXPECT_GE(now_ns, before_ns);
  EXPECT_LE(now_ns, MonotonicNs());
}

TEST_F(RealTimeApiTest, WaitsTakeAsLongAsTheWork) {
  const int64_t begin_ns = MonotonicNs();
  const gpushare_completion_record query = api_.Finish(api_.Submit(api_.LcTask(), true));
  const int64_t waited_ns = MonotonicNs() - begin_ns;
  EXPECT_EQ(query.verdict, GPUSHARE_VERDICT_OK);
  EXPECT_GT(query.measured_ns, 500 * kUs);  // chain1 takes 667 us alone
  EXPECT_GE(waited_ns, query.measured_ns);
  EXPECT_LE(query.complete_ns, begin_ns + waited_ns);
}

// A pause of the application is a pause: the step that runs meanwhile goes on for as long.
TEST_F(RealTimeApiTest, ASleepLetsBestEffortWorkRunForAsLong) {
  const gpushare_ticket step = api_.Submit(api_.BeTask(2'000'000), false);  // 30 ms alone
  SleepMs(10);  // its thread may have to wait for a core
  const int64_t woke_ns = MonotonicNs();
  const gpushare_completion_record record = api_.Finish(step);
  EXPECT_LT(record.start_ns, woke_ns);
  EXPECT_GT(record.end_ns - record.start_ns, 20 * kMs);
}

TEST_F(RealTimeApiTest, AQueryEvictsTheStepThatRuns) {
  const gpushare_ticket step = api_.Submit(api_.BeTask(2'000'000), false);  // 30 ms alone
  SleepMs(10);
  EXPECT_EQ(api_.Finish(api_.Submit(api_.LcTask(), true)).verdict, GPUSHARE_VERDICT_OK);
  EXPECT_GE(api_.Finish(step).evictions, 1);
}

TEST_F(RealTimeApiTest, AnIdleRuntimeTakesAHundredthOfACoreAtMost) {
  api_.Finish(api_.Submit(api_.LcTask(), true));
  api_.Finish(api_.Submit(api_.BeTask(), false));
  SleepMs(50);  // its thread parks
  const int64_t begin_ns = MonotonicNs();
  const int64_t used_ns = ClockNs(CLOCK_PROCESS_CPUTIME_ID);
  SleepMs(1000);
  const int64_t share_ns = (MonotonicNs() - begin_ns) / 100;
  EXPECT_LE(ClockNs(CLOCK_PROCESS_CPUTIME_ID) - used_ns, share_ns);
}

TEST_F(RealTimeApiTest, MetricsSayThatItIsSimulated) {
  size_t size = 0;
  ASSERT_OK(gpushare_metrics_text(api_.runtime, nullptr, 0, &size));
  std::string text(size + 4096, '\0');  // numbers grow meanwhile
  ASSERT_OK(gpushare_metrics_text(api_.runtime, text.data(), text.size(), &size));
  EXPECT_NE(text.find("simulated=\"true\""), std::string::npos) << text;
}

TEST_F(RealTimeApiTest, AQuiescedRuntimeIsPausedForAsLongAsTheApplicationSays) {
  ASSERT_OK(gpushare_runtime_quiesce(api_.runtime, api_.Deadline()));
  const gpushare_ticket step = api_.Submit(api_.BeTask(), false);
  SleepMs(30);
  const int64_t resumed_ns = MonotonicNs();
  ASSERT_OK(gpushare_runtime_resume(api_.runtime));
  EXPECT_GE(api_.Finish(step).start_ns, resumed_ns);
}

TEST(RealTimeFaultsTest, AHungLaunchIsTimedOutOnTheWallClock) {
  Api api;
  api.opening.hang_floor_ns = 100 * kMs;
  ASSERT_NO_FATAL_FAILURE(api.Open({"sim:realtime", GPUSHARE_DRIVE_THREAD}, "hang=1"));
  const int64_t begin_ns = MonotonicNs();
  EXPECT_EQ(api.Finish(api.Submit(api.LcTask(), true)).verdict, GPUSHARE_VERDICT_TIMED_OUT);
  EXPECT_GE(MonotonicNs() - begin_ns, 100 * kMs);
  EXPECT_EQ(api.Finish(api.Submit(api.LcTask(), true)).verdict, GPUSHARE_VERDICT_OK);
  api.Close();
}

TEST(RealTimeFaultsTest, AClockThatJumpsIsRefused) {
  gpushare_runtime_options options = GPUSHARE_RUNTIME_OPTIONS_INIT;
  options.device = "sim:realtime";
  options.sim_faults = "clock_jump_at_ns=5,clock_jump_ns=1000";
  gpushare_runtime* runtime = nullptr;
  EXPECT_FAILS(gpushare_runtime_create(&options, &runtime), GPUSHARE_INVALID_ARGUMENT,
               "clock_jump_at_ns");
}

TEST(RealTimeRuntimesTest, SeveralRunInOneProcess) {
  std::vector<Api> apis(3);
  for (Api& api : apis) {
    ASSERT_NO_FATAL_FAILURE(api.Open({"sim:realtime", GPUSHARE_DRIVE_THREAD}));
  }
  std::vector<std::thread> servers;
  for (Api& api : apis) {
    servers.emplace_back([&api] {
      for (int i = 0; i < 10; ++i) {
        EXPECT_EQ(api.Finish(api.Submit(api.LcTask(), true)).verdict, GPUSHARE_VERDICT_OK);
      }
    });
  }
  for (std::thread& server : servers) server.join();
  for (Api& api : apis) api.Close();
}

// --- the sentence about virtual time ---

std::vector<std::string> MessagesOf(const DeviceCase& device_case) {
  std::vector<std::string> messages;
  Api api;
  api.opening.log_user = &messages;
  api.opening.log = [](void* user, gpushare_log_level level, const char* message) {
    EXPECT_EQ(level, GPUSHARE_LOG_WARNING) << message;
    static_cast<std::vector<std::string>*>(user)->emplace_back(message);
  };
  api.Open(device_case);
  api.Finish(api.Submit(api.LcTask(), true));
  api.Close();
  return messages;
}

TEST(VirtualTimeSentenceTest, ARuntimeWithAThreadInVirtualTimeLogsWhatToDoOnce) {
  for (int runtimes = 0; runtimes < 2; ++runtimes) {
    const std::vector<std::string> messages = MessagesOf({"sim", GPUSHARE_DRIVE_THREAD});
    ASSERT_EQ(messages.size(), 1U);
    EXPECT_NE(messages[0].find("'sim:realtime'"), std::string::npos) << messages[0];
    EXPECT_NE(messages[0].find("GPUSHARE_DRIVE_POLL"), std::string::npos) << messages[0];
  }
}

TEST(VirtualTimeSentenceTest, OthersDoNotLogIt) {
  for (const DeviceCase& one :
       {DeviceCase{"sim", GPUSHARE_DRIVE_POLL}, DeviceCase{"sim:realtime", GPUSHARE_DRIVE_THREAD},
        DeviceCase{"null", GPUSHARE_DRIVE_THREAD}}) {
    EXPECT_EQ(MessagesOf(one), std::vector<std::string>()) << NameOf(one);
  }
}

}  // namespace
}  // namespace gpushare_test
