// What one tenant can do to the others: its queues hide no work of theirs, what it leaves open
// holds them only for its idle timeout, and its open queries take none of theirs. Simulated device,
// virtual time.

#include <string>
#include <vector>

#include "tests/faults/flight.h"

namespace gpushare_test {
namespace {

constexpr int64_t kIdleNs = 100 * kMs;

class NeighboursTest : public ::testing::Test {
 protected:
  void SetUp() override {
    api_.opening.profile_path = GPUSHARE_SMALL_PROFILE;
    api_.opening.log_user = this;
    api_.opening.log = [](void* user, gpushare_log_level, const char* message) {
      static_cast<NeighboursTest*>(user)->log_.push_back(message);
    };
    api_.Open({"sim", GPUSHARE_DRIVE_POLL}, nullptr, "adaptive");
    gpushare_app_options options = AppOptionsOf(GPUSHARE_CLASS_LATENCY_CRITICAL, "forgetful");
    options.p99_bound = 1.05;
    options.idle_timeout_ns = kIdleNs;
    ASSERT_OK(gpushare_app_create(api_.runtime, &options, &forgetful_));
    ASSERT_OK(gpushare_queue_create(forgetful_, &queue_));
    EXPECT_OK(gpushare_poll(api_.runtime, nullptr));  // publishes the first route
  }
  void TearDown() override {
    EXPECT_OK(gpushare_runtime_shutdown(api_.runtime, api_.Deadline()));
    EXPECT_OK(gpushare_queue_release(queue_));
    EXPECT_OK(gpushare_app_release(forgetful_));
    api_.Close();
  }

  gpushare_query BeginQuery() const {
    gpushare_query query = {0};
    EXPECT_OK(gpushare_query_begin(queue_, 0, &query));
    return query;
  }
  gpushare_ticket BeginRegion(int64_t bound_ns) const {
    gpushare_region_options options = GPUSHARE_REGION_OPTIONS_INIT;
    options.bound_ns = bound_ns;
    gpushare_ticket region = {0};
    void* stream = nullptr;
    EXPECT_OK(gpushare_region_begin(queue_, &options, &region, &stream));
    return region;
  }
  gpushare_task_options InQuery(gpushare_query query) const {
    gpushare_task_options task = api_.LcTask();
    task.query = query;
    return task;
  }
  // How long a BE task of another app takes, which takes 0.1 ms on an idle device.
  int64_t BeTaskNs() const {
    const int64_t begin_ns = api_.NowNs();
    EXPECT_EQ(api_.Finish(api_.Submit(api_.BeTask(), false)).verdict, GPUSHARE_VERDICT_OK);
    return api_.NowNs() - begin_ns;
  }
  gpushare_app_stats Stats() const { return Api::AppStats(forgetful_); }
  int LinesWith(const std::string& text) const {
    int lines = 0;
    for (const std::string& line : log_) lines += line.find(text) != std::string::npos ? 1 : 0;
    return lines;
  }
  std::string Metrics() const {
    size_t size = 0;
    EXPECT_OK(gpushare_metrics_text(api_.runtime, nullptr, 0, &size));
    std::string text(size, ' ');
    EXPECT_OK(gpushare_metrics_text(api_.runtime, text.data(), size, &size));
    return text;
  }

