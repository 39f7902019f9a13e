// Replay through the C ABI: a recorded run comes out the same, another policy does not, and what
// cannot be replayed is refused.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/abi/api_fixture.h"

namespace gpushare_test {
namespace {

constexpr DeviceCase kSim = {"sim", GPUSHARE_DRIVE_POLL};

std::string LogPath() {
  return ::testing::TempDir() + "replay_" + std::to_string(::getpid()) + ".gpulog";
}

// BE work, LC tasks that arrive beside it, and the log of both.
void Record(gpushare_event_log** log, int64_t* events, bool from_the_start = true) {
  Api api;
  api.Open(kSim);
  gpushare_trace_options trace = GPUSHARE_TRACE_OPTIONS_INIT;
  const std::string path = LogPath();
  trace.event_log_path = path.c_str();
  if (from_the_start) {
    ASSERT_OK(gpushare_trace_start(api.runtime, &trace));
  }
  for (int i = 0; i < 4; ++i) {
    const gpushare_ticket be = api.Submit(api.BeTask(4000), false);
    if (!from_the_start && i == 0) {
      ASSERT_OK(gpushare_trace_start(api.runtime, &trace));
    }
    ASSERT_OK(gpushare_poll_until(api.runtime, api.NowNs() + 100 * kUs));
    api.Finish(api.Submit(api.LcTask(), true));
    api.Finish(be);
  }
  ASSERT_OK(gpushare_trace_stop(api.runtime, nullptr));
  api.Close();
  ASSERT_OK(gpushare_event_log_open(path.c_str(), log, events));
  std::remove(path.c_str());
}

class ReplayApiTest : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.device = "sim";
    options_.policy = "adaptive:evict";
  }
  void TearDown() override { EXPECT_OK(gpushare_event_log_release(log_)); }

  // As Api::Open makes them. The log may be released meanwhile.
  void OpenWithApps() {
    ASSERT_OK(gpushare_replay_open(log_, &options_, &api_.runtime));
    const gpushare_app_options lc = AppOptionsOf(GPUSHARE_CLASS_LATENCY_CRITICAL, "service");
    const gpushare_app_options be = AppOptionsOf(GPUSHARE_CLASS_BEST_EFFORT, "training");
    ASSERT_OK(gpushare_app_create(api_.runtime, &lc, &api_.lc_app));
    ASSERT_OK(gpushare_app_create(api_.runtime, &be, &api_.be_app));
    ASSERT_OK(gpushare_queue_create(api_.lc_app, &api_.lc_queue));
    ASSERT_OK(gpushare_queue_create(api_.be_app, &api_.be_queue));
    gpushare_kernel_options kernel = GPUSHARE_KERNEL_OPTIONS_INIT;
    kernel.name = "chain1";
    ASSERT_OK(gpushare_kernel_register(api_.runtime, &kernel, &api_.graph));
    kernel.name = "sincos_27us";
    ASSERT_OK(gpushare_kernel_register(api_.runtime, &kernel, &api_.sincos));
  }

  std::string Difference() const {
    size_t size = 0;
    EXPECT_OK(gpushare_replay_difference(api_.runtime, nullptr, 0, &size));
    std::vector<char> text(size + 1, '\0');
    EXPECT_OK(gpushare_replay_difference(api_.runtime, text.data(), text.size(), &size));
    return text.data();
  }

  gpushare_runtime_options options_ = GPUSHARE_RUNTIME_OPTIONS_INIT;
  gpushare_event_log* log_ = nullptr;
  int64_t events_ = 0;
  Api api_;
};

