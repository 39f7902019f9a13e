// Promises about wait_tickets: a task that waits for a ticket runs only if the ticket's task ended
// OK, whatever the callers do with the ticket meanwhile. Simulated and null devices.

#include <vector>

#include "tests/abi/api_fixture.h"

namespace gpushare_test {
namespace {

class WaitsTest : public ::testing::Test {
 protected:
  // Polled and simulated: nothing happens between calls.
  void OpenPolled(const char* faults = nullptr) {
    api_.Open({"sim", GPUSHARE_DRIVE_POLL}, faults, "adaptive");
    ASSERT_OK(gpushare_queue_create(api_.be_app, &other_queue_));
  }
  void TearDown() override {
    if (other_queue_ != nullptr) {
      EXPECT_OK(gpushare_runtime_shutdown(api_.runtime, api_.Deadline()));
      EXPECT_OK(gpushare_queue_release(other_queue_));
      other_queue_ = nullptr;
    }
    api_.Close();
  }

  gpushare_task_options Waiter(const std::vector<gpushare_ticket>& awaited) const {
    gpushare_task_options options = api_.BeTask();
    options.wait_tickets = awaited.data();
    options.wait_ticket_count = static_cast<uint32_t>(awaited.size());
    return options;
  }

  // A BE task on `queue` that waits for `awaited`.
  gpushare_ticket SubmitWaiter(gpushare_queue* queue,
                               const std::vector<gpushare_ticket>& awaited) const {
    const gpushare_task_options options = Waiter(awaited);
    gpushare_ticket ticket = {0};
    EXPECT_OK(gpushare_submit_be(queue, &options, &ticket));
    return ticket;
  }

