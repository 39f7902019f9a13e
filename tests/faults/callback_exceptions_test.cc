// An exception that leaves a function of the application: the library catches it, names it in the
// log, and goes on.

#include <gpushare/gpushare.h>
#include <gpushare/gpushare_cost_model.h>
#include <gpushare/gpushare_policy.h>
#include <pthread.h>

#include <atomic>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/abi/api_fixture.h"

namespace gpushare_test {
namespace {

// What the log callback gets.
class LogLines {
 public:
  static void Add(void* user, gpushare_log_level, const char* message) {
    auto& self = *static_cast<LogLines*>(user);
    const std::lock_guard<std::mutex> lock(self.mutex_);
    self.lines_ += message;
    self.lines_ += '\n';
  }
  std::string text() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return lines_;
  }

 private:
  std::mutex mutex_;
  std::string lines_;
};

void Boom(void*, const gpushare_completion_record*) { throw std::runtime_error("boom"); }

class CallbackExceptionsTest : public testing::TestWithParam<DeviceCase> {
 protected:
  void SetUp() override {
    api_.opening.log = &LogLines::Add;
    api_.opening.log_user = &log_;
    api_.Open(GetParam());
  }
  void TearDown() override { api_.Close(); }

  void ExpectLogged(const std::string& sentence) {
    EXPECT_NE(log_.text().find(sentence), std::string::npos) << log_.text();
  }
  bool polled() const { return GetParam().drive == GPUSHARE_DRIVE_POLL; }

