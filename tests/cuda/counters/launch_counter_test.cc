// Counting by CUPTI without a GPU: the order of its calls, what becomes of its values, and what is
// said where it is missing or does not permit it. The library is fake_cupti.cc.

#include "src/cuda/counters/launch_counter.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "src/cuda/counters/metrics.h"
#include "tests/cuda/counters/fake_cupti.h"

namespace gpushare::cuda {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kPeak[] = ".avg.pct_of_peak_sustained_elapsed";

class LaunchCounterTest : public testing::Test {
 protected:
  void SetUp() override {
    const absl::StatusOr<cupti::Calls> calls = cupti::Open();
    ASSERT_TRUE(calls.ok()) << calls.status();
    calls_ = *calls;
    void* const state = dlsym(RTLD_DEFAULT, "FakeCuptiState");
    ASSERT_NE(state, nullptr) << "this is not the fake library";
    fake_ = reinterpret_cast<FakeCupti* (*)()>(state)();
    *fake_ = FakeCupti();
    // A range of which SMs were active in four fifths.
    fake_->values = {{"sm__cycles_active.max", 8000},
                     {"sm__cycles_elapsed.max", 10000},
                     {"smsp__inst_executed.sum", 5000},
                     {"smsp__inst_executed_op_global_ld.sum", 300},
                     {"smsp__inst_executed_op_global_st.sum", 100},
                     {"smsp__inst_executed_op_ldgsts.sum", 50},
                     {"l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", 310},
                     {"l1tex__t_requests_pipe_lsu_mem_global_op_st.sum", 90},
                     {"l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", 1200},
                     {"l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", 400},
                     {"dram__bytes_read.sum", 7000},
                     {"dram__bytes_write.sum", 3000},
                     {std::string("smsp__issue_active") + kPeak, 40},
                     {std::string("dram__throughput") + kPeak, 20},
                     {std::string("lts__throughput") + kPeak, 99}};
  }

  absl::StatusOr<core::LaunchCounts> Count() {
    return CountLaunches(calls_, &context_, 3, [this] {
      EXPECT_TRUE(fake_->in_range);
      ++runs_;
      return run_status_;
    });
  }

  cupti::Calls calls_;
  FakeCupti* fake_ = nullptr;
  int context_ = 0;
  int runs_ = 0;
  absl::Status run_status_;
};

TEST_F(LaunchCounterTest, ItRunsOnceAPassAndGivesEverythingBack) {
  const absl::StatusOr<core::LaunchCounts> counts = Count();
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_EQ(runs_, 3);
  EXPECT_EQ(fake_->ordinal, 3);
  EXPECT_EQ(fake_->context, &context_);
  EXPECT_EQ(fake_->open_sessions, 0);
  EXPECT_FALSE(fake_->initialised);
  EXPECT_FALSE(fake_->in_range);
  EXPECT_EQ(fake_->wrong_order, "");
  EXPECT_EQ(fake_->wrong_size, "");
  EXPECT_EQ(fake_->metrics.size(), CountedMetrics().size());
  EXPECT_THAT(
      fake_->calls,
      ElementsAre("Initialize", "GetChipName", "GetCounterAvailability", "GetCounterAvailability",
                  "HostInitialize", "ConfigAddMetrics", "GetConfigImageSize", "GetConfigImage",
                  "Enable", "GetCounterDataSize", "CounterDataImageInitialize", "SetConfig",
                  "Start", "PushRange", "PopRange", "Stop", "Start", "PushRange", "PopRange",
                  "Stop", "Start", "PushRange", "PopRange", "Stop", "DecodeData",
                  "EvaluateToGpuValues", "Disable", "HostDeinitialize", "DeInitialize"));
}

TEST_F(LaunchCounterTest, LoadsStoresAndAsyncCopiesAddUpAndSharesAreOfTheActiveTime) {
  const absl::StatusOr<core::LaunchCounts> counts = Count();
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_EQ(counts->instructions, 5000);
  EXPECT_EQ(counts->memory_instructions, 450);
  EXPECT_EQ(counts->requests, 400);
  EXPECT_EQ(counts->sectors, 1600);
  EXPECT_EQ(counts->dram_read_bytes, 7000);
  EXPECT_EQ(counts->dram_write_bytes, 3000);
  EXPECT_DOUBLE_EQ(counts->issue, 0.5);
  EXPECT_DOUBLE_EQ(counts->dram, 0.25);
  EXPECT_EQ(counts->l2, 1) << "99 % of the range is more than all of the active time";
  EXPECT_EQ(counts->tensor, 0);
}

TEST_F(LaunchCounterTest, WithoutPermissionItSaysHowToAllowIt) {
  for (const char* const call : {"GetCounterAvailability", "Enable", "SetConfig", "Start"}) {
    *fake_ = FakeCupti();
    fake_->answers[call] = cupti::kInsufficientPrivileges;
    const absl::Status refused = Count().status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied) << call;
    EXPECT_THAT(std::string(refused.message()),
                AllOf(HasSubstr("ERR_NVGPUCTRPERM"),
                      HasSubstr("NVreg_RestrictProfilingToAdminUsers"), HasSubstr(call),
                      HasSubstr("answers 35"), HasSubstr("CUPTI_ERROR_INSUFFICIENT_PRIVILEGES")));
    EXPECT_EQ(fake_->open_sessions, 0) << call;
    EXPECT_FALSE(fake_->initialised) << call;
  }
  EXPECT_EQ(runs_, 0);
}