  Api api_;
  gpushare_queue* other_queue_ = nullptr;
};

TEST_F(WaitsTest, NoTaskRunsOnAResultThatWasNeverComputed) {
  for (const bool detached : {false, true}) {
    for (const bool same_queue : {false, true}) {
      SCOPED_TRACE(testing::Message() << "detached " << detached << ", same queue " << same_queue);
      ASSERT_NO_FATAL_FAILURE(OpenPolled("launch_error=2"));
      const gpushare_ticket first = api_.Submit(api_.BeTask(), false);
      gpushare_task_options fails = api_.BeTask();
      fails.detached = detached ? 1 : 0;
      const gpushare_ticket failing = api_.Submit(fails, false);
      const gpushare_ticket waiter =
          SubmitWaiter(same_queue ? api_.be_queue : other_queue_, {failing});
      if (!detached) {
        EXPECT_OK(gpushare_ticket_release(api_.runtime, failing));
      }
      const gpushare_completion_record record = api_.Finish(waiter);
      EXPECT_EQ(record.verdict, GPUSHARE_VERDICT_FAILED);
      EXPECT_EQ(record.launches, 0);
      EXPECT_EQ(record.block_tasks, 0);
      EXPECT_EQ(api_.Finish(first).verdict, GPUSHARE_VERDICT_OK);
      TearDown();
    }
  }
}

TEST_F(WaitsTest, ADependantSaysOnWhichTicketItFailedAndWhy) {
  ASSERT_NO_FATAL_FAILURE(OpenPolled("launch_error=1"));
  const gpushare_ticket x = api_.Submit(api_.BeTask(), false);
  const gpushare_ticket y = SubmitWaiter(other_queue_, {x});
  const gpushare_ticket z = SubmitWaiter(api_.be_queue, {y});
  const gpushare_completion_record first = api_.Finish(x);
  EXPECT_EQ(first.verdict, GPUSHARE_VERDICT_FAILED);
  EXPECT_NE(first.error_code, 0);
  EXPECT_EQ(first.failed_dependency.value, 0u) << "it failed by itself";
  EXPECT_EQ(first.failed_dependency_verdict, GPUSHARE_VERDICT_PENDING);
  const gpushare_completion_record second = api_.Finish(y);
  EXPECT_EQ(second.failed_dependency.value, x.value);
  EXPECT_EQ(second.failed_dependency_verdict, GPUSHARE_VERDICT_FAILED);
  EXPECT_EQ(second.error_code, first.error_code);
  const gpushare_completion_record third = api_.Finish(z);
  EXPECT_EQ(third.verdict, GPUSHARE_VERDICT_FAILED);
  EXPECT_EQ(third.failed_dependency.value, y.value) << "the ticket that it waited for itself";
  EXPECT_EQ(third.error_code, first.error_code);
}

TEST_F(WaitsTest, ADependantOfACancelledTaskNamesTheFirstOfItsTicketsThatDidNotEndWell) {
  ASSERT_NO_FATAL_FAILURE(OpenPolled());
  const gpushare_ticket ok = api_.Submit(api_.BeTask(), false);
  const gpushare_ticket cancelled = api_.Submit(api_.BeTask(), false);
  const gpushare_ticket also_cancelled = api_.Submit(api_.BeTask(), false);
  const gpushare_ticket waiter = SubmitWaiter(other_queue_, {ok, cancelled, also_cancelled});
  EXPECT_OK(gpushare_ticket_cancel(api_.runtime, also_cancelled));
  EXPECT_OK(gpushare_ticket_cancel(api_.runtime, cancelled));
  const gpushare_completion_record record = api_.Finish(waiter);
  EXPECT_EQ(record.verdict, GPUSHARE_VERDICT_FAILED);
  EXPECT_EQ(record.failed_dependency.value, cancelled.value);
  EXPECT_EQ(record.failed_dependency_verdict, GPUSHARE_VERDICT_CANCELLED);
  EXPECT_EQ(record.error_code, 0);
}

// The order of a queue is no dependency: gpushare_queue_create says so.
TEST_F(WaitsTest, ATaskBehindAFailedOneInItsQueueRuns) {
  ASSERT_NO_FATAL_FAILURE(OpenPolled("launch_error=1"));
  const gpushare_ticket failing = api_.Submit(api_.BeTask(), false);
  const gpushare_ticket next = api_.Submit(api_.BeTask(), false);
  EXPECT_EQ(api_.Finish(next).verdict, GPUSHARE_VERDICT_OK);
  EXPECT_EQ(api_.Finish(failing).verdict, GPUSHARE_VERDICT_FAILED);
}

TEST_F(WaitsTest, AReleasedTicketIsStaleWhileItsTaskIsPending) {
  ASSERT_NO_FATAL_FAILURE(OpenPolled());
  const gpushare_ticket ticket = api_.Submit(api_.BeTask(), false);
  EXPECT_OK(gpushare_ticket_release(api_.runtime, ticket));
  constexpr gpushare_status kStale = GPUSHARE_INVALID_ARGUMENT;
  const char* const kText = "does not exist or is released";
  EXPECT_FAILS(gpushare_ticket_release(api_.runtime, ticket), kStale, kText);
  gpushare_bool complete = 0;
  EXPECT_FAILS(gpushare_ticket_poll(api_.runtime, ticket, &complete), kStale, kText);
  gpushare_completion_record record = GPUSHARE_COMPLETION_RECORD_INIT;
  EXPECT_FAILS(gpushare_ticket_record(api_.runtime, ticket, &record), kStale, kText);
  EXPECT_FAILS(gpushare_ticket_cancel(api_.runtime, ticket), kStale, kText);
  EXPECT_FAILS(gpushare_ticket_set_callback(
                   api_.runtime, ticket, [](void*, const gpushare_completion_record*) {}, nullptr),
               kStale, kText);
  int event = -1;
  EXPECT_FAILS(gpushare_ticket_eventfd(api_.runtime, ticket, &event), kStale, kText);
  EXPECT_EQ(event, -1);
  EXPECT_FAILS(gpushare_ticket_wait(api_.runtime, ticket, GPUSHARE_NEVER), kStale, kText);
  EXPECT_FAILS(gpushare_region_end(api_.runtime, ticket), kStale, "no open region");
  const std::vector<gpushare_ticket> awaited = {ticket};
  const gpushare_task_options waiter = Waiter(awaited);
  gpushare_ticket out = {1};
  EXPECT_FAILS(gpushare_submit_be(api_.be_queue, &waiter, &out), kStale, kText);
  EXPECT_EQ(out.value, 0u);
  // The task itself goes on.
  EXPECT_OK(gpushare_runtime_drain(api_.runtime, api_.Deadline()));
  EXPECT_EQ(Api::AppStats(api_.be_app).completed, 1);
}

TEST_F(WaitsTest, ATicketOfAnOpenRegionCannotBeReleased) {
  ASSERT_NO_FATAL_FAILURE(OpenPolled());
  EXPECT_OK(gpushare_poll(api_.runtime, nullptr));  // publishes the first route
  gpushare_region_options options = GPUSHARE_REGION_OPTIONS_INIT;
  options.bound_ns = 1000;
  gpushare_ticket region = {0};
  void* stream = nullptr;
  ASSERT_OK(gpushare_region_begin(api_.lc_queue, &options, &region, &stream));
  EXPECT_FAILS(gpushare_ticket_release(api_.runtime, region), GPUSHARE_FAILED_PRECONDITION,
               "End the region before");
  EXPECT_OK(gpushare_region_end(api_.runtime, region));
  EXPECT_EQ(api_.Finish(region).verdict, GPUSHARE_VERDICT_OK);
}

// An app of four task slots whose tickets others wait for.
class AwaitedAppTest : public WaitsTest {
 protected:
  static constexpr int kSlots = 4;