  LogLines log_;
  Api api_;
};

// The calling thread may wait, shut down and release afterwards, here and in another runtime.
TEST_P(CallbackExceptionsTest, ACompletionCallbackThatThrowsLeavesItsThreadOutsideACallback) {
  gpushare_task_options task = api_.BeTask();
  task.callback = Boom;
  const gpushare_ticket ticket = api_.Submit(task, false);
  EXPECT_EQ(api_.Finish(ticket).verdict, GPUSHARE_VERDICT_OK);
  ASSERT_OK(gpushare_runtime_drain(api_.runtime, api_.Deadline()));
  Api other;
  other.Open(GetParam());
  ASSERT_OK(gpushare_runtime_drain(other.runtime, other.Deadline()));
  other.Close();
  ASSERT_OK(gpushare_runtime_shutdown(api_.runtime, GPUSHARE_NEVER));  // its callbacks have ended
  ExpectLogged("The completion callback of ticket " + std::to_string(ticket.value) +
               " threw std::runtime_error: boom.");
}

TEST_P(CallbackExceptionsTest, TheCallbacksAfterOneThatThrowsRunOnce) {
  std::atomic<int> calls{0};
  ASSERT_OK(gpushare_runtime_quiesce(api_.runtime, api_.Deadline()));
  std::vector<gpushare_ticket> tickets;
  for (int i = 0; i < 12; ++i) {
    gpushare_task_options task = api_.BeTask(8);
    task.callback = [](void* user, const gpushare_completion_record*) {
      if (static_cast<std::atomic<int>*>(user)->fetch_add(1) % 3 == 0) throw 7;
    };
    task.callback_user = &calls;
    tickets.push_back(api_.Submit(task, false));
  }
  // All of them complete in one pass, so that one batch of callbacks holds several that throw.
  for (const gpushare_ticket ticket : tickets) {
    EXPECT_OK(gpushare_ticket_cancel(api_.runtime, ticket));
  }
  ASSERT_OK(gpushare_runtime_shutdown(api_.runtime, GPUSHARE_NEVER));
  EXPECT_EQ(calls.load(), 12);
  for (const gpushare_ticket ticket : tickets) {
    EXPECT_OK(gpushare_ticket_release(api_.runtime, ticket));
  }
  ExpectLogged("threw a value of type int.");
}

TEST_P(CallbackExceptionsTest, ACallbackAddedToACompleteTaskMayThrow) {
  const gpushare_ticket ticket = api_.Submit(api_.BeTask(), false);
  ASSERT_OK(gpushare_ticket_wait(api_.runtime, ticket, api_.Deadline()));
  EXPECT_OK(gpushare_ticket_set_callback(api_.runtime, ticket, Boom, nullptr));
  ASSERT_OK(gpushare_runtime_drain(api_.runtime, api_.Deadline()));
  EXPECT_OK(gpushare_ticket_release(api_.runtime, ticket));
  ExpectLogged("threw std::runtime_error: boom.");
}

// A caller that cannot throw, such as a binding of another language, fails its task by a call.
TEST_P(CallbackExceptionsTest, AnEnqueueCallbackThatSaysItFailedFailsItsTaskAndThoseThatWaitForIt) {
  for (const bool lc : {true, false}) {
    gpushare_task_options task = GPUSHARE_TASK_OPTIONS_INIT;
    task.kind = GPUSHARE_TASK_OPAQUE;
    task.declared_ns = 1000;
    task.enqueue = [](void*, void*) {
      EXPECT_OK(gpushare_enqueue_fail("no buffer"));
      EXPECT_OK(gpushare_enqueue_fail("the first reason stays"));
    };
    gpushare_ticket ticket = api_.Submit(task, lc);
    task.enqueue = [](void*, void*) { EXPECT_OK(gpushare_enqueue_fail(nullptr)); };
    const gpushare_ticket silent = api_.Submit(task, lc);
    task.enqueue = [](void*, void*) { ADD_FAILURE() << "It waits for a task that failed."; };
    task.wait_tickets = &ticket;
    task.wait_ticket_count = 1;
    const gpushare_ticket waiting = api_.Submit(task, lc);
    EXPECT_EQ(api_.Finish(waiting).failed_dependency.value, ticket.value);
    const gpushare_completion_record record = api_.Finish(ticket);
    EXPECT_EQ(record.verdict, GPUSHARE_VERDICT_FAILED);
    EXPECT_EQ(record.error_code, 0);  // no native call failed
    EXPECT_EQ(api_.Finish(silent).verdict, GPUSHARE_VERDICT_FAILED);
    const std::string callback = "The enqueue callback of ticket ";
    ExpectLogged(callback + std::to_string(ticket.value) + " failed: no buffer.");
    ExpectLogged(callback + std::to_string(silent.value) + " failed.");
    EXPECT_FAILS(gpushare_enqueue_fail("no"), GPUSHARE_FAILED_PRECONDITION,
                 "outside of an enqueue");
  }
}

// On the LC side the submitter's thread launches, on the BE side the thread that drives.
TEST_P(CallbackExceptionsTest, AnEnqueueCallbackThatThrowsFailsItsTaskOnly) {
  for (const bool lc : {true, false}) {
    gpushare_task_options task = GPUSHARE_TASK_OPTIONS_INIT;
    task.kind = GPUSHARE_TASK_OPAQUE;
    task.declared_ns = 1000;
    task.enqueue = [](void*, void*) { throw std::out_of_range("no buffer"); };
    const gpushare_ticket ticket = api_.Submit(task, lc);
    const gpushare_completion_record record = api_.Finish(ticket);
    EXPECT_EQ(record.verdict, GPUSHARE_VERDICT_FAILED);
    EXPECT_EQ(record.error_code, 0);  // no native call failed
    ExpectLogged("The enqueue callback of ticket " + std::to_string(ticket.value) +
                 " threw std::out_of_range: no buffer.");
    task.enqueue = [](void*, void*) {};
    EXPECT_EQ(api_.Finish(api_.Submit(task, lc)).verdict, GPUSHARE_VERDICT_OK);
  }
}

TEST_P(CallbackExceptionsTest, APolicyThatThrowsStopsNobody) {
  gpushare_policy_table policy = GPUSHARE_POLICY_TABLE_INIT;
  policy.version = GPUSHARE_POLICY_VERSION;
  policy.name = "thrower";
  policy.make_plan = [](void*, const gpushare_snapshot*, gpushare_plan*) {
    throw std::logic_error("no plan");
  };
  ASSERT_OK(gpushare_set_user_policy(api_.runtime, &policy));
  EXPECT_EQ(api_.Finish(api_.Submit(api_.BeTask(), false)).verdict, GPUSHARE_VERDICT_OK);
  EXPECT_EQ(api_.Finish(api_.Submit(api_.LcTask(), true)).verdict, GPUSHARE_VERDICT_OK);
  ExpectLogged("The policy 'thrower' threw std::logic_error: no plan.");
}

// The flow's lock is held where it throws, so the message comes after it.
TEST_P(CallbackExceptionsTest, ACostModelThatThrowsStopsNobody) {
  gpushare_cost_model_table model = GPUSHARE_COST_MODEL_TABLE_INIT;
  model.name = "thrower";
  model.predict_solo = [](void*, const gpushare_task_features*,
                          gpushare_prediction*) -> gpushare_bool {
    throw std::logic_error("no prediction");
  };
  model.observe = [](void*, const gpushare_observation*) -> gpushare_bool { throw 7; };
  model.destroy = [](void*) { throw std::logic_error("no end"); };
  ASSERT_OK(gpushare_set_user_cost_model(api_.runtime, &model));
  EXPECT_EQ(api_.Finish(api_.Submit(api_.BeTask(), false)).verdict, GPUSHARE_VERDICT_OK);
  EXPECT_EQ(api_.Finish(api_.Submit(api_.LcTask(), true)).verdict, GPUSHARE_VERDICT_OK);
  ASSERT_OK(gpushare_set_user_cost_model(api_.runtime, nullptr));
  ExpectLogged("The destroy function of cost model 'thrower' threw std::logic_error: no end.");
  ASSERT_OK(gpushare_runtime_shutdown(api_.runtime, GPUSHARE_NEVER));
  ExpectLogged("The predict_solo of cost model 'thrower' threw std::logic_error: no prediction.");
}

TEST_P(CallbackExceptionsTest, ALogCallbackThatThrowsLosesItsMessageOnly) {
  Api api;
  api.opening.log = [](void*, gpushare_log_level, const char*) {
    throw std::runtime_error("no log");
  };
  api.Open(GetParam());
  gpushare_task_options task = api.BeTask();
  task.callback = Boom;
  EXPECT_EQ(api.Finish(api.Submit(task, false)).verdict, GPUSHARE_VERDICT_OK);
  ASSERT_OK(gpushare_runtime_drain(api.runtime, api.Deadline()));
  api.Close();
}

// pthread_exit unwinds the stack: it must pass the library, which leaves nothing behind. The
// runtime has no thread afterwards, so that waits drive it.
TEST_P(CallbackExceptionsTest, ACallbackThatEndsTheSchedulersThreadLeavesARuntimeThatWaitsDrive) {
  if (polled()) GTEST_SKIP() << "the caller's thread would end, in a function that is noexcept";
  gpushare_task_options task = api_.BeTask();
  task.callback = [](void*, const gpushare_completion_record*) { pthread_exit(nullptr); };
  gpushare_ticket ticket = api_.Submit(task, false);
  gpushare_ticket_wait(api_.runtime, ticket, api_.Deadline());
  EXPECT_OK(gpushare_ticket_release(api_.runtime, ticket));
  ticket = api_.Submit(api_.BeTask(), false);
  // The first wait may find that the thread has just ended.
  gpushare_ticket_wait(api_.runtime, ticket, api_.Deadline());
  EXPECT_EQ(api_.Finish(ticket).verdict, GPUSHARE_VERDICT_OK);
  ASSERT_OK(gpushare_runtime_shutdown(api_.runtime, GPUSHARE_NEVER));
}

INSTANTIATE_TEST_SUITE_P(Devices, CallbackExceptionsTest,
                         testing::Values(DeviceCase{"sim", GPUSHARE_DRIVE_THREAD},
                                         DeviceCase{"sim", GPUSHARE_DRIVE_POLL},
                                         DeviceCase{"null", GPUSHARE_DRIVE_THREAD},
                                         DeviceCase{"null", GPUSHARE_DRIVE_POLL}),
                         [](const auto& one) { return NameOf(one.param); });

TEST(CalibrationCallbackTest, AProgressCallbackThatThrowsEndsTheCalibrationWithItsMessage) {
  gpushare_kernel_options kernel = GPUSHARE_KERNEL_OPTIONS_INIT;
  kernel.name = "sincos_27us";
  gpushare_task_options task = GPUSHARE_TASK_OPTIONS_INIT;
  task.block_tasks = 1000;
  const gpushare_calibration_item item = {&kernel, &task};
  const std::string path = testing::TempDir() + "/callback_exceptions_profile.json";
  gpushare_calibration_options options = GPUSHARE_CALIBRATION_OPTIONS_INIT;
  options.device = "sim";
  options.output_path = path.c_str();
  options.items = &item;
  options.item_count = 1;
  EXPECT_FAILS(
      gpushare_calibrate(
          &options,
          [](void*, const gpushare_calibration_progress*) { throw std::runtime_error("stop"); },
          nullptr),
      GPUSHARE_INTERNAL, "The progress callback threw std::runtime_error: stop");
}

}  // namespace
}  // namespace gpushare_test