TEST_F(ReplayApiTest, ARecordedRunComesOutTheSame) {
  ASSERT_NO_FATAL_FAILURE(Record(&log_, &events_));
  ASSERT_NO_FATAL_FAILURE(OpenWithApps());
  // The runtime keeps the log.
  EXPECT_OK(gpushare_event_log_release(log_));
  log_ = nullptr;
  size_t size = 0;
  EXPECT_FAILS(gpushare_replay_difference(api_.runtime, nullptr, 0, &size),
               GPUSHARE_FAILED_PRECONDITION, "has run");
  gpushare_replay_result result = GPUSHARE_REPLAY_RESULT_INIT;
  ASSERT_OK(gpushare_replay_run(api_.runtime, &result));
  EXPECT_EQ(Difference(), "");
  EXPECT_EQ(result.matches, 1);
  EXPECT_EQ(result.events, events_);
  EXPECT_EQ(result.events_equal, events_);
  EXPECT_GT(result.decisions, 16);  // a launch and a completion of each of 8 tasks, and evictions
  EXPECT_EQ(result.decisions_equal, result.decisions);
  EXPECT_FAILS(gpushare_replay_run(api_.runtime, &result), GPUSHARE_FAILED_PRECONDITION, "already");
  api_.Close();
}

TEST_F(ReplayApiTest, TheEnvironmentSetsNeitherItsPolicyNorItsProfile) {
  ASSERT_NO_FATAL_FAILURE(Record(&log_, &events_));
  setenv("GPUSHARE_DEVICE", "sim", 1);
  setenv("GPUSHARE_POLICY", "fifo", 1);
  setenv("GPUSHARE_PROFILE", "/absent.json", 1);
  gpushare_runtime* runtime = nullptr;
  EXPECT_OK(gpushare_replay_open(log_, nullptr, &runtime));
  for (const char* name : {"GPUSHARE_DEVICE", "GPUSHARE_POLICY", "GPUSHARE_PROFILE"}) {
    unsetenv(name);
  }
  gpushare_device_info info = GPUSHARE_DEVICE_INFO_INIT;
  ASSERT_OK(gpushare_device_info_get(runtime, &info));
  EXPECT_STREQ(info.policy, "adaptive");
  EXPECT_STREQ(info.profile, "h200");
  EXPECT_OK(gpushare_runtime_release(runtime));
}

TEST_F(ReplayApiTest, AnotherPolicyDiffersAndTheFirstDifferenceIsNamed) {
  ASSERT_NO_FATAL_FAILURE(Record(&log_, &events_));
  options_.policy = "fifo";
  ASSERT_NO_FATAL_FAILURE(OpenWithApps());
  gpushare_replay_result result = GPUSHARE_REPLAY_RESULT_INIT;
  ASSERT_OK(gpushare_replay_run(api_.runtime, &result));
  EXPECT_EQ(result.matches, 0);
  EXPECT_LT(result.events_equal, result.events);
  EXPECT_LT(result.decisions_equal, result.decisions);
  EXPECT_NE(Difference().find("Event " + std::to_string(result.events_equal)), std::string::npos)
      << Difference();
  // Pending work gets no more answers, and the runtime ends all the same.
  static_cast<void>(gpushare_runtime_shutdown(api_.runtime, api_.NowNs()));
  api_.Close();
}

TEST_F(ReplayApiTest, WhatCannotBeReplayedIsRefused) {
  ASSERT_NO_FATAL_FAILURE(Record(&log_, &events_, false));
  gpushare_runtime* runtime = nullptr;
  EXPECT_FAILS(gpushare_replay_open(log_, &options_, &runtime), GPUSHARE_INVALID_ARGUMENT,
               "begins inside a run");
  EXPECT_OK(gpushare_event_log_release(log_));
  ASSERT_NO_FATAL_FAILURE(Record(&log_, &events_));
  options_.device = "null";
  EXPECT_FAILS(gpushare_replay_open(log_, &options_, &runtime), GPUSHARE_INVALID_ARGUMENT,
               "virtual time");
  EXPECT_EQ(runtime, nullptr);
  EXPECT_FAILS(gpushare_replay_open(nullptr, &options_, &runtime), GPUSHARE_INVALID_ARGUMENT,
               "handle");
  EXPECT_FAILS(gpushare_replay_open(log_, &options_, nullptr), GPUSHARE_INVALID_ARGUMENT,
               "out_runtime");
}

}  // namespace
}  // namespace gpushare_test