  void Open(const char* faults = nullptr) {
    ASSERT_NO_FATAL_FAILURE(OpenPolled(faults));
    gpushare_app_options options = AppOptionsOf(GPUSHARE_CLASS_BEST_EFFORT, "small");
    options.tasks_max = kSlots;
    ASSERT_OK(gpushare_app_create(api_.runtime, &options, &small_));
    ASSERT_OK(gpushare_queue_create(small_, &small_queue_));
  }
  void TearDown() override {
    if (small_ != nullptr) {
      EXPECT_OK(gpushare_runtime_shutdown(api_.runtime, api_.Deadline()));
      EXPECT_OK(gpushare_queue_release(small_queue_));
      EXPECT_OK(gpushare_app_release(small_));
    }
    WaitsTest::TearDown();
  }
  gpushare_ticket SubmitSmall() const {
    const gpushare_task_options options = api_.BeTask();
    gpushare_ticket ticket = {0};
    EXPECT_OK(gpushare_submit_be(small_queue_, &options, &ticket));
    return ticket;
  }
  void Release(gpushare_ticket ticket) const {
    EXPECT_OK(gpushare_ticket_release(api_.runtime, ticket));
  }
  void ExpectAllSlotsFree() const {
    EXPECT_OK(gpushare_runtime_drain(api_.runtime, api_.Deadline()));
    for (int i = 0; i < kSlots; ++i) Release(SubmitSmall());
    EXPECT_OK(gpushare_runtime_drain(api_.runtime, api_.Deadline()));
  }