TEST_F(LaunchCounterTest, EachAnswerHasItsStatus) {
  const std::vector<std::pair<int, absl::StatusCode>> statuses = {
      {cupti::kVirtualDevicePrivileges, absl::StatusCode::kPermissionDenied},
      {cupti::kHardwareBusy, absl::StatusCode::kFailedPrecondition},
      {cupti::kMultipleSubscribers, absl::StatusCode::kFailedPrecondition},
      {cupti::kOldProfilerInitialised, absl::StatusCode::kFailedPrecondition},
      {cupti::kNotSupported, absl::StatusCode::kUnavailable},
      {cupti::kConfidentialComputing, absl::StatusCode::kUnavailable},
      {cupti::kMigDevice, absl::StatusCode::kUnavailable},
      {999, absl::StatusCode::kInternal}};
  for (const auto& [answer, code] : statuses) {
    *fake_ = FakeCupti();
    fake_->answers["Enable"] = answer;
    EXPECT_EQ(Count().status().code(), code) << answer;
    EXPECT_EQ(fake_->open_sessions, 0);
  }
}

TEST_F(LaunchCounterTest, ASecondSessionOfTheProcessIsRefused) {
  absl::Status second;
  const absl::StatusOr<core::LaunchCounts> first = CountLaunches(calls_, &context_, 0, [&] {
    second = Count().status();
    return absl::OkStatus();
  });
  EXPECT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(second.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.message()),
              AllOf(HasSubstr("another pre-run of this process counts"),
                    HasSubstr("run it after that one")));
  EXPECT_EQ(runs_, 0);
  EXPECT_EQ(fake_->wrong_order, "");
  EXPECT_TRUE(Count().ok()) << "the first one has ended";
}

TEST_F(LaunchCounterTest, WhereAnotherProfilerMayUseCuptiItStaysInitialised) {
  for (const int answer : {cupti::kHardwareBusy, cupti::kMultipleSubscribers, 999}) {
    for (const char* const call : {"GetCounterAvailability", "Enable"}) {
      *fake_ = FakeCupti();
      fake_->answers[call] = answer;
      EXPECT_FALSE(Count().ok());
      EXPECT_TRUE(fake_->initialised) << call << answer;
      EXPECT_EQ(fake_->open_sessions, 0) << call << answer;
    }
  }
  *fake_ = FakeCupti();
  fake_->answers["Start"] = cupti::kHardwareBusy;
  EXPECT_FALSE(Count().ok());
  EXPECT_FALSE(fake_->initialised) << "once enabled, the session is this one";
}