  Api api_;
  gpushare_app* forgetful_ = nullptr;
  gpushare_queue* queue_ = nullptr;
  std::vector<std::string> log_;
};

// 200 held heads would fill a plan that sees the oldest ones only.
TEST_F(NeighboursTest, ManyHeldQueuesOfOneAppHideNoWorkOfAnother) {
  constexpr int kQueues = 200;
  for (int i = 0; i < 5; ++i) {  // so that opaque work is held for the bound
    const gpushare_task_options query = api_.LcTask();
    gpushare_ticket ticket = {0};
    ASSERT_OK(gpushare_submit_lc(queue_, &query, &ticket));
    EXPECT_EQ(api_.Finish(ticket).verdict, GPUSHARE_VERDICT_OK);
  }
  const gpushare_app_options options = AppOptionsOf(GPUSHARE_CLASS_BEST_EFFORT, "crowd");
  gpushare_app* crowd = nullptr;
  ASSERT_OK(gpushare_app_create(api_.runtime, &options, &crowd));
  gpushare_task_options held = GPUSHARE_TASK_OPTIONS_INIT;
  held.kind = GPUSHARE_TASK_OPAQUE;
  held.declared_ns = 3600 * kS;
  held.enqueue = [](void*, void*) {};
  std::vector<gpushare_queue*> queues(kQueues);
  std::vector<gpushare_ticket> tickets(kQueues);
  for (size_t i = 0; i < kQueues; ++i) {
    ASSERT_OK(gpushare_queue_create(crowd, &queues[i]));
    ASSERT_OK(gpushare_submit_be(queues[i], &held, &tickets[i]));
  }
  EXPECT_LT(BeTaskNs(), 10 * kMs);
  EXPECT_EQ(gpushare_runtime_shutdown(api_.runtime, api_.NowNs()), GPUSHARE_DEADLINE_EXCEEDED);
  for (size_t i = 0; i < kQueues; ++i) {
    gpushare_completion_record record = GPUSHARE_COMPLETION_RECORD_INIT;
    ASSERT_OK(gpushare_ticket_record(api_.runtime, tickets[i], &record));
    EXPECT_EQ(record.verdict, GPUSHARE_VERDICT_SHUTDOWN);
    EXPECT_NE(record.hold_reason, GPUSHARE_REASON_NONE) << i;
    EXPECT_OK(gpushare_queue_release(queues[i]));
  }
  EXPECT_OK(gpushare_app_release(crowd));
}

TEST_F(NeighboursTest, AnOpenQueryHoldsOthersForItsIdleTimeoutOnly) {
  const gpushare_query query = BeginQuery();
  const int64_t begin_ns = api_.NowNs();
  EXPECT_OK(gpushare_poll(api_.runtime, nullptr));
  EXPECT_EQ(Stats().queries_open, 1);
  EXPECT_EQ(Stats().queries_idle, 0);
  // Opaque work of 5 ms fits no budget while the query is active.
  gpushare_task_options opaque = GPUSHARE_TASK_OPTIONS_INIT;
  opaque.kind = GPUSHARE_TASK_OPAQUE;
  opaque.declared_ns = kMs;
  opaque.enqueue = [](void*, void*) {};
  const gpushare_ticket held = api_.Submit(opaque, false);
  EXPECT_EQ(api_.Finish(held).verdict, GPUSHARE_VERDICT_OK);
  EXPECT_GE(api_.NowNs() - begin_ns, kIdleNs);
  EXPECT_EQ(Stats().queries_idle, 1);
  EXPECT_LT(BeTaskNs(), 10 * kMs);
  EXPECT_EQ(LinesWith("'forgetful'"), 1);
  EXPECT_NE(Metrics().find("gpushare_app_queries_idle{"), std::string::npos);
  // It counts again with its next task, and ends as any other.
  const gpushare_task_options task = InQuery(query);
  gpushare_ticket ticket = {0};
  ASSERT_OK(gpushare_submit_lc(queue_, &task, &ticket));
  EXPECT_EQ(api_.Finish(ticket).verdict, GPUSHARE_VERDICT_OK);
  EXPECT_EQ(Stats().queries_idle, 0);
  EXPECT_OK(gpushare_query_end(api_.runtime, query));
  EXPECT_OK(gpushare_poll(api_.runtime, nullptr));
  EXPECT_EQ(Stats().queries_open, 0);
  EXPECT_EQ(Stats().latency.count, 1);
}

TEST_F(NeighboursTest, AnIdleQueryThatEndsSaysNothingOfLatencies) {
  const gpushare_query query = BeginQuery();
  EXPECT_OK(gpushare_poll(api_.runtime, nullptr));
  const gpushare_ticket be = api_.Submit(api_.BeTask(), false);
  EXPECT_OK(gpushare_poll_until(api_.runtime, api_.NowNs() + 2 * kIdleNs));
  EXPECT_EQ(Stats().queries_idle, 1);
  EXPECT_EQ(api_.Finish(be).verdict, GPUSHARE_VERDICT_OK);
  EXPECT_OK(gpushare_query_end(api_.runtime, query));
  EXPECT_OK(gpushare_poll(api_.runtime, nullptr));
  EXPECT_EQ(Stats().queries_idle, 0);
  EXPECT_EQ(Stats().queries_open, 0);
  gpushare_app_guarantee guarantee = GPUSHARE_APP_GUARANTEE_INIT;
  EXPECT_OK(gpushare_app_guarantee_get(forgetful_, &guarantee));
  EXPECT_EQ(guarantee.queries, 0) << "not in the window of the promise";
  EXPECT_LT(BeTaskNs(), 10 * kMs);
}

TEST_F(NeighboursTest, ARegionThatIsNeverEndedHoldsOthersForALimitedTimeOnly) {
  const gpushare_ticket region = BeginRegion(1);
  EXPECT_OK(gpushare_poll(api_.runtime, nullptr));
  EXPECT_EQ(Stats().regions_open, 1);
  gpushare_task_options opaque = GPUSHARE_TASK_OPTIONS_INIT;
  opaque.kind = GPUSHARE_TASK_OPAQUE;
  opaque.declared_ns = kMs;
  opaque.enqueue = [](void*, void*) {};
  const gpushare_ticket held = api_.Submit(opaque, false);
  EXPECT_OK(gpushare_poll_until(api_.runtime, api_.NowNs() + kIdleNs / 2));
  EXPECT_EQ(Stats().regions_overdue, 0);
  EXPECT_EQ(api_.Finish(held).verdict, GPUSHARE_VERDICT_OK);
  EXPECT_EQ(Stats().regions_overdue, 1);
  EXPECT_LT(BeTaskNs(), 10 * kMs);
  EXPECT_EQ(LinesWith("'forgetful'"), 1);
  EXPECT_OK(gpushare_runtime_quiesce(api_.runtime, api_.NowNs() + kMs)) << "it holds nobody";
  EXPECT_OK(gpushare_runtime_resume(api_.runtime));
  EXPECT_OK(gpushare_region_end(api_.runtime, region));
  EXPECT_EQ(api_.Finish(region).verdict, GPUSHARE_VERDICT_OK);
  EXPECT_EQ(Stats().regions_open, 0);
  EXPECT_EQ(Stats().regions_overdue, 0);
}

TEST_F(NeighboursTest, AQuiesceWaitsForAnOpenRegionUntilThatIsOverdue) {
  const gpushare_ticket region = BeginRegion(kMs);
  EXPECT_FAILS(gpushare_runtime_quiesce(api_.runtime, api_.NowNs() + kIdleNs / 2),
               GPUSHARE_DEADLINE_EXCEEDED, "App 'forgetful' has an open region");
  const int64_t begin_ns = api_.NowNs();
  EXPECT_OK(gpushare_runtime_quiesce(api_.runtime, begin_ns + kS));
  EXPECT_LT(api_.NowNs() - begin_ns, kIdleNs);
  EXPECT_OK(gpushare_runtime_resume(api_.runtime));
  EXPECT_OK(gpushare_region_end(api_.runtime, region));
  EXPECT_EQ(api_.Finish(region).verdict, GPUSHARE_VERDICT_OK);
  EXPECT_EQ(Stats().regions_overdue, 0);
}

// The bound counts where it is longer than the idle timeout.
TEST_F(NeighboursTest, ARegionKeepsOthersOffForAHundredTimesItsBound) {
  const gpushare_ticket region = BeginRegion(10 * kMs);
  const gpushare_ticket be = api_.Submit(api_.BeTask(), false);
  EXPECT_OK(gpushare_poll_until(api_.runtime, api_.NowNs() + 900 * kMs));
  EXPECT_EQ(Stats().regions_overdue, 0);
  EXPECT_OK(gpushare_poll_until(api_.runtime, api_.NowNs() + 200 * kMs));
  EXPECT_EQ(Stats().regions_overdue, 1);
  EXPECT_EQ(api_.Finish(be).verdict, GPUSHARE_VERDICT_OK);
  EXPECT_OK(gpushare_region_end(api_.runtime, region));
  EXPECT_EQ(api_.Finish(region).verdict, GPUSHARE_VERDICT_OK);
}

TEST_F(NeighboursTest, OpenQueriesOfOneAppRefuseNoneOfAnother) {
  int begun = 0;
  gpushare_query query = {0};
  while (gpushare_query_begin(queue_, 0, &query) == GPUSHARE_OK) ++begun;
  EXPECT_EQ(begun, 1024) << "as many as it has task slots";
  EXPECT_FAILS(gpushare_query_begin(queue_, 0, &query), GPUSHARE_RESOURCE_EXHAUSTED,
               "App 'forgetful' has 1024 queries");
  ASSERT_OK(gpushare_query_begin(api_.lc_queue, 0, &query));
  EXPECT_OK(gpushare_query_end(api_.runtime, query));
  int32_t count = 0;
  EXPECT_OK(gpushare_query_abandon(forgetful_, 0, &count));
  EXPECT_EQ(count, 1024);
}

TEST_F(NeighboursTest, QueriesWhoseValuesAreLostCanBeEnded) {
  const gpushare_query with_a_task = BeginQuery();
  const gpushare_task_options task = InQuery(with_a_task);
  for (int i = 0; i < 3; ++i) BeginQuery();
  EXPECT_OK(gpushare_poll_until(api_.runtime, api_.NowNs() + kMs));
  gpushare_ticket ticket = {0};
  ASSERT_OK(gpushare_submit_lc(queue_, &task, &ticket));
  int32_t count = -1;
  EXPECT_OK(gpushare_query_abandon(forgetful_, kS, &count));
  EXPECT_EQ(count, 0) << "none was idle for so long";
  EXPECT_OK(gpushare_query_abandon(forgetful_, kMs, &count));
  EXPECT_EQ(count, 3) << "one has a task";
  EXPECT_EQ(api_.Finish(ticket).verdict, GPUSHARE_VERDICT_OK);
  EXPECT_EQ(Stats().queries_open, 1);
  EXPECT_OK(gpushare_query_abandon(forgetful_, 0, nullptr));
  EXPECT_FAILS(gpushare_query_end(api_.runtime, with_a_task), GPUSHARE_INVALID_ARGUMENT, "ended");
  EXPECT_OK(gpushare_poll(api_.runtime, nullptr));
  EXPECT_EQ(Stats().queries_open, 0);
  EXPECT_EQ(Stats().latency.count, 0) << "abandoned queries are in no statistics";
  EXPECT_FAILS(gpushare_query_abandon(forgetful_, -1, &count), GPUSHARE_INVALID_ARGUMENT,
               "idle_ns");
}

// One tenant registers and releases more kernels than a runtime holds; then others register theirs.
TEST_F(NeighboursTest, AReleasedKernelGivesItsNameAndItsPlaceBack) {
  gpushare_simulation_record record = GPUSHARE_SIMULATION_RECORD_INIT;
  gpushare_kernel_options options = GPUSHARE_KERNEL_OPTIONS_INIT;
  options.simulation = &record;
  options.evictable = 1;
  gpushare_task_options task = GPUSHARE_TASK_OPTIONS_INIT;
  task.block_tasks = 1000;
  double took_ns[2] = {0, 0};
  for (int i = 0; i < 1100; ++i) {
    record.block_task_ns = i % 2 == 0 ? 20 * kUs : 40 * kUs;
    const std::string name = i < 50 ? "again" : "junk" + std::to_string(i);
    options.name = name.c_str();
    gpushare_kernel* kernel = nullptr;
    ASSERT_OK(gpushare_kernel_register(api_.runtime, &options, &kernel));
    EXPECT_FAILS(gpushare_kernel_register(api_.runtime, &options, &task.kernel),
                 GPUSHARE_ALREADY_EXISTS, "already");
    if (i < 50 || i > 1090) {
      task.kernel = kernel;
      const gpushare_ticket ticket = api_.Submit(task, false);
      ASSERT_OK(gpushare_kernel_release(kernel));  // before its task has run
      const gpushare_completion_record done = api_.Finish(ticket);
      EXPECT_EQ(done.verdict, GPUSHARE_VERDICT_OK);
      double& took = took_ns[i % 2];
      const auto takes = static_cast<double>(done.measured_ns);
      EXPECT_NEAR(takes, took == 0 ? takes : took, 0.3 * takes) << i << ": another kernel's code";
      took = takes;
    } else {
      ASSERT_OK(gpushare_kernel_release(kernel));
    }
  }
  EXPECT_LT(took_ns[0], took_ns[1]);
  options.name = "decode16";
  gpushare_kernel* other = nullptr;
  EXPECT_OK(gpushare_kernel_register(api_.runtime, &options, &other));
  EXPECT_OK(gpushare_kernel_release(other));
}

TEST_F(NeighboursTest, AReleasedFusedKernelGivesItsNameAndItsPlaceBack) {
  gpushare_simulation_record record = GPUSHARE_SIMULATION_RECORD_INIT;
  record.block_task_ns = 20 * kUs;
  gpushare_kernel_options part = GPUSHARE_KERNEL_OPTIONS_INIT;
  part.simulation = &record;
  part.evictable = 1;
  gpushare_fused_kernel_options fused = GPUSHARE_FUSED_KERNEL_OPTIONS_INIT;
  fused.tensor_blocks = fused.cuda_blocks = 1;
  gpushare_fused_kernel* handle = nullptr;
  for (int i = 0; i < 1100; ++i) {  // with parts of their own, that a retired fused kernel frees
    const std::string number = std::to_string(i);
    const std::string names[] = {"tensor" + number, "cuda" + number, "fused" + number};
    part.name = names[0].c_str();
    ASSERT_OK(gpushare_kernel_register(api_.runtime, &part, &fused.tensor_part)) << i;
    part.name = names[1].c_str();
    ASSERT_OK(gpushare_kernel_register(api_.runtime, &part, &fused.cuda_part)) << i;
    fused.name = i < 50 ? "again" : names[2].c_str();
    ASSERT_OK(gpushare_fused_kernel_register(api_.runtime, &fused, &handle)) << i;
    gpushare_fused_kernel* second = nullptr;
    EXPECT_FAILS(gpushare_fused_kernel_register(api_.runtime, &fused, &second),
                 GPUSHARE_ALREADY_EXISTS, "already");
    if (i % 100 == 0) {
      EXPECT_OK(gpushare_poll(api_.runtime, nullptr));
    }
    ASSERT_OK(gpushare_fused_kernel_release(handle));
    ASSERT_OK(gpushare_kernel_release(fused.tensor_part));
    ASSERT_OK(gpushare_kernel_release(fused.cuda_part));
  }
  EXPECT_EQ(api_.Finish(api_.Submit(api_.BeTask(), false)).verdict, GPUSHARE_VERDICT_OK);
}

TEST_F(NeighboursTest, AKernelWithAPendingTaskKeepsItsPlace) {
  gpushare_simulation_record record = GPUSHARE_SIMULATION_RECORD_INIT;
  gpushare_kernel_options options = GPUSHARE_KERNEL_OPTIONS_INIT;
  options.simulation = &record;
  options.name = "mine";
  gpushare_ticket tickets[2] = {};
  for (int i = 0; i < 2; ++i) {
    record.block_task_ns = (i + 1) * 20 * kUs;
    gpushare_kernel* kernel = nullptr;
    ASSERT_OK(gpushare_kernel_register(api_.runtime, &options, &kernel));
    gpushare_task_options task = GPUSHARE_TASK_OPTIONS_INIT;
    task.kernel = kernel;
    task.block_tasks = 1000;
    tickets[i] = api_.Submit(task, false);
    ASSERT_OK(gpushare_kernel_release(kernel));
  }
  const gpushare_completion_record first = api_.Finish(tickets[0]);
  const gpushare_completion_record second = api_.Finish(tickets[1]);
  EXPECT_EQ(first.verdict, GPUSHARE_VERDICT_OK);
  EXPECT_EQ(second.verdict, GPUSHARE_VERDICT_OK);
  EXPECT_LT(3 * first.measured_ns, 2 * second.measured_ns);
}

TEST_F(NeighboursTest, AnIdleTimeoutHasALeastValue) {
  gpushare_app_options options = AppOptionsOf(GPUSHARE_CLASS_LATENCY_CRITICAL, "hasty");
  gpushare_app* app = nullptr;
  for (const int64_t bad : {int64_t{1}, int64_t{-1}, kMs - 1}) {
    options.idle_timeout_ns = bad;
    EXPECT_FAILS(gpushare_app_create(api_.runtime, &options, &app), GPUSHARE_INVALID_ARGUMENT,
                 "idle timeout");
  }
}

}  // namespace
}  // namespace gpushare_test
