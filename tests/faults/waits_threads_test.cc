// Promises about waits while other threads call: a release during a wait, the reuse of the slot of
// a ticket that a task waited for, a drain beside submits. Simulated and null devices, scheduler
// thread.

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/abi/api_fixture.h"

namespace gpushare_test {
namespace {

class WaitsThreadsTest : public ::testing::Test {
 protected:
  void TearDown() override { api_.Close(); }
  Api api_;
};

// A ticket that was released before the wait began is unknown to it: the test takes another one.
TEST_F(WaitsThreadsTest, AWaitGoesOnWhenAnotherThreadReleasesTheTicket) {
  constexpr int kTries = 20;
  ASSERT_NO_FATAL_FAILURE(api_.Open({"sim", GPUSHARE_DRIVE_THREAD}));
  gpushare_status status = GPUSHARE_INVALID_ARGUMENT;
  int64_t submitted = 0;
  while (status == GPUSHARE_INVALID_ARGUMENT && submitted < kTries) {
    EXPECT_OK(gpushare_runtime_quiesce(api_.runtime, api_.Deadline()));
    const gpushare_ticket ticket = api_.Submit(api_.BeTask(), false);
    ++submitted;
    std::atomic<gpushare_status> answer{GPUSHARE_INTERNAL};  // none of a wait
    std::thread waiting(
        [&] { answer = gpushare_ticket_wait(api_.runtime, ticket, GPUSHARE_NEVER); });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // it is inside the wait now
    EXPECT_OK(gpushare_ticket_release(api_.runtime, ticket));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_NE(answer.load(), GPUSHARE_OK) << "the task is not complete";
    EXPECT_OK(gpushare_runtime_resume(api_.runtime));
    waiting.join();
    status = answer;
  }
  EXPECT_EQ(status, GPUSHARE_OK);
  EXPECT_OK(gpushare_runtime_drain(api_.runtime, api_.Deadline()));
  EXPECT_EQ(Api::AppStats(api_.be_app).completed, submitted);
}

// One thread submits, waits, releases and reuses the slot while the scheduler's thread looks at
// what tasks wait for. Under the thread sanitizer a look at a reused slot is a race.
TEST_F(WaitsThreadsTest, NoTaskFailsForTheVerdictOfAReusedSlot) {
  ASSERT_NO_FATAL_FAILURE(api_.Open({"null", GPUSHARE_DRIVE_THREAD}, nullptr, "fifo"));
  constexpr int kThreads = 3;
  constexpr int kPairs = 1500;
  std::atomic<int> failed{0};
  const auto pairs = [&] {
    gpushare_queue* queues[2] = {};
    for (gpushare_queue*& queue : queues) EXPECT_OK(gpushare_queue_create(api_.be_app, &queue));
    const gpushare_task_options task = api_.BeTask(1);
    for (int i = 0; i < kPairs; ++i) {
      gpushare_ticket awaited = {0};
      EXPECT_OK(gpushare_submit_be(queues[0], &task, &awaited));
      gpushare_task_options waits = task;
      waits.wait_tickets = &awaited;
      waits.wait_ticket_count = 1;
      gpushare_ticket waiter = {0};
      EXPECT_OK(gpushare_submit_be(queues[1], &waits, &waiter));
      const gpushare_completion_record done = api_.Finish(awaited);
      gpushare_ticket next = {0};  // takes the slot that Finish freed
      EXPECT_OK(gpushare_submit_be(queues[0], &task, &next));
      EXPECT_OK(gpushare_ticket_release(api_.runtime, next));
      const gpushare_completion_record record = api_.Finish(waiter);
      if (done.verdict != GPUSHARE_VERDICT_OK || record.verdict != GPUSHARE_VERDICT_OK) ++failed;
    }
    EXPECT_OK(gpushare_runtime_drain(api_.runtime, api_.Deadline()));
    for (gpushare_queue* queue : queues) EXPECT_OK(gpushare_queue_release(queue));
  };
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(pairs);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed.load(), 0);
}

// Work that comes after the moment without any is no reason to report the deadline.
TEST_F(WaitsThreadsTest, ADrainBesideSubmitsEndsWithOkBeforeItsDeadline) {
  ASSERT_NO_FATAL_FAILURE(api_.Open({"null", GPUSHARE_DRIVE_THREAD}, nullptr, "fifo"));
  constexpr int kDrains = 50'000;
  std::atomic<bool> stop{false};
  std::thread submitting([&] {
    while (!stop.load()) api_.Finish(api_.Submit(api_.BeTask(1), false));
  });
  int refused = 0;
  for (int i = 0; i < kDrains; ++i) {
    if (gpushare_runtime_drain(api_.runtime, api_.Deadline()) != GPUSHARE_OK) ++refused;
  }
  stop = true;
  submitting.join();
  EXPECT_EQ(refused, 0);
}

}  // namespace
}  // namespace gpushare_test
