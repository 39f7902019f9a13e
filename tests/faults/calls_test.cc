// Every function of the C ABI in every state of the runtime: shut down, on a lost device, in a
// forked child, inside a callback.

#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <set>

#include "tests/faults/every_call.h"

namespace gpushare_test {
namespace {

constexpr gpushare_status kOk = GPUSHARE_OK;
constexpr gpushare_status kInvalid = GPUSHARE_INVALID_ARGUMENT;
constexpr gpushare_status kRefused = GPUSHARE_FAILED_PRECONDITION;

// What the arguments of every_call.cc answer in any state.
const std::map<std::string, gpushare_status>& Always() {
  static const std::map<std::string, gpushare_status> always = {
      {"gpushare_calibrate", kInvalid},          // no output
      {"gpushare_enqueue_fail", kRefused},       // no enqueue callback runs
      {"gpushare_evaluate_models", kInvalid},    // no judge
      {"gpushare_kernel_pre_run", kInvalid},     // no kernel
      {"gpushare_plan_partitions", kRefused},    // the policy uses none
      {"gpushare_profile_train", kInvalid},      // no paths
      {"gpushare_profile_like", kInvalid},       // no paths
      {"gpushare_region_end", kInvalid},         // no region
      {"gpushare_replay_difference", kRefused},  // not of gpushare_replay_open
      {"gpushare_replay_open", kInvalid},        // real time
      {"gpushare_replay_run", kRefused},
      {"gpushare_runtime_resume", kRefused},  // not quiesced
      {"gpushare_ticket_cancel", kRefused},   // complete
  };
  return always;
}

std::map<std::string, gpushare_status> With(std::map<std::string, gpushare_status> expected) {
  expected.insert(Always().begin(), Always().end());
  return expected;
}

class EveryCallTest : public ::testing::TestWithParam<const char*> {
 protected:
  void Open(const char* faults = nullptr) {
    api_.opening.profile_path = GPUSHARE_SMALL_PROFILE;
    api_.Open({GetParam(), GPUSHARE_DRIVE_POLL}, faults);
    every_.Open(api_);
  }
  void Close() {
    every_.Close();
    api_.Close();
  }
  Api api_;
  EveryHandle every_;
};

INSTANTIATE_TEST_SUITE_P(Devices, EveryCallTest, ::testing::Values("sim", "null"),
                         [](const auto& device) { return std::string(device.param); });

// The table is complete: a function that returns no status is named here.
TEST(EveryCallTable, HasEveryFunctionThatReturnsAStatus) {
  std::set<std::string> missing;
  std::ifstream symbols(GPUSHARE_SYMBOLS);
  for (std::string name; symbols >> name;) missing.insert(name);
  ASSERT_GT(missing.size(), 50u);
  for (const Call& call : EveryCall()) EXPECT_EQ(missing.erase(call.name), 1u) << call.name;
  for (const char* const text :
       {"abi_version", "app_class_name", "app_id", "event_type_name", "form_name", "kernel_id",
        "last_error_message", "reason_name", "status_name", "task_kind_name", "verdict_name",
        "version_string"}) {
    EXPECT_EQ(missing.erase(std::string("gpushare_") + text), 1u) << text;
  }
  EXPECT_TRUE(missing.empty()) << *missing.begin();
}

TEST_P(EveryCallTest, AnswersBeforeAnythingGoesWrong) {
  Open();
  ExpectOfEveryCall(every_.handles, kOk, With({}));
  Close();
}

TEST_P(EveryCallTest, IsRefusedOrReadsAfterAShutdown) {
  Open();
  ASSERT_OK(gpushare_query_end(api_.runtime, every_.handles.query));
  ASSERT_OK(gpushare_runtime_shutdown(api_.runtime, api_.Deadline()));
  ExpectOfEveryCall(every_.handles, kOk,
                    With({{"gpushare_app_create", kRefused},
                          {"gpushare_queue_create", kRefused},
                          {"gpushare_kernel_register", kRefused},
                          {"gpushare_kernel_register_ptx", kRefused},
                          {"gpushare_fused_kernel_register", kRefused},
                          {"gpushare_query_begin", kRefused},
                          {"gpushare_query_begin_with", kRefused},
                          {"gpushare_query_end", kInvalid},  // ended above
                          {"gpushare_submit_lc", kRefused},
                          {"gpushare_submit_be", kRefused},
                          {"gpushare_run_lc", kRefused},
                          {"gpushare_region_begin", kRefused},
                          {"gpushare_region_room", kRefused}}));
  Close();
}

TEST_P(EveryCallTest, IsRefusedInAForkedChild) {
  Open();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    int wrong = 0;
    for (const Call& call : EveryCall()) {
      const gpushare_status status = call.make(every_.handles);
      if (status == kRefused) continue;
      ++wrong;
      std::fprintf(stderr, "%s answers %s\n", call.name, gpushare_status_name(status));
    }
    ::_exit(wrong == 0 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  ASSERT_OK(gpushare_query_end(api_.runtime, every_.handles.query));  // it keeps BE waiting
  EXPECT_EQ(api_.Finish(api_.Submit(api_.BeTask(), false)).verdict, GPUSHARE_VERDICT_OK);
  Close();
}

// Releases of the handles that the callback's own task uses are among the calls.
TEST_P(EveryCallTest, NeitherBlocksNorBreaksInsideACallback) {
  Open();
  struct Inside {
    const Handles* handles;
    int calls = 0;
  } inside = {&every_.handles};
  gpushare_task_options task = api_.LcTask();
  task.callback_user = &inside;
  task.callback = [](void* user, const gpushare_completion_record*) {
    auto& here = *static_cast<Inside*>(user);
    if (here.calls++ > 0) return;
    ExpectOfEveryCall(*here.handles, kOk,
                      With({{"gpushare_runtime_drain", kRefused},
                            {"gpushare_runtime_quiesce", kRefused},
                            {"gpushare_runtime_shutdown", kRefused},
                            {"gpushare_poll", kRefused},
                            {"gpushare_poll_until", kRefused},
                            {"gpushare_ticket_wait", kRefused},
                            {"gpushare_run_lc", kRefused},
                            {"gpushare_region_begin", kRefused},
                            {"gpushare_trace_stop", kRefused},
                            {"gpushare_evaluate_models", kRefused},
                            {"gpushare_calibrate", kRefused},
                            {"gpushare_kernel_pre_run", kRefused}}));
  };
  EXPECT_EQ(api_.Finish(api_.Submit(task, true)).verdict, GPUSHARE_VERDICT_OK);
  EXPECT_EQ(inside.calls, 1);
  EXPECT_OK(gpushare_trace_stop(api_.runtime, nullptr));  // started in the callback
  // The thread is not taken to be inside a callback afterwards.
  EXPECT_OK(gpushare_runtime_drain(api_.runtime, api_.Deadline()));
  Close();
}

TEST(LostDeviceTest, EveryCallAnswersAndOnlyNewWorkIsRefused) {
  Api api;
  EveryHandle every;
  api.opening.profile_path = GPUSHARE_SMALL_PROFILE;
  api.Open({"sim", GPUSHARE_DRIVE_POLL}, "device_lost=3");
  every.Open(api);  // two launches
  EXPECT_EQ(api.Finish(api.Submit(api.LcTask(), true)).verdict, GPUSHARE_VERDICT_DEVICE_LOST);
  ExpectOfEveryCall(every.handles, kOk,
                    With({{"gpushare_kernel_register", GPUSHARE_UNAVAILABLE},
                          {"gpushare_kernel_register_ptx", GPUSHARE_UNAVAILABLE},
                          {"gpushare_query_begin", GPUSHARE_UNAVAILABLE},
                          {"gpushare_query_begin_with", GPUSHARE_UNAVAILABLE},
                          {"gpushare_submit_lc", GPUSHARE_UNAVAILABLE},
                          {"gpushare_submit_be", GPUSHARE_UNAVAILABLE},
                          {"gpushare_run_lc", GPUSHARE_UNAVAILABLE},
                          {"gpushare_region_begin", GPUSHARE_UNAVAILABLE},
                          {"gpushare_region_room", GPUSHARE_UNAVAILABLE}}));
  every.Close();
  api.Close();
}

}  // namespace
}  // namespace gpushare_test
