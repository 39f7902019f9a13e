// The C API against libgpushare.so alone: every function does what its comment says, on the
// simulated device (polled) and on the null device (polled and threaded).

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <thread>
#include <vector>

#include "tests/abi/api_fixture.h"

namespace gpushare_test {
namespace {

class CApiTest : public testing::TestWithParam<DeviceCase> {
 protected:
  void SetUp() override { api_.Open(GetParam()); }
  void TearDown() override { api_.Close(); }
  bool simulated() const { return std::string(GetParam().device) != "null"; }
  bool virtual_time() const { return std::string(GetParam().device) == "sim"; }
  bool polled() const { return GetParam().drive == GPUSHARE_DRIVE_POLL; }

  Api api_;
};

INSTANTIATE_TEST_SUITE_P(Devices, CApiTest,
                         testing::Values(DeviceCase{"sim", GPUSHARE_DRIVE_POLL},
                                         DeviceCase{"sim:realtime", GPUSHARE_DRIVE_THREAD},
                                         DeviceCase{"null", GPUSHARE_DRIVE_POLL},
                                         DeviceCase{"null", GPUSHARE_DRIVE_THREAD}),
                         [](const auto& one) { return NameOf(one.param); });

TEST_P(CApiTest, AQueryAndABestEffortTaskCompleteWithTheirRecords) {
  const gpushare_ticket be = api_.Submit(api_.BeTask(), false);
  const gpushare_ticket lc = api_.Submit(api_.LcTask(), true);
  const gpushare_completion_record query = api_.Finish(lc);
  EXPECT_EQ(query.verdict, GPUSHARE_VERDICT_OK);
  EXPECT_EQ(query.ticket.value, lc.value);
  EXPECT_EQ(query.kind, GPUSHARE_TASK_GRAPH);
  EXPECT_EQ(query.app_id, gpushare_app_id(api_.lc_app));
  EXPECT_EQ(query.kernel_id, gpushare_kernel_id(api_.graph));
  EXPECT_GE(query.complete_ns, query.submit_ns);
  EXPECT_EQ(query.launches, 1);
  const gpushare_completion_record step = api_.Finish(be);
  EXPECT_EQ(step.verdict, GPUSHARE_VERDICT_OK);
  EXPECT_EQ(step.block_tasks, 1000);
  EXPECT_EQ(step.app_id, gpushare_app_id(api_.be_app));
  EXPECT_NE(step.app_id, query.app_id);
  if (simulated()) {
    EXPECT_GT(query.measured_ns, 500000);  // chain1 takes 667 us alone
  }
}

TEST_P(CApiTest, AQueryOfSeveralTasksIsBegunAndEnded) {
  gpushare_query query = {0};
  ASSERT_OK(gpushare_query_begin(api_.lc_queue, 0, &query));
  EXPECT_NE(query.value, 0u);
  gpushare_task_options task = api_.LcTask();
  task.query = query;
  const gpushare_ticket first = api_.Submit(task, true);
  const gpushare_ticket second = api_.Submit(task, true);
  ASSERT_OK(gpushare_query_end(api_.runtime, query));
  const gpushare_completion_record a = api_.Finish(first);
  const gpushare_completion_record b = api_.Finish(second);
  EXPECT_EQ(a.query.value, query.value);
  EXPECT_EQ(b.query.value, query.value);
  EXPECT_GE(b.start_ns, a.end_ns);  // one queue is a FIFO
  EXPECT_EQ(gpushare_query_end(api_.runtime, query), GPUSHARE_INVALID_ARGUMENT);
  EXPECT_EQ(gpushare_submit_lc(api_.lc_queue, &task, nullptr), GPUSHARE_INVALID_ARGUMENT);
}

TEST_P(CApiTest, StepsStateWhatFollowsAndGiveTokens) {
  gpushare_task_options task = api_.LcTask();
  task.next_within_ns = 100'000'001;
  EXPECT_FAILS(gpushare_submit_lc(api_.lc_queue, &task, nullptr), GPUSHARE_INVALID_ARGUMENT,
               "next query within 100000001 ns");
  task.next_within_ns = GPUSHARE_NO_NEXT;
  gpushare_token_stream streams[2] = {};
  ASSERT_OK(gpushare_token_stream_begin(api_.lc_app, 0, &streams[0]));
  ASSERT_OK(gpushare_token_stream_begin(api_.lc_app, 0, &streams[1]));
  for (int step = 0; step < 3; ++step) {
    const gpushare_ticket ticket = api_.Submit(task, true);
    ASSERT_OK(gpushare_token_stream_mark(api_.runtime, streams, 2, ticket));
    EXPECT_OK(gpushare_token_stream_mark(api_.runtime, nullptr, 0, ticket));
    EXPECT_EQ(gpushare_token_stream_mark(api_.runtime, nullptr, 1, ticket),
              GPUSHARE_INVALID_ARGUMENT);
    api_.Finish(ticket);
  }
  gpushare_app_guarantee guarantee = GPUSHARE_APP_GUARANTEE_INIT;
  ASSERT_OK(gpushare_app_guarantee_get(api_.lc_app, &guarantee));
  EXPECT_EQ(guarantee.token_streams, 2);
  EXPECT_EQ(guarantee.first_tokens, 2);
  EXPECT_EQ(guarantee.token_distances, 4);
  EXPECT_LE(guarantee.tbt_p50_ns, guarantee.tbt_p99_ns);
  ASSERT_OK(gpushare_token_stream_end(api_.runtime, streams[0]));
  EXPECT_EQ(gpushare_token_stream_end(api_.runtime, streams[0]), GPUSHARE_INVALID_ARGUMENT);
  int32_t ended = 0;
  ASSERT_OK(gpushare_query_abandon(api_.lc_app, 0, &ended));
  EXPECT_EQ(ended, 1);
  EXPECT_EQ(gpushare_token_stream_begin(api_.be_app, 0, &streams[0]), GPUSHARE_INVALID_ARGUMENT);
  EXPECT_EQ(gpushare_token_stream_begin(api_.lc_app, 0, nullptr), GPUSHARE_INVALID_ARGUMENT);
}

struct Seen {
  std::atomic<int> calls{0};
  gpushare_verdict verdict = GPUSHARE_VERDICT_PENDING;
  gpushare_status wait = GPUSHARE_OK;
  gpushare_status drain = GPUSHARE_OK;
  gpushare_status release = GPUSHARE_OK;
  Api* api = nullptr;
  gpushare_ticket ticket = {0};
};

void Note(void* user, const gpushare_completion_record* record) {
  Seen& seen = *static_cast<Seen*>(user);
  seen.verdict = record->verdict;
  if (seen.api != nullptr) {
    seen.wait = gpushare_ticket_wait(seen.api->runtime, record->ticket, GPUSHARE_NEVER);
    seen.drain = gpushare_runtime_drain(seen.api->runtime, GPUSHARE_NEVER);
    const gpushare_task_options next = seen.api->BeTask(10);
    EXPECT_OK(gpushare_submit_be(seen.api->be_queue, &next, nullptr));  // a callback may submit
  }
  seen.calls.fetch_add(1);
}

// Callbacks run after their task is complete, on the flow's thread.
void AwaitCalls(const Api& api, const Seen& seen, int calls) {
  const int64_t deadline_ns = api.Deadline();
  int64_t now_ns = 0;
  while (seen.calls.load() < calls && now_ns < deadline_ns) {
    static_cast<void>(gpushare_poll(api.runtime, nullptr));
    ASSERT_OK(gpushare_now_ns(api.runtime, &now_ns));
    std::this_thread::yield();
  }
}

// One slot: a run that kept its ticket would leave none for the next.
TEST_P(CApiTest, ARunSubmitsWaitsAndReleases) {
  gpushare_app_options one = AppOptionsOf(GPUSHARE_CLASS_LATENCY_CRITICAL, "one slot");
  one.tasks_max = 1;
  gpushare_app* app = nullptr;
  gpushare_queue* queue = nullptr;
  ASSERT_OK(gpushare_app_create(api_.runtime, &one, &app));
  ASSERT_OK(gpushare_queue_create(app, &queue));
  const gpushare_task_options task = api_.LcTask();
  for (int i = 0; i < 3; ++i) {
    gpushare_verdict verdict = GPUSHARE_VERDICT_PENDING;
    gpushare_ticket ticket = {1};
    EXPECT_OK(gpushare_run_lc(queue, &task, api_.Deadline(), &verdict, &ticket));
    EXPECT_EQ(verdict, GPUSHARE_VERDICT_OK);
    EXPECT_EQ(ticket.value, 0u);
    EXPECT_OK(gpushare_run_lc(queue, &task, GPUSHARE_NEVER, nullptr, nullptr));
  }
  EXPECT_EQ(Api::AppStats(app).completed, 6);
  EXPECT_OK(gpushare_queue_release(queue));
  EXPECT_OK(gpushare_app_release(app));
}

TEST_P(CApiTest, ARunThatIsLateLeavesItsTicketToTheCaller) {
  ASSERT_OK(gpushare_runtime_quiesce(api_.runtime, api_.Deadline()));
  const gpushare_task_options task = api_.LcTask();
  gpushare_verdict verdict = GPUSHARE_VERDICT_OK;
  gpushare_ticket ticket = {0};
  EXPECT_FAILS(gpushare_run_lc(api_.lc_queue, &task, api_.NowNs() + kMs, &verdict, &ticket),
               GPUSHARE_DEADLINE_EXCEEDED, "deadline");
  EXPECT_EQ(verdict, GPUSHARE_VERDICT_PENDING);
  ASSERT_NE(ticket.value, 0u);
  EXPECT_FAILS(gpushare_run_lc(api_.lc_queue, &task, api_.NowNs() + kMs, nullptr, nullptr),
               GPUSHARE_DEADLINE_EXCEEDED, "deadline");
  ASSERT_OK(gpushare_runtime_resume(api_.runtime));
  EXPECT_EQ(api_.Finish(ticket).verdict, GPUSHARE_VERDICT_OK);
  EXPECT_OK(gpushare_runtime_drain(api_.runtime, api_.Deadline()));
  EXPECT_EQ(Api::AppStats(api_.lc_app).completed, 2) << "the one without a ticket went on";
}

TEST_P(CApiTest, ARunThatFailsSaysSoAndLeavesItsRecord) {
  ASSERT_OK(gpushare_runtime_quiesce(api_.runtime, api_.Deadline()));
  const gpushare_ticket cancelled = api_.Submit(api_.BeTask(), false);
  ASSERT_OK(gpushare_ticket_cancel(api_.runtime, cancelled));
  ASSERT_OK(gpushare_runtime_resume(api_.runtime));
  gpushare_task_options task = api_.LcTask();
  task.wait_tickets = &cancelled;
  task.wait_ticket_count = 1;
  gpushare_verdict verdict = GPUSHARE_VERDICT_PENDING;
  gpushare_ticket ticket = {0};
  EXPECT_OK(gpushare_run_lc(api_.lc_queue, &task, api_.Deadline(), &verdict, &ticket));
  EXPECT_EQ(verdict, GPUSHARE_VERDICT_FAILED);
  ASSERT_NE(ticket.value, 0u);
  EXPECT_EQ(api_.Finish(ticket).failed_dependency.value, cancelled.value);
  EXPECT_OK(gpushare_ticket_release(api_.runtime, cancelled));
}

TEST_P(CApiTest, ARunThatIsRefusedSubmitsNothing) {
  gpushare_task_options task = api_.LcTask();
  gpushare_ticket ticket = {1};
  EXPECT_FAILS(gpushare_run_lc(nullptr, &task, 0, nullptr, &ticket), GPUSHARE_INVALID_ARGUMENT,
               "queue");
  EXPECT_EQ(ticket.value, 0u);
  EXPECT_FAILS(gpushare_run_lc(api_.be_queue, &task, GPUSHARE_NEVER, nullptr, nullptr),
               GPUSHARE_INVALID_ARGUMENT, "submit_be");
  EXPECT_FAILS(gpushare_run_lc(api_.lc_queue, &task, -1, nullptr, nullptr),
               GPUSHARE_INVALID_ARGUMENT, "deadline");
  EXPECT_FAILS(gpushare_run_lc(api_.lc_queue, nullptr, GPUSHARE_NEVER, nullptr, nullptr),
               GPUSHARE_INVALID_ARGUMENT, "task_options");
  task.detached = 1;
  EXPECT_FAILS(gpushare_run_lc(api_.lc_queue, &task, GPUSHARE_NEVER, nullptr, nullptr),
               GPUSHARE_INVALID_ARGUMENT, "detached");
  task = api_.LcTask();
  task.struct_size = 1;
  EXPECT_FAILS(gpushare_run_lc(api_.lc_queue, &task, GPUSHARE_NEVER, nullptr, nullptr),
               GPUSHARE_INVALID_ARGUMENT, "struct_size");
  EXPECT_EQ(Api::AppStats(api_.lc_app).rejected, 4);
  EXPECT_EQ(Api::AppStats(api_.be_app).rejected, 1);
  struct Inside {
    Api* api;
    gpushare_status status;
  } inside = {&api_, GPUSHARE_OK};
  gpushare_task_options calling = api_.LcTask();
  calling.callback = [](void* user, const gpushare_completion_record*) {
    auto* const self = static_cast<Inside*>(user);
    const gpushare_task_options own = self->api->LcTask();
    self->status = gpushare_run_lc(self->api->lc_queue, &own, GPUSHARE_NEVER, nullptr, nullptr);
  };
  calling.callback_user = &inside;
  EXPECT_OK(gpushare_run_lc(api_.lc_queue, &calling, api_.Deadline(), nullptr, nullptr));
  EXPECT_OK(gpushare_runtime_shutdown(api_.runtime, api_.Deadline()));  // behind the callback
  EXPECT_EQ(inside.status, GPUSHARE_FAILED_PRECONDITION);
  EXPECT_EQ(Api::AppStats(api_.lc_app).submitted, 1);
  EXPECT_EQ(Api::AppStats(api_.lc_app).rejected, 5);
}

TEST_P(CApiTest, ACallbackRunsOnceMaySubmitAndMayNotWait) {
  Seen seen;
  seen.api = &api_;
  gpushare_task_options task = api_.BeTask();
  task.callback = Note;
  task.callback_user = &seen;
  const gpushare_ticket ticket = api_.Submit(task, false);
  EXPECT_EQ(api_.Finish(ticket).verdict, GPUSHARE_VERDICT_OK);
  AwaitCalls(api_, seen, 1);
  EXPECT_OK(gpushare_runtime_drain(api_.runtime, api_.Deadline()));
  EXPECT_EQ(seen.calls.load(), 1);
  EXPECT_EQ(seen.verdict, GPUSHARE_VERDICT_OK);
  EXPECT_EQ(seen.wait, GPUSHARE_FAILED_PRECONDITION);
  EXPECT_EQ(seen.drain, GPUSHARE_FAILED_PRECONDITION);
}

TEST_P(CApiTest, ACallbackIsAddedBeforeOrAfterCompletionAndOnlyOnce) {
  Seen late;
  const gpushare_ticket ticket = api_.Submit(api_.BeTask(), false);
  ASSERT_OK(gpushare_ticket_wait(api_.runtime, ticket, api_.Deadline()));
  ASSERT_OK(gpushare_ticket_set_callback(api_.runtime, ticket, Note, &late));
  EXPECT_EQ(late.calls.load(), 1);  // complete already: on this thread
  EXPECT_FAILS(gpushare_ticket_set_callback(api_.runtime, ticket, Note, &late),
               GPUSHARE_FAILED_PRECONDITION, "callback");
  int fd = -1;
  EXPECT_EQ(gpushare_ticket_eventfd(api_.runtime, ticket, &fd), GPUSHARE_FAILED_PRECONDITION);
  EXPECT_EQ(fd, -1);
  EXPECT_EQ(late.calls.load(), 1);
  ASSERT_OK(gpushare_ticket_release(api_.runtime, ticket));
  if (!polled()) return;
  Seen early;
  const gpushare_ticket second = api_.Submit(api_.BeTask(), false);
  ASSERT_OK(gpushare_ticket_set_callback(api_.runtime, second, Note, &early));
  EXPECT_EQ(early.calls.load(), 0);
  EXPECT_EQ(api_.Finish(second).verdict, GPUSHARE_VERDICT_OK);
  AwaitCalls(api_, early, 1);
  EXPECT_EQ(early.calls.load(), 1);
}

TEST_P(CApiTest, AnEventDescriptorBecomesReadableWithCompletion) {
  const gpushare_ticket ticket = api_.Submit(api_.BeTask(), false);
  int fd = -1;
  ASSERT_OK(gpushare_ticket_eventfd(api_.runtime, ticket, &fd));
  ASSERT_GE(fd, 0);
  pollfd wanted = {fd, POLLIN, 0};
  if (virtual_time()) {
    EXPECT_EQ(::poll(&wanted, 1, 0), 0) << "readable before the task is complete";
  }
  ASSERT_OK(gpushare_ticket_wait(api_.runtime, ticket, api_.Deadline()));
  ASSERT_EQ(::poll(&wanted, 1, 5000), 1);
  uint64_t value = 0;
  ASSERT_EQ(::read(fd, &value, sizeof(value)), static_cast<ssize_t>(sizeof(value)));
  EXPECT_EQ(value, 1u);
  ::close(fd);
  EXPECT_OK(gpushare_ticket_release(api_.runtime, ticket));
}

TEST_P(CApiTest, AnEventDescriptorMayBeClosedEarly) {
  const gpushare_ticket ticket = api_.Submit(api_.BeTask(), false);
  int fd = -1;
  ASSERT_OK(gpushare_ticket_eventfd(api_.runtime, ticket, &fd));
  ::close(fd);
  EXPECT_EQ(api_.Finish(ticket).verdict, GPUSHARE_VERDICT_OK);
}

TEST_P(CApiTest, TasksWaitForTicketsOfOtherQueues) {
  const gpushare_ticket first = api_.Submit(api_.BeTask(5000), false);
  gpushare_task_options task = api_.LcTask();
  task.wait_tickets = &first;
  task.wait_ticket_count = 1;
  const gpushare_ticket second = api_.Submit(task, true);
  const gpushare_completion_record after = api_.Finish(second);
  const gpushare_completion_record before = api_.Finish(first);
  EXPECT_EQ(after.verdict, GPUSHARE_VERDICT_OK);
  EXPECT_GE(after.launch_ns, before.end_ns);
}

TEST_P(CApiTest, CopiesLibraryCallsAndOpaqueWorkComplete) {
  gpushare_task_options copy = GPUSHARE_TASK_OPTIONS_INIT;
  copy.kind = GPUSHARE_TASK_MEMCPY;
  copy.copy_direction = GPUSHARE_COPY_HOST_TO_DEVICE;
  copy.copy_size_bytes = 1 << 20;
  EXPECT_EQ(api_.Finish(api_.Submit(copy, false)).kind, GPUSHARE_TASK_MEMCPY);

  static std::atomic<int> enqueued{0};
  enqueued = 0;
  gpushare_task_options opaque = GPUSHARE_TASK_OPTIONS_INIT;
  opaque.kind = GPUSHARE_TASK_OPAQUE;
  opaque.declared_ns = 50000;
  opaque.enqueue = [](void*, void* user) { *static_cast<int*>(user) = enqueued.fetch_add(1) + 7; };
  int value = 0;
  opaque.enqueue_user = &value;
  const gpushare_completion_record record = api_.Finish(api_.Submit(opaque, false));
  EXPECT_EQ(record.verdict, GPUSHARE_VERDICT_OK);
  EXPECT_EQ(enqueued.load(), 1);
  EXPECT_EQ(value, 7);
}

TEST_P(CApiTest, ARegionGivesAStreamUntilItsEnd) {
  gpushare_region_options options = GPUSHARE_REGION_OPTIONS_INIT;
  options.bound_ns = 100000;
  gpushare_ticket ticket = {0};
  void* stream = nullptr;
  ASSERT_OK(gpushare_region_begin(api_.lc_queue, &options, &ticket, &stream));
  gpushare_bool complete = 1;
  ASSERT_OK(gpushare_ticket_poll(api_.runtime, ticket, &complete));
  EXPECT_EQ(complete, 0);
  ASSERT_OK(gpushare_region_end(api_.runtime, ticket));
  EXPECT_NE(gpushare_region_end(api_.runtime, ticket), GPUSHARE_OK);
  EXPECT_EQ(api_.Finish(ticket).verdict, GPUSHARE_VERDICT_OK);
  options.bound_ns = 0;
  options.input_size = 128;
  options.wait_ns = 1000000;
  options.next_within_ns = GPUSHARE_NO_NEXT;
  ASSERT_OK(gpushare_region_begin(api_.lc_queue, &options, &ticket, &stream));
  ASSERT_OK(gpushare_region_end(api_.runtime, ticket));
  EXPECT_EQ(api_.Finish(ticket).verdict, GPUSHARE_VERDICT_OK);
  for (int64_t gpushare_region_options::*const field :
       {&gpushare_region_options::bound_ns, &gpushare_region_options::arrival_ns,
        &gpushare_region_options::wait_ns}) {
    gpushare_region_options bad = GPUSHARE_REGION_OPTIONS_INIT;
    bad.*field = -1;
    EXPECT_FAILS(gpushare_region_begin(api_.lc_queue, &bad, &ticket, &stream),
                 GPUSHARE_INVALID_ARGUMENT, "is not negative");
  }
}

TEST_P(CApiTest, QuiesceHoldsLaunchesUntilResume) {
  ASSERT_OK(gpushare_runtime_quiesce(api_.runtime, api_.Deadline()));
  const gpushare_ticket ticket = api_.Submit(api_.BeTask(), false);
  int64_t now_ns = 0;
  ASSERT_OK(gpushare_now_ns(api_.runtime, &now_ns));
  EXPECT_FAILS(gpushare_ticket_wait(api_.runtime, ticket, now_ns + 1000000),
               GPUSHARE_DEADLINE_EXCEEDED, "deadline");
  ASSERT_OK(gpushare_runtime_resume(api_.runtime));
  EXPECT_FAILS(gpushare_runtime_resume(api_.runtime), GPUSHARE_FAILED_PRECONDITION, "quiesced");
  EXPECT_EQ(api_.Finish(ticket).verdict, GPUSHARE_VERDICT_OK);
}

TEST_P(CApiTest, ATaskThatHasNotStartedCanBeCancelled) {
  ASSERT_OK(gpushare_runtime_quiesce(api_.runtime, api_.Deadline()));
  const gpushare_ticket ticket = api_.Submit(api_.BeTask(), false);
  EXPECT_OK(gpushare_ticket_cancel(api_.runtime, ticket));
  ASSERT_OK(gpushare_runtime_resume(api_.runtime));
  EXPECT_OK(gpushare_ticket_wait(api_.runtime, ticket, api_.Deadline()));
  EXPECT_FAILS(gpushare_ticket_cancel(api_.runtime, ticket), GPUSHARE_FAILED_PRECONDITION,
               "complete");
  EXPECT_EQ(api_.Finish(ticket).verdict, GPUSHARE_VERDICT_CANCELLED);
}

TEST_P(CApiTest, TheTicketOfADetachedTaskNeedsNoRelease) {
  const gpushare_task_options task = api_.BeTask(10);
  for (int i = 0; i < 3000; ++i) {  // more than the app's 1024 slots
    gpushare_status status = gpushare_submit_be(api_.be_queue, &task, nullptr);
    if (status == GPUSHARE_RESOURCE_EXHAUSTED) {
      ASSERT_OK(gpushare_runtime_drain(api_.runtime, api_.Deadline()));
      status = gpushare_submit_be(api_.be_queue, &task, nullptr);
    }
    ASSERT_OK(status);
  }
  EXPECT_OK(gpushare_runtime_drain(api_.runtime, api_.Deadline()));
  gpushare_app_stats stats = GPUSHARE_APP_STATS_INIT;
  ASSERT_OK(gpushare_app_stats_get(api_.be_app, &stats));
  EXPECT_EQ(stats.completed, 3000);
  EXPECT_EQ(stats.queue_depth, 0);
  EXPECT_EQ(stats.app_class, GPUSHARE_CLASS_BEST_EFFORT);
}

TEST_P(CApiTest, ReservationsAreBoundedByTheDevice) {
  gpushare_reservation_options options = GPUSHARE_RESERVATION_OPTIONS_INIT;
  options.capsms = 40;
  EXPECT_OK(gpushare_reserve_capsm(api_.lc_app, &options));
  options.capsms = 1 << 20;
  EXPECT_NE(gpushare_reserve_capsm(api_.lc_app, &options), GPUSHARE_OK);
  options.capsms = -1;
  EXPECT_EQ(gpushare_reserve_capsm(api_.lc_app, &options), GPUSHARE_INVALID_ARGUMENT);
  options.capsms = 0;
  EXPECT_OK(gpushare_reserve_capsm(api_.lc_app, &options));
}

TEST_P(CApiTest, TheDeviceSaysWhatItIsAndGuarantees) {
  gpushare_device_info info = GPUSHARE_DEVICE_INFO_INIT;
  ASSERT_OK(gpushare_device_info_get(api_.runtime, &info));
  EXPECT_STREQ(info.name, GetParam().device);
  EXPECT_EQ(info.virtual_time, virtual_time() ? 1 : 0);
  EXPECT_GT(info.sm_count, 0);
  if (simulated()) {
    EXPECT_EQ(info.simulated, 1);
    EXPECT_EQ(info.sm_count, 132);
    EXPECT_EQ(info.sm_granularity, 8);
  }
  uint32_t of_graph = ~0u, of_sincos = 0, of_opaque = ~0u;
  ASSERT_OK(gpushare_guarantees(api_.runtime, GPUSHARE_TASK_DEFAULT, api_.graph, &of_graph));
  ASSERT_OK(gpushare_guarantees(api_.runtime, GPUSHARE_TASK_KERNEL, api_.sincos, &of_sincos));
  ASSERT_OK(gpushare_guarantees(api_.runtime, GPUSHARE_TASK_OPAQUE, nullptr, &of_opaque));
  EXPECT_EQ(of_graph & GPUSHARE_GUARANTEE_EVICTABLE, 0u);
  EXPECT_EQ((of_sincos & GPUSHARE_GUARANTEE_EVICTABLE) != 0, info.eviction == 1);
  EXPECT_EQ(of_opaque & (GPUSHARE_GUARANTEE_EVICTABLE | GPUSHARE_GUARANTEE_CONFINABLE), 0u);
  EXPECT_FAILS(gpushare_guarantees(api_.runtime, GPUSHARE_TASK_GRAPH, api_.sincos, &of_graph),
               GPUSHARE_INVALID_ARGUMENT, "kind");
}

TEST_P(CApiTest, StatsAndMetricsCountWhatRan) {
  EXPECT_EQ(api_.Finish(api_.Submit(api_.LcTask(), true)).verdict, GPUSHARE_VERDICT_OK);
  gpushare_runtime_stats stats = GPUSHARE_RUNTIME_STATS_INIT;
  ASSERT_OK(gpushare_runtime_stats_get(api_.runtime, &stats));
  EXPECT_GE(stats.launches, 1);
  EXPECT_EQ(stats.app_count, 2);
  EXPECT_EQ(stats.tasks_pending, 0);
  EXPECT_EQ(stats.device_lost, 0);
  size_t size = 0;
  ASSERT_OK(gpushare_metrics_text(api_.runtime, nullptr, 0, &size));
  ASSERT_GT(size, 1u);
  std::vector<char> small(8, 'x');
  size_t needed = 0;
  EXPECT_FAILS(gpushare_metrics_text(api_.runtime, small.data(), small.size(), &needed),
               GPUSHARE_OUT_OF_RANGE, "buffer");
  EXPECT_EQ(small.back(), '\0');
  std::vector<char> text(needed + 4096);
  ASSERT_OK(gpushare_metrics_text(api_.runtime, text.data(), text.size(), &size));
  EXPECT_EQ(std::strlen(text.data()) + 1, size);
  EXPECT_NE(std::strstr(text.data(), "service"), nullptr);
  EXPECT_NE(std::strstr(text.data(), "# EOF"), nullptr);
}

// A trace whose files could not be written when it stops would be lost.
TEST_P(CApiTest, ATraceChecksItsPathsWhenItStarts) {
  char folder[] = "/tmp/gpushare_abi_XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  const std::string missing = std::string(folder) + "/missing/events.bin";
  const std::string file = std::string(folder) + "/events.bin";
  gpushare_trace_options options = GPUSHARE_TRACE_OPTIONS_INIT;
  options.event_log_path = missing.c_str();
  EXPECT_FAILS(gpushare_trace_start(api_.runtime, &options), GPUSHARE_NOT_FOUND, "missing");
  options.event_log_path = folder;
  EXPECT_FAILS(gpushare_trace_start(api_.runtime, &options), GPUSHARE_UNAVAILABLE, folder);
  options.event_log_path = options.perfetto_path = file.c_str();
  EXPECT_FAILS(gpushare_trace_start(api_.runtime, &options), GPUSHARE_INVALID_ARGUMENT,
               "replace each other");
  EXPECT_FAILS(gpushare_trace_stop(api_.runtime, nullptr), GPUSHARE_FAILED_PRECONDITION, "trace");
  ::rmdir(folder);
}

TEST_P(CApiTest, ATraceIsWrittenAndItsEventLogReadBack) {
  char folder[] = "/tmp/gpushare_abi_XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  const std::string perfetto = std::string(folder) + "/trace.pftrace";
  const std::string events = std::string(folder) + "/events.bin";
  gpushare_trace_options options = GPUSHARE_TRACE_OPTIONS_INIT;
  EXPECT_FAILS(gpushare_trace_start(api_.runtime, &options), GPUSHARE_INVALID_ARGUMENT, "path");
  EXPECT_FAILS(gpushare_trace_stop(api_.runtime, nullptr), GPUSHARE_FAILED_PRECONDITION, "trace");
  options.perfetto_path = perfetto.c_str();
  options.event_log_path = events.c_str();
  ASSERT_OK(gpushare_trace_start(api_.runtime, &options));
  EXPECT_FAILS(gpushare_trace_start(api_.runtime, &options), GPUSHARE_FAILED_PRECONDITION, "runs");
  const gpushare_completion_record record = api_.Finish(api_.Submit(api_.BeTask(), false));
  gpushare_trace_summary summary = GPUSHARE_TRACE_SUMMARY_INIT;
  ASSERT_OK(gpushare_trace_stop(api_.runtime, &summary));
  EXPECT_GT(summary.records, 0);
  EXPECT_EQ(summary.dropped, 0);
  struct stat file;
  ASSERT_EQ(::stat(perfetto.c_str(), &file), 0);
  EXPECT_GT(file.st_size, 0);

  gpushare_event_log* log = nullptr;
  int64_t count = 0;
  ASSERT_OK(gpushare_event_log_open(events.c_str(), &log, &count));
  EXPECT_EQ(count, summary.records);
  int completed = 0;
  for (int64_t i = 0; i < count; ++i) {
    gpushare_event event = GPUSHARE_EVENT_INIT;
    ASSERT_OK(gpushare_event_log_get(log, i, &event));
    if (event.type == GPUSHARE_EVENT_COMPLETED && event.id == record.ticket.value) {
      ++completed;
      EXPECT_EQ(event.detail, GPUSHARE_VERDICT_OK);
      EXPECT_EQ(event.app_id, record.app_id);
    }
  }
  EXPECT_EQ(completed, 1);
  gpushare_event event = GPUSHARE_EVENT_INIT;
  EXPECT_FAILS(gpushare_event_log_get(log, count, &event), GPUSHARE_OUT_OF_RANGE, "events");
  EXPECT_EQ(gpushare_event_log_get(log, -1, &event), GPUSHARE_OUT_OF_RANGE);
  EXPECT_OK(gpushare_event_log_retain(log));
  EXPECT_OK(gpushare_event_log_release(log));
  EXPECT_OK(gpushare_event_log_release(log));
  EXPECT_EQ(gpushare_event_log_release(log), GPUSHARE_INVALID_ARGUMENT);
  std::ofstream(events, std::ios::trunc) << "GPUSHLOG cut";
  EXPECT_NE(gpushare_event_log_open(events.c_str(), &log, &count), GPUSHARE_OK);
  ::unlink(perfetto.c_str());
  ::unlink(events.c_str());
  ::rmdir(folder);
}

TEST_P(CApiTest, AProfileIsSavedLoadedAndRejectedWhole) {
  char folder[] = "/tmp/gpushare_abi_XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  const std::string path = std::string(folder) + "/profile.json";
  EXPECT_EQ(gpushare_profile_load(api_.runtime, path.c_str()), GPUSHARE_NOT_FOUND);
  ASSERT_OK(gpushare_profile_save(api_.runtime, path.c_str()));
  EXPECT_OK(gpushare_profile_validate(path.c_str()));
  EXPECT_OK(gpushare_profile_load(api_.runtime, path.c_str()));
  ASSERT_EQ(::truncate(path.c_str(), 100), 0);
  EXPECT_NE(gpushare_profile_load(api_.runtime, path.c_str()), GPUSHARE_OK);
  EXPECT_NE(gpushare_profile_validate(path.c_str()), GPUSHARE_OK);
  gpushare_kernel_info info = GPUSHARE_KERNEL_INFO_INIT;
  EXPECT_OK(gpushare_kernel_info_by_name(api_.runtime, "sincos_267us", &info));
  ::unlink(path.c_str());
  ::rmdir(folder);
}

TEST_P(CApiTest, KernelsAreKnownByName) {
  gpushare_kernel_info info = GPUSHARE_KERNEL_INFO_INIT;
  ASSERT_OK(gpushare_kernel_info_by_name(api_.runtime, "chain1", &info));
  EXPECT_EQ(info.kind, GPUSHARE_TASK_GRAPH);
  EXPECT_GT(info.node_count, 0);
  EXPECT_NEAR(static_cast<double>(info.solo_ns), 667e3, 67e3);  // MEASURED: 667 us alone
  ASSERT_OK(gpushare_kernel_info_by_name(api_.runtime, "sincos_267us", &info));
  EXPECT_EQ(info.kind, GPUSHARE_TASK_KERNEL);
  EXPECT_NEAR(static_cast<double>(info.block_task_ns), 155e3, 16e3);  // four workers an SM
  EXPECT_EQ(info.evictable, 1);
  EXPECT_FAILS(gpushare_kernel_info_by_name(api_.runtime, "no_such", &info), GPUSHARE_NOT_FOUND,
               "no_such");
  char names[8192];
  size_t size = 0;
  ASSERT_OK(gpushare_profile_kernel_names(api_.runtime, names, sizeof(names), &size));
  EXPECT_NE(std::strstr(names, "chain1\n"), nullptr);
}

TEST_P(CApiTest, AKernelOfTheCallersOwnRuns) {
  gpushare_speed_point speed[2] = {{64, 0, 0.5}, {132, 0, 1.0}};
  gpushare_simulation_record record = GPUSHARE_SIMULATION_RECORD_INIT;
  record.block_task_ns = 20000;
  record.worker_overhead = -0.08;  // workers may be faster than the grid
  record.demand.issue = 0.9;
  record.speed = speed;
  record.speed_count = 2;
  gpushare_kernel_options options = GPUSHARE_KERNEL_OPTIONS_INIT;
  options.name = "own";
  options.evictable = GPUSHARE_CHOICE_YES;
  options.simulation = &record;
  gpushare_kernel* kernel = nullptr;
  ASSERT_OK(gpushare_kernel_register(api_.runtime, &options, &kernel));
  EXPECT_FAILS(gpushare_kernel_register(api_.runtime, &options, &kernel), GPUSHARE_ALREADY_EXISTS,
               "own");
  EXPECT_EQ(kernel, nullptr);
  gpushare_kernel_info info = GPUSHARE_KERNEL_INFO_INIT;
  ASSERT_OK(gpushare_kernel_info_by_name(api_.runtime, "own", &info));
  EXPECT_EQ(info.block_task_ns, 20000);
  EXPECT_EQ(info.workers_per_sm_max, 8);
}

TEST_P(CApiTest, AFusedKernelNamesTwoRegisteredKernels) {
  gpushare_fused_kernel_options options = GPUSHARE_FUSED_KERNEL_OPTIONS_INIT;
  options.name = "pair";
  options.tensor_part = api_.sincos;
  gpushare_fused_kernel* fused = nullptr;
  EXPECT_FAILS(gpushare_fused_kernel_register(api_.runtime, &options, &fused),
               GPUSHARE_INVALID_ARGUMENT, "null");
  gpushare_kernel_options other = GPUSHARE_KERNEL_OPTIONS_INIT;
  other.name = "ffma";
  gpushare_kernel* ffma = nullptr;
  ASSERT_OK(gpushare_kernel_register(api_.runtime, &other, &ffma));
  options.cuda_part = ffma;
  options.opportune_load_ratio = std::nan("");
  EXPECT_FAILS(gpushare_fused_kernel_register(api_.runtime, &options, &fused),
               GPUSHARE_INVALID_ARGUMENT, "ratio");
  options.opportune_load_ratio = 0.6;
  options.threads_per_block = 2048;
  EXPECT_FAILS(gpushare_fused_kernel_register(api_.runtime, &options, &fused),
               GPUSHARE_INVALID_ARGUMENT, "threads");
  options.threads_per_block = 512;
  options.reserved2 = 1;
  EXPECT_FAILS(gpushare_fused_kernel_register(api_.runtime, &options, &fused),
               GPUSHARE_UNIMPLEMENTED, "reserved2");
  options.reserved2 = 0;
  // A caller of the first version, whose struct ends before the threads.
  options.struct_size = 64;
  ASSERT_OK(gpushare_fused_kernel_register(api_.runtime, &options, &fused));
  gpushare_fused_kernel* again = nullptr;
  EXPECT_FAILS(gpushare_fused_kernel_register(api_.runtime, &options, &again),
               GPUSHARE_ALREADY_EXISTS, "pair");
  EXPECT_OK(gpushare_fused_kernel_retain(fused));
  EXPECT_OK(gpushare_fused_kernel_release(fused));
  EXPECT_OK(gpushare_fused_kernel_release(fused));
  EXPECT_EQ(gpushare_fused_kernel_retain(fused), GPUSHARE_INVALID_ARGUMENT);
  EXPECT_OK(gpushare_kernel_retain(ffma));
  EXPECT_OK(gpushare_kernel_release(ffma));
  EXPECT_OK(gpushare_kernel_release(ffma));
}

TEST_P(CApiTest, ThePolicyChangesWhileTheRuntimeLives) {
  char names[1024];
  size_t size = 0;
  ASSERT_OK(gpushare_policy_names(names, sizeof(names), &size));
  int tried = 0;
  for (char* name = std::strtok(names, "\n"); name != nullptr; name = std::strtok(nullptr, "\n")) {
    ASSERT_OK(gpushare_set_policy(api_.runtime, name));
    EXPECT_EQ(api_.Finish(api_.Submit(api_.LcTask(), true)).verdict, GPUSHARE_VERDICT_OK) << name;
    ++tried;
  }
  EXPECT_GE(tried, 8);
  EXPECT_FAILS(gpushare_set_policy(api_.runtime, "no_such"), GPUSHARE_INVALID_ARGUMENT, "adaptive");
}

TEST_P(CApiTest, PollingBelongsToPolledRuntimes) {
  gpushare_bool progress = -1;
  int64_t now_ns = 0;
  ASSERT_OK(gpushare_now_ns(api_.runtime, &now_ns));
  if (polled()) {
    EXPECT_OK(gpushare_poll(api_.runtime, &progress));
    EXPECT_OK(gpushare_poll(api_.runtime, nullptr));
    EXPECT_OK(gpushare_poll_until(api_.runtime, now_ns + 2000000));
    int64_t then_ns = 0;
    ASSERT_OK(gpushare_now_ns(api_.runtime, &then_ns));
    EXPECT_GE(then_ns, now_ns + 2000000);
    if (virtual_time()) {
      EXPECT_EQ(then_ns, now_ns + 2000000);
    }
  } else {
    EXPECT_FAILS(gpushare_poll(api_.runtime, &progress), GPUSHARE_FAILED_PRECONDITION, "thread");
  }
  EXPECT_EQ(gpushare_poll_until(api_.runtime, -1), GPUSHARE_INVALID_ARGUMENT);
  EXPECT_EQ(gpushare_poll_until(api_.runtime, GPUSHARE_NEVER), GPUSHARE_INVALID_ARGUMENT);
}

TEST_P(CApiTest, ShutdownCompletesWhatWasAcceptedAndRefusesMore) {
  Seen seen;
  gpushare_task_options task = api_.BeTask();
  task.callback = Note;
  task.callback_user = &seen;
  ASSERT_OK(gpushare_runtime_quiesce(api_.runtime, api_.Deadline()));
  std::vector<gpushare_ticket> tickets;
  tickets.reserve(20);
  for (int i = 0; i < 20; ++i) tickets.push_back(api_.Submit(task, false));
  ASSERT_OK(gpushare_runtime_shutdown(api_.runtime, api_.Deadline()));
  ASSERT_OK(gpushare_runtime_shutdown(api_.runtime, api_.Deadline()));  // idempotent
  EXPECT_EQ(seen.calls.load(), 20);
  for (const gpushare_ticket ticket : tickets) {
    gpushare_completion_record record = GPUSHARE_COMPLETION_RECORD_INIT;
    ASSERT_OK(gpushare_ticket_record(api_.runtime, ticket, &record));
    EXPECT_NE(record.verdict, GPUSHARE_VERDICT_PENDING);
    EXPECT_OK(gpushare_ticket_release(api_.runtime, ticket));
  }
  EXPECT_FAILS(gpushare_submit_be(api_.be_queue, &task, nullptr), GPUSHARE_FAILED_PRECONDITION,
               "shut down");
  gpushare_query query = {0};
  EXPECT_EQ(gpushare_query_begin(api_.lc_queue, 0, &query), GPUSHARE_FAILED_PRECONDITION);
  EXPECT_EQ(seen.calls.load(), 20);
}

// A shutdown reports the tasks that it ends although the flow's thread is still in a callback.
TEST_P(CApiTest, CallbacksOfAShutdownWaitForThoseOfTheThread) {
  if (polled()) GTEST_SKIP() << "a polled runtime has one driver";
  struct Calls {
    std::atomic<int> inside{0};
    std::atomic<int> most{0};
    std::atomic<int> all{0};
  } calls;
  gpushare_task_options task = api_.BeTask();
  task.callback = [](void* user, const gpushare_completion_record*) {
    Calls& seen = *static_cast<Calls*>(user);
    const int inside = seen.inside.fetch_add(1) + 1;
    if (inside > seen.most.load()) seen.most.store(inside);
    if (seen.all.load() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    seen.inside.fetch_sub(1);
    seen.all.fetch_add(1);
  };
  task.callback_user = &calls;
  ASSERT_OK(gpushare_runtime_quiesce(api_.runtime, api_.Deadline()));
  std::vector<gpushare_ticket> tickets;
  for (int i = 0; i < 5; ++i) tickets.push_back(api_.Submit(task, false));
  EXPECT_OK(gpushare_ticket_cancel(api_.runtime, tickets[0]));
  while (calls.inside.load() + calls.all.load() == 0) std::this_thread::yield();
  ASSERT_OK(gpushare_runtime_shutdown(api_.runtime, api_.Deadline()));
  EXPECT_EQ(calls.all.load(), 5);
  EXPECT_EQ(calls.most.load(), 1);
  for (const gpushare_ticket ticket : tickets) {
    EXPECT_OK(gpushare_ticket_release(api_.runtime, ticket));
  }
}

TEST_P(CApiTest, ManyThreadsSubmitAtOnce) {
  if (polled()) GTEST_SKIP() << "a polled runtime has one driver";
  std::atomic<int> calls{0};
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        gpushare_task_options task = api_.BeTask(4);
        task.callback = [](void* user, const gpushare_completion_record*) {
          static_cast<std::atomic<int>*>(user)->fetch_add(1);
        };
        task.callback_user = &calls;
        gpushare_status status = GPUSHARE_RESOURCE_EXHAUSTED;
        while (status == GPUSHARE_RESOURCE_EXHAUSTED) {
          status = gpushare_submit_be(api_.be_queue, &task, nullptr);
        }
        EXPECT_OK(status);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_OK(gpushare_runtime_shutdown(api_.runtime, api_.Deadline()));
  EXPECT_EQ(calls.load(), 2000);
}

// Opens event logs until the process has no handle left.
class ManyHandles {
 public:
  explicit ManyHandles(const char* event_log_path) {
    gpushare_event_log* log = nullptr;
    int64_t count = 0;
    while (logs_.size() < 100000 &&
           gpushare_event_log_open(event_log_path, &log, &count) == GPUSHARE_OK) {
      logs_.push_back(log);
    }
  }
  ~ManyHandles() {
    for (gpushare_event_log* log : logs_) EXPECT_OK(gpushare_event_log_release(log));
  }

 private:
  std::vector<gpushare_event_log*> logs_;
};

TEST(CApiHandlesTest, ARegistrationThatGetsNoHandleLeavesTheNameFree) {
  char path[] = "/tmp/gpushare_abi_XXXXXX";
  const int file = ::mkstemp(path);
  ASSERT_GE(file, 0);
  ::close(file);
  Api api;
  api.Open({"null", GPUSHARE_DRIVE_POLL});
  gpushare_trace_options trace = GPUSHARE_TRACE_OPTIONS_INIT;
  trace.event_log_path = path;
  trace.records_max = 1;
  ASSERT_OK(gpushare_trace_start(api.runtime, &trace));
  ASSERT_OK(gpushare_trace_stop(api.runtime, nullptr));
  gpushare_kernel_options kernel_options = GPUSHARE_KERNEL_OPTIONS_INIT;
  kernel_options.name = "ffma";
  gpushare_kernel* kernel = nullptr;
  gpushare_fused_kernel_options fused_options = GPUSHARE_FUSED_KERNEL_OPTIONS_INIT;
  fused_options.name = "pair";
  fused_options.tensor_part = api.sincos;
  fused_options.cuda_part = api.graph;
  gpushare_fused_kernel* fused = nullptr;
  const gpushare_app_options app_options = AppOptionsOf(GPUSHARE_CLASS_BEST_EFFORT, "other");
  gpushare_app* app = nullptr;
  {
    const ManyHandles all(path);
    EXPECT_FAILS(gpushare_kernel_register(api.runtime, &kernel_options, &kernel),
                 GPUSHARE_RESOURCE_EXHAUSTED, "handles");
    EXPECT_FAILS(gpushare_fused_kernel_register(api.runtime, &fused_options, &fused),
                 GPUSHARE_RESOURCE_EXHAUSTED, "handles");
    EXPECT_FAILS(gpushare_app_create(api.runtime, &app_options, &app), GPUSHARE_RESOURCE_EXHAUSTED,
                 "handles");
  }
  EXPECT_OK(gpushare_kernel_register(api.runtime, &kernel_options, &kernel));
  EXPECT_OK(gpushare_fused_kernel_register(api.runtime, &fused_options, &fused));
  EXPECT_OK(gpushare_app_create(api.runtime, &app_options, &app));
  EXPECT_OK(gpushare_app_release(app));
  EXPECT_OK(gpushare_fused_kernel_release(fused));
  EXPECT_OK(gpushare_kernel_release(kernel));
  api.Close();
  ::unlink(path);
}

TEST(CApiHandlesTest, ARegistrationThatIsRefusedGivesItsHandleBack) {
  Api api;
  api.Open({"null", GPUSHARE_DRIVE_POLL});
  gpushare_kernel_options options = GPUSHARE_KERNEL_OPTIONS_INIT;
  options.name = "sincos_27us";
  gpushare_kernel* kernel = nullptr;
  for (int i = 0; i < 70000; ++i) {  // more than there are handles
    ASSERT_EQ(gpushare_kernel_register(api.runtime, &options, &kernel), GPUSHARE_ALREADY_EXISTS)
        << gpushare_last_error_message();
  }
  EXPECT_EQ(kernel, nullptr);
  api.Close();
}

TEST(CApiVersionTest, TheLibraryIsTheOneOfTheHeader) {
  EXPECT_EQ(gpushare_abi_version(), static_cast<uint32_t>(GPUSHARE_ABI_VERSION));
  EXPECT_EQ(GPUSHARE_ABI_VERSION, 1);
  EXPECT_STREQ(gpushare_version_string(), "0.1.0");
}

TEST(CApiVersionTest, EveryValueHasAName) {
  EXPECT_STREQ(gpushare_status_name(GPUSHARE_OK), "OK");
  EXPECT_STREQ(gpushare_status_name(GPUSHARE_DATA_LOSS), "DATA_LOSS");
  EXPECT_STREQ(gpushare_status_name(99), "UNKNOWN_STATUS");
  EXPECT_STREQ(gpushare_app_class_name(GPUSHARE_CLASS_BEST_EFFORT), "best_effort");
  EXPECT_STREQ(gpushare_task_kind_name(GPUSHARE_TASK_OPAQUE), "opaque");
  EXPECT_STREQ(gpushare_form_name(GPUSHARE_FORM_WORKERS), "workers");
  EXPECT_STREQ(gpushare_verdict_name(GPUSHARE_VERDICT_TIMED_OUT), "timed_out");
  EXPECT_STREQ(gpushare_reason_name(GPUSHARE_REASON_EVICT_FOR_LC), "evict_for_lc");
  EXPECT_STREQ(gpushare_event_type_name(GPUSHARE_EVENT_PART_DONE), "part_done");
  EXPECT_STREQ(gpushare_reason_name(-1), "unknown");
}

}  // namespace
}  // namespace gpushare_test