  gpushare_app* small_ = nullptr;
  gpushare_queue* small_queue_ = nullptr;
};

TEST_F(AwaitedAppTest, AWaiterHoldsTheSlotNoLongerThanItWaits) {
  ASSERT_NO_FATAL_FAILURE(Open());
  for (int i = 0; i < 3; ++i) {  // a hold that stays would fill the app
    const gpushare_ticket awaited = SubmitSmall();
    const gpushare_ticket twice = SubmitWaiter(other_queue_, {awaited, awaited});
    Release(awaited);
    EXPECT_EQ(api_.Finish(twice).verdict, GPUSHARE_VERDICT_OK);
    ExpectAllSlotsFree();
  }
}

TEST_F(AwaitedAppTest, AWaiterThatIsCancelledOrDroppedLeavesItsSlots) {
  ASSERT_NO_FATAL_FAILURE(Open());
  gpushare_app_options late = AppOptionsOf(GPUSHARE_CLASS_LATENCY_CRITICAL, "late");
  late.target_ns = 1000000;
  late.drop_late = 1;
  gpushare_app* late_app = nullptr;
  gpushare_queue* late_queue = nullptr;
  ASSERT_OK(gpushare_app_create(api_.runtime, &late, &late_app));
  ASSERT_OK(gpushare_queue_create(late_app, &late_queue));
  EXPECT_OK(gpushare_poll_until(api_.runtime, 2 * late.target_ns));
  for (int i = 0; i < 3; ++i) {
    const std::vector<gpushare_ticket> awaited = {SubmitSmall()};
    const gpushare_ticket cancelled = SubmitWaiter(other_queue_, awaited);
    EXPECT_OK(gpushare_ticket_cancel(api_.runtime, cancelled));
    gpushare_task_options options = Waiter(awaited);
    options.kernel = api_.graph;
    options.block_tasks = 0;
    options.arrival_ns = 1;
    gpushare_ticket dropped = {0};
    EXPECT_OK(gpushare_submit_lc(late_queue, &options, &dropped));
    Release(awaited[0]);
    EXPECT_EQ(api_.Finish(cancelled).verdict, GPUSHARE_VERDICT_CANCELLED);
    EXPECT_EQ(api_.Finish(dropped).verdict, GPUSHARE_VERDICT_DROPPED);
    ExpectAllSlotsFree();
  }
  EXPECT_OK(gpushare_queue_release(late_queue));
  EXPECT_OK(gpushare_app_release(late_app));
}

TEST_F(AwaitedAppTest, ASubmitThatIsRefusedHoldsNothing) {
  ASSERT_NO_FATAL_FAILURE(Open());
  std::vector<gpushare_ticket> all;
  for (int i = 0; i < kSlots; ++i) all.push_back(SubmitSmall());
  gpushare_ticket none = {0};
  const gpushare_task_options full = Waiter(all);
  EXPECT_FAILS(gpushare_submit_be(small_queue_, &full, &none), GPUSHARE_RESOURCE_EXHAUSTED,
               "tasks that are not complete");
  std::vector<gpushare_ticket> with_a_stale_one = all;
  with_a_stale_one.push_back({12345});
  const gpushare_task_options stale = Waiter(with_a_stale_one);
  EXPECT_FAILS(gpushare_submit_be(other_queue_, &stale, &none), GPUSHARE_INVALID_ARGUMENT,
               "ticket 12345");
  for (const gpushare_ticket ticket : all) Release(ticket);
  ExpectAllSlotsFree();
}

// A waiting task of another app, or of a stranger who guessed the numbers, takes no slot for longer
// than the scheduler takes to see it.
TEST_F(AwaitedAppTest, WaitsOfOthersTakeNoSlotsOfTheAppTheyName) {
  ASSERT_NO_FATAL_FAILURE(Open());
  const gpushare_ticket blocker = api_.Submit(api_.BeTask(20'000'000), false);
  std::vector<gpushare_ticket> waiters;
  for (int round = 0; round < 8; ++round) {
    std::vector<gpushare_ticket> all;
    for (int i = 0; i < kSlots; ++i) all.push_back(SubmitSmall());
    std::vector<gpushare_ticket> awaited = all;
    awaited.push_back(blocker);  // so that the waiter stays
    waiters.push_back(SubmitWaiter(other_queue_, awaited));
    for (const gpushare_ticket ticket : all) {
      EXPECT_EQ(api_.Finish(ticket).verdict, GPUSHARE_VERDICT_OK);
    }
  }
  gpushare_bool complete = 1;
  EXPECT_OK(gpushare_ticket_poll(api_.runtime, blocker, &complete));
  ASSERT_EQ(complete, 0) << "the waiters wait for it all the time";
  EXPECT_EQ(api_.Finish(blocker).verdict, GPUSHARE_VERDICT_OK);
  for (const gpushare_ticket waiter : waiters) {
    EXPECT_EQ(api_.Finish(waiter).verdict, GPUSHARE_VERDICT_OK);
  }
}

// Whoever ends first, the other's list of waits stays whole.
TEST_F(AwaitedAppTest, WaitersThatAreCancelledInAnyOrderLeaveTheOthersWaiting) {
  ASSERT_NO_FATAL_FAILURE(Open());
  const gpushare_ticket blocker = api_.Submit(api_.BeTask(20'000'000), false);
  std::vector<gpushare_ticket> waiters;
  for (int i = 0; i < 6; ++i) waiters.push_back(SubmitWaiter(other_queue_, {blocker, blocker}));
  EXPECT_OK(gpushare_poll(api_.runtime, nullptr));
  for (const size_t i : {3u, 0u, 5u}) EXPECT_OK(gpushare_ticket_cancel(api_.runtime, waiters[i]));
  EXPECT_EQ(api_.Finish(blocker).verdict, GPUSHARE_VERDICT_OK);
  for (size_t i = 0; i < waiters.size(); ++i) {
    const bool cancelled = i == 3 || i == 0 || i == 5;
    EXPECT_EQ(api_.Finish(waiters[i]).verdict,
              cancelled ? GPUSHARE_VERDICT_CANCELLED : GPUSHARE_VERDICT_OK);
  }
}

// The app's tasks are complete: a task that waits for one keeps it no longer than until the
// scheduler has seen the waiting task.
TEST_F(AwaitedAppTest, AnAppWithTicketsThatAreWaitedForGoesOnceTheWaiterIsSeen) {
  for (const bool queue_first : {true, false}) {
    SCOPED_TRACE(testing::Message() << "queue first " << queue_first);
    ASSERT_NO_FATAL_FAILURE(Open());
    const gpushare_ticket awaited = SubmitSmall();
    EXPECT_OK(gpushare_ticket_wait(api_.runtime, awaited, api_.Deadline()));
    const gpushare_ticket blocker = api_.Submit(api_.BeTask(1'000'000), false);
    const gpushare_ticket waiter = SubmitWaiter(other_queue_, {awaited, blocker});
    Release(awaited);
    // The app goes with the second of its two handles.
    const auto release = [&](bool queue) {
      return queue ? gpushare_queue_release(small_queue_) : gpushare_app_release(small_);
    };
    EXPECT_OK(release(queue_first));
    EXPECT_FAILS(release(!queue_first), GPUSHARE_FAILED_PRECONDITION,
                 "has 1 tickets that tasks of other apps wait for");
    EXPECT_OK(gpushare_poll(api_.runtime, nullptr));
    EXPECT_OK(release(!queue_first));
    EXPECT_EQ(api_.Finish(waiter).verdict, GPUSHARE_VERDICT_OK);
    EXPECT_EQ(api_.Finish(blocker).verdict, GPUSHARE_VERDICT_OK);
    small_ = nullptr;
    TearDown();
  }
}

TEST_F(AwaitedAppTest, ALostDeviceLeavesNoSlotHeld) {
  ASSERT_NO_FATAL_FAILURE(Open("device_lost=1"));
  const gpushare_ticket awaited = SubmitSmall();
  const gpushare_ticket waiter = SubmitWaiter(other_queue_, {awaited});
  Release(awaited);
  const gpushare_completion_record record = api_.Finish(waiter);
  EXPECT_EQ(record.verdict, GPUSHARE_VERDICT_DEVICE_LOST);
  EXPECT_EQ(record.failed_dependency.value, 0u);
  EXPECT_OK(gpushare_queue_release(small_queue_));
  EXPECT_OK(gpushare_app_release(small_));  // fails while a slot of it is held
  small_ = nullptr;
}

}  // namespace
}  // namespace gpushare_test