TEST_F(LaunchCounterTest, AMetricThatTheGpuLacksIsNamed) {
  for (const int answer : {cupti::kInvalidParameter, cupti::kInvalidMetricName}) {
    fake_->missing_metric = std::string("lts__throughput") + kPeak;
    fake_->missing_answer = answer;
    const absl::Status refused = Count().status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(refused.message()),
                HasSubstr("the GPU (GH100) has no metric lts__throughput.avg"));
    EXPECT_EQ(fake_->open_sessions, 0);
  }
  *fake_ = FakeCupti();
  fake_->answers["ConfigAddMetrics"] = cupti::kInvalidParameter;
  EXPECT_EQ(Count().status().code(), absl::StatusCode::kUnavailable) << "each alone is refused";
}

TEST_F(LaunchCounterTest, APassThatFailsIsStoppedBeforeTheSessionEnds) {
  for (const char* const call : {"PushRange", "PopRange", "Stop"}) {
    *fake_ = FakeCupti();
    fake_->answers[call] = 999;
    EXPECT_EQ(Count().status().code(), absl::StatusCode::kInternal) << call;
    EXPECT_FALSE(fake_->in_pass) << call;
    EXPECT_EQ(fake_->wrong_order, "") << call;
    EXPECT_EQ(std::count(fake_->calls.begin(), fake_->calls.end(), "Stop"), 1) << call;
    EXPECT_EQ(fake_->open_sessions, 0) << call;
  }
}

TEST_F(LaunchCounterTest, AnErrorOfTheRunEndsThePassAndIsTheAnswer) {
  run_status_ = absl::DeadlineExceededError("It hangs.");
  EXPECT_EQ(Count().status(), run_status_);
  EXPECT_EQ(runs_, 1);
  EXPECT_FALSE(fake_->in_range);
  EXPECT_FALSE(fake_->in_pass);
  EXPECT_EQ(fake_->wrong_order, "");
  EXPECT_EQ(fake_->open_sessions, 0);
}

TEST_F(LaunchCounterTest, PassesHaveABound) {
  fake_->passes = 1000;
  EXPECT_EQ(Count().status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(runs_, static_cast<int>(kPassesMax));
  EXPECT_EQ(fake_->open_sessions, 0);
}

TEST_F(LaunchCounterTest, ValuesThatMakeNoSenseAreRefused) {
  const std::vector<std::pair<const char*, double>> wrong = {
      {"dram__bytes_read.sum", std::numeric_limits<double>::quiet_NaN()},
      {"smsp__inst_executed.sum", -1},
      {"smsp__inst_executed.sum", 0},
      {"sm__cycles_active.max", 0},
      {"sm__cycles_active.max", 20000}};
  for (const auto& [name, value] : wrong) {
    SetUp();
    fake_->values[name] = value;
    EXPECT_EQ(Count().status().code(), absl::StatusCode::kFailedPrecondition) << name << value;
  }
}

TEST(OpenCuptiTest, AMissingLibraryIsNamedWithTheRemedy) {
  const absl::Status missing = cupti::Open("libcupti_of_nobody.so.13").status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(
      std::string(missing.message()),
      AllOf(HasSubstr("libcupti_of_nobody.so.13 cannot be opened"),
            HasSubstr("counting what a kernel does"), HasSubstr("GPUSHARE_CUDA_LIBRARY_PATH")));
}

TEST(OpenCuptiTest, ALibraryOfAnotherVersionIsRefused) {
  const absl::Status other = cupti::Open("libm.so.6").status();
  EXPECT_EQ(other.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(other.message()), HasSubstr("has no function cuptiProfilerInitialize"));
}

}  // namespace
}  // namespace gpushare::cuda
