// Shutdown: what was accepted runs to its end, within the deadline, and no callback runs after it.

#include <gpushare/gpushare.h>
#include <gpushare/gpushare_policy.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/abi/api_fixture.h"

namespace gpushare_test {
namespace {

class ShutdownTest : public testing::TestWithParam<DeviceCase> {
 protected:
  void TearDown() override { api_.Close(); }

  gpushare_verdict VerdictOf(gpushare_ticket ticket) const {
    gpushare_completion_record record = GPUSHARE_COMPLETION_RECORD_INIT;
    EXPECT_OK(gpushare_ticket_record(api_.runtime, ticket, &record));
    return record.verdict;
  }
  std::vector<gpushare_ticket> SubmitBe(int count, int64_t block_tasks) const {
    std::vector<gpushare_ticket> tickets;
    tickets.reserve(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) tickets.push_back(api_.Submit(api_.BeTask(block_tasks), false));
    return tickets;
  }
  bool simulated() const { return GetParam().device != std::string("null"); }
  bool virtual_time() const { return GetParam().device == std::string("sim"); }

  Api api_;
};

TEST_P(ShutdownTest, WithoutADeadlineItRunsEveryTaskThatWaits) {
  api_.Open(GetParam());
  ASSERT_OK(gpushare_runtime_quiesce(api_.runtime, api_.Deadline()));  // so that all of them wait
  std::vector<gpushare_ticket> tickets = SubmitBe(20, 4000);
  tickets.push_back(api_.Submit(api_.LcTask(), true));
  ASSERT_OK(gpushare_runtime_shutdown(api_.runtime, GPUSHARE_NEVER));
  for (const gpushare_ticket ticket : tickets) {
    EXPECT_EQ(VerdictOf(ticket), GPUSHARE_VERDICT_OK);
    EXPECT_OK(gpushare_ticket_release(api_.runtime, ticket));
  }
}

// The adaptive policy holds a BE graph that is longer than the LC app's blocking budget, also on an
// idle device. At a shutdown without LC work there is nothing left to protect.
TEST_P(ShutdownTest, WithoutADeadlineItRunsBeThatNoBlockingBudgetAdmits) {
  api_.Open(GetParam(), nullptr, "adaptive");
  gpushare_app_options strict = AppOptionsOf(GPUSHARE_CLASS_LATENCY_CRITICAL, "strict");
  strict.p99_bound = 1.05;
  strict.p99_alone_ns = 2 * kMs;
  gpushare_app* app = nullptr;
  gpushare_queue* queue = nullptr;
  ASSERT_OK(gpushare_app_create(api_.runtime, &strict, &app));
  ASSERT_OK(gpushare_queue_create(app, &queue));
  gpushare_kernel_options kernel = GPUSHARE_KERNEL_OPTIONS_INIT;
  kernel.name = "prefill";
  gpushare_kernel* prefill = nullptr;
  ASSERT_OK(gpushare_kernel_register(api_.runtime, &kernel, &prefill));
  gpushare_task_options task = GPUSHARE_TASK_OPTIONS_INIT;
  task.kernel = prefill;
  const gpushare_ticket held = api_.Submit(task, false);
  // An LC task that waits for it, and a query that nobody ends, protect nothing either.
  gpushare_task_options waits = api_.LcTask();
  waits.wait_tickets = &held;
  waits.wait_ticket_count = 1;
  const gpushare_ticket dependant = api_.Submit(waits, true);
  gpushare_query query = {0};
  ASSERT_OK(gpushare_query_begin(queue, 0, &query));
  ASSERT_OK(gpushare_runtime_shutdown(api_.runtime, GPUSHARE_NEVER));
  EXPECT_EQ(VerdictOf(held), GPUSHARE_VERDICT_OK);
  EXPECT_EQ(VerdictOf(dependant), GPUSHARE_VERDICT_OK);
  EXPECT_OK(gpushare_ticket_release(api_.runtime, held));
  EXPECT_OK(gpushare_ticket_release(api_.runtime, dependant));
  EXPECT_OK(gpushare_kernel_release(prefill));
  EXPECT_OK(gpushare_queue_release(queue));
  EXPECT_OK(gpushare_app_release(app));
}

TEST_P(ShutdownTest, APolicyThatLaunchesNothingCannotStopIt) {
  api_.Open(GetParam());
  gpushare_policy_table idle = GPUSHARE_POLICY_TABLE_INIT;
  idle.version = GPUSHARE_POLICY_VERSION;
  idle.name = "idle";
  idle.make_plan = [](void*, const gpushare_snapshot*, gpushare_plan*) {};
  ASSERT_OK(gpushare_set_user_policy(api_.runtime, &idle));
  ASSERT_OK(gpushare_runtime_quiesce(api_.runtime, api_.Deadline()));  // no fast path
  std::vector<gpushare_ticket> tickets = SubmitBe(3, 1000);
  tickets.push_back(api_.Submit(api_.LcTask(), true));
  ASSERT_OK(gpushare_runtime_shutdown(api_.runtime, GPUSHARE_NEVER));
  for (const gpushare_ticket ticket : tickets) {
    EXPECT_EQ(VerdictOf(ticket), GPUSHARE_VERDICT_OK);
    EXPECT_OK(gpushare_ticket_release(api_.runtime, ticket));
  }
}

TEST_P(ShutdownTest, ByADeadlineItRunsWhatFitsAndCutsOffTheRest) {
  if (!simulated()) GTEST_SKIP() << "work on the null device takes no time that a test may rely on";
  if (virtual_time() && GetParam().drive == GPUSHARE_DRIVE_THREAD) {
    GTEST_SKIP() << "virtual time runs on while the caller looks at the deadline";
  }
  api_.Open(GetParam());
  ASSERT_OK(gpushare_runtime_quiesce(api_.runtime, api_.Deadline()));
  // About 15 ms each, so that some of them end before the deadline.
  const std::vector<gpushare_ticket> tickets = SubmitBe(20, 1000000);
  const int64_t deadline_ns = api_.NowNs() + 100 * kMs;
  EXPECT_FAILS(gpushare_runtime_shutdown(api_.runtime, deadline_ns), GPUSHARE_DEADLINE_EXCEEDED,
               "cut off");
  // In real time a thread may be descheduled.
  EXPECT_LE(api_.NowNs(), deadline_ns + (virtual_time() ? 0 : 500 * kMs));
  int ran = 0;
  int given_up = 0;
  for (const gpushare_ticket ticket : tickets) {
    const gpushare_verdict verdict = VerdictOf(ticket);
    ran += verdict == GPUSHARE_VERDICT_OK ? 1 : 0;
    given_up += verdict == GPUSHARE_VERDICT_TIMED_OUT ? 1 : 0;
    EXPECT_TRUE(verdict == GPUSHARE_VERDICT_OK || verdict == GPUSHARE_VERDICT_SHUTDOWN ||
                verdict == GPUSHARE_VERDICT_TIMED_OUT)
        << verdict;
    EXPECT_OK(gpushare_ticket_release(api_.runtime, ticket));
  }
  // What runs is evictable, so that nothing has to be given up, unless the thread that sees the end
  // of the one that runs is descheduled until the deadline.
  EXPECT_LE(given_up, virtual_time() ? 0 : 1);
  EXPECT_GT(ran, 2);
  EXPECT_LT(ran, 20);
}

TEST_P(ShutdownTest, ByADeadlineThatHasPassedNothingMoreIsLaunched) {
  api_.Open(GetParam());
  ASSERT_OK(gpushare_runtime_quiesce(api_.runtime, api_.Deadline()));
  const std::vector<gpushare_ticket> tickets = SubmitBe(5, 1000);
  EXPECT_EQ(gpushare_runtime_shutdown(api_.runtime, api_.NowNs()), GPUSHARE_DEADLINE_EXCEEDED);
  for (const gpushare_ticket ticket : tickets) {
    EXPECT_EQ(VerdictOf(ticket), GPUSHARE_VERDICT_SHUTDOWN);
    EXPECT_OK(gpushare_ticket_release(api_.runtime, ticket));
  }
}

TEST_P(ShutdownTest, ARegionThatNobodyEndsDoesNotStopIt) {
  api_.Open(GetParam());
  gpushare_region_options region = GPUSHARE_REGION_OPTIONS_INIT;
  region.bound_ns = 1000;
  gpushare_ticket ticket = {0};
  void* stream = nullptr;
  ASSERT_OK(gpushare_region_begin(api_.lc_queue, &region, &ticket, &stream));
  ASSERT_OK(gpushare_runtime_shutdown(api_.runtime, GPUSHARE_NEVER));
  EXPECT_EQ(VerdictOf(ticket), GPUSHARE_VERDICT_SHUTDOWN);
  EXPECT_EQ(gpushare_region_end(api_.runtime, ticket), GPUSHARE_INVALID_ARGUMENT);
  EXPECT_OK(gpushare_ticket_release(api_.runtime, ticket));
}

// Threads drive a polled runtime, each running the callbacks of what its pass completed, while
// another thread shuts the runtime down.
TEST_P(ShutdownTest, NoCallbackRunsAfterItReturnsAlthoughSeveralThreadsDrive) {
  struct Calls {
    std::atomic<int> accepted{0};
    std::atomic<int> ended{0};
    std::atomic<bool> over{false};
    std::atomic<int> late{0};
  };
  if (GetParam().drive == GPUSHARE_DRIVE_THREAD) GTEST_SKIP() << "one thread drives";
  for (int round = 0; round < 4; ++round) {
    Calls calls;
    api_.Open(GetParam());
    std::vector<std::thread> threads;
    threads.reserve(4);
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([this, &calls] {
        gpushare_task_options task = api_.BeTask(64);
        task.callback = [](void* user, const gpushare_completion_record*) {
          Calls& seen = *static_cast<Calls*>(user);
          std::this_thread::sleep_for(std::chrono::microseconds(200));
          seen.ended.fetch_add(1);
          if (seen.over.load()) seen.late.fetch_add(1);
        };
        task.callback_user = &calls;
        gpushare_ticket ticket = {0};
        while (gpushare_submit_be(api_.be_queue, &task, &ticket) == GPUSHARE_OK) {
          calls.accepted.fetch_add(1);
          gpushare_ticket_wait(api_.runtime, ticket, api_.Deadline());
          EXPECT_OK(gpushare_ticket_release(api_.runtime, ticket));
        }
      });
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    ASSERT_OK(gpushare_runtime_shutdown(api_.runtime, GPUSHARE_NEVER));
    calls.over.store(true);
    const int ended = calls.ended.load();
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(calls.late.load(), 0);
    EXPECT_EQ(ended, calls.accepted.load());
    api_.Close();
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, ShutdownTest,
                         testing::Values(DeviceCase{"sim", GPUSHARE_DRIVE_THREAD},
                                         DeviceCase{"sim", GPUSHARE_DRIVE_POLL},
                                         DeviceCase{"sim:realtime", GPUSHARE_DRIVE_THREAD},
                                         DeviceCase{"sim:realtime", GPUSHARE_DRIVE_POLL},
                                         DeviceCase{"null", GPUSHARE_DRIVE_THREAD},
                                         DeviceCase{"null", GPUSHARE_DRIVE_POLL}),
                         [](const auto& one) { return NameOf(one.param); });

}  // namespace
}  // namespace gpushare_test
