// Who waits for whom, in virtual time: a flood of BE work beside LC, an LC task that waits for BE
// work, BE work beside a steady LC load, and the states in which BE waits, which it can read.

#include <algorithm>
#include <string>

#include "tests/faults/flight.h"

namespace gpushare_test {
namespace {

constexpr int64_t kPeriodNs = 2 * kMs;  // a query is 0.67 ms alone
constexpr int kQueries = 400;

class ProgressTest : public ::testing::Test {
 protected:
  void Open(const char* policy = "adaptive") {
    api_.opening.profile_path = GPUSHARE_SMALL_PROFILE;
    api_.Open({"sim", GPUSHARE_DRIVE_POLL}, nullptr, policy);
    gpushare_app_options options = AppOptionsOf(GPUSHARE_CLASS_LATENCY_CRITICAL, "bounded");
    options.p99_bound = 1.05;
    ASSERT_OK(gpushare_app_create(api_.runtime, &options, &app_));
    ASSERT_OK(gpushare_queue_create(app_, &queue_));
  }
  void TearDown() override {
    EXPECT_OK(gpushare_runtime_shutdown(api_.runtime, api_.Deadline()));
    EXPECT_OK(gpushare_queue_release(queue_));
    EXPECT_OK(gpushare_app_release(app_));
    api_.Close();
  }

  void RunQuery() {
    const gpushare_task_options task = api_.LcTask();
    gpushare_ticket ticket = {0};
    ASSERT_OK(gpushare_submit_lc(queue_, &task, &ticket));
    EXPECT_EQ(api_.Finish(ticket).verdict, GPUSHARE_VERDICT_OK);
  }

  // Queries at a fixed rate. `between` runs before each. The p99 of their latencies.
  template <class Function>
  int64_t P99OfQueries(Function&& between) {
    Flight flight;
    for (int i = 0; i < kQueries; ++i) {
      between();
      EXPECT_TRUE(flight.Submit(queue_, api_.LcTask(), true));
      EXPECT_OK(gpushare_poll_until(api_.runtime, api_.NowNs() + kPeriodNs));
    }
    std::vector<int64_t> latencies_ns;
    EXPECT_EQ(flight.ExpectOnce()[GPUSHARE_VERDICT_OK], kQueries);
    for (size_t i = 0; i < flight.size(); ++i) {
      latencies_ns.push_back(flight.record(i).complete_ns - flight.record(i).submit_ns);
    }
    std::sort(latencies_ns.begin(), latencies_ns.end());
    return latencies_ns[latencies_ns.size() * 99 / 100];
  }

  Api api_;
  gpushare_app* app_ = nullptr;
  gpushare_queue* queue_ = nullptr;
};

TEST_F(ProgressTest, AFloodOfBeWorkLeavesLcItsP99) {
  Open();
  const int64_t alone_ns = P99OfQueries([] {});
  const auto flood = [&] {
    const gpushare_task_options task = api_.BeTask(20'000);
    gpushare_status status = GPUSHARE_OK;
    while (status == GPUSHARE_OK) status = gpushare_submit_be(api_.be_queue, &task, nullptr);
    EXPECT_EQ(status, GPUSHARE_RESOURCE_EXHAUSTED) << gpushare_last_error_message();
  };
  const int64_t flooded_ns = P99OfQueries(flood);
  EXPECT_LE(static_cast<double>(flooded_ns), 1.05 * static_cast<double>(alone_ns));
  EXPECT_EQ(Api::AppStats(api_.be_app).rejected, kQueries);  // the BE app was full all the time
  EXPECT_GT(Api::AppStats(api_.be_app).completed, 0);
}

// The inversion is bounded by the BE work before the one that LC waits for.
TEST_F(ProgressTest, AnLcTaskThatWaitsForBeWorkRunsOnceThatIsDone) {
  for (const char* const policy : {"adaptive", "smguard", "priority", "fifo"}) {
    SCOPED_TRACE(policy);
    if (api_.runtime != nullptr) TearDown();
    Open(policy);
    RunQuery();  // from here on the library knows what a query takes
    for (int i = 0; i < 5; ++i) {
      const gpushare_task_options before = api_.BeTask(50'000);
      ASSERT_OK(gpushare_submit_be(api_.be_queue, &before, nullptr));
    }
    const gpushare_ticket awaited = api_.Submit(api_.BeTask(50'000), false);
    gpushare_task_options dependant = api_.LcTask();
    dependant.wait_tickets = &awaited;
    dependant.wait_ticket_count = 1;
    gpushare_ticket ticket = {0};
    ASSERT_OK(gpushare_submit_lc(queue_, &dependant, &ticket));
    const gpushare_completion_record lc = api_.Finish(ticket);
    const gpushare_completion_record be = api_.Finish(awaited);
    EXPECT_EQ(lc.verdict, GPUSHARE_VERDICT_OK);
    EXPECT_EQ(be.verdict, GPUSHARE_VERDICT_OK);
    EXPECT_LT(lc.complete_ns - be.complete_ns, 2 * kMs);
  }
}

// Time in which a query only waits for a ticket is no load: the BE work that it waits for would be
// held for that load. The app states a bound, and nothing is known of it yet.
TEST_F(ProgressTest, ALoadOfQueriesThatOnlyWaitDoesNotHoldTheBeWorkTheyWaitFor) {
  Open();
  EXPECT_OK(gpushare_queue_release(api_.lc_queue));
  EXPECT_OK(gpushare_app_release(api_.lc_app));  // the app without a bound
  for (int i = 0; i < 5; ++i) {
    const gpushare_task_options before = api_.BeTask(50'000);
    ASSERT_OK(gpushare_submit_be(api_.be_queue, &before, nullptr));
  }
  const gpushare_ticket awaited = api_.Submit(api_.BeTask(50'000), false);
  gpushare_task_options dependant = api_.LcTask();
  dependant.wait_tickets = &awaited;
  dependant.wait_ticket_count = 1;
  gpushare_ticket ticket = {0};
  ASSERT_OK(gpushare_submit_lc(queue_, &dependant, &ticket));
  EXPECT_EQ(api_.Finish(ticket).verdict, GPUSHARE_VERDICT_OK);
  EXPECT_EQ(api_.Finish(awaited).verdict, GPUSHARE_VERDICT_OK);
  const gpushare_app_options service = AppOptionsOf(GPUSHARE_CLASS_LATENCY_CRITICAL, "service");
  ASSERT_OK(gpushare_app_create(api_.runtime, &service, &api_.lc_app));  // for Close
  ASSERT_OK(gpushare_queue_create(api_.lc_app, &api_.lc_queue));
}

TEST_F(ProgressTest, BeWorkAdvancesBesideASteadyLcLoad) {
  Open();
  const auto refill = [&] {
    const gpushare_task_options task = api_.BeTask(20'000);
    while (gpushare_submit_be(api_.be_queue, &task, nullptr) == GPUSHARE_OK) {
    }
  };
  P99OfQueries(refill);
  const gpushare_app_stats stats = Api::AppStats(api_.be_app);
  // LC uses a third of the time: BE gets at least a third of it.
  EXPECT_GT(stats.work_ns, kQueries * kPeriodNs / 3);
}

// While a query is open, BE work that cannot leave waits; it runs once the query has ended, and its
// record has the reason.
TEST_F(ProgressTest, BeWorkThatWaitsForLcRunsAfterItAndSaysWhy) {
  Open("adaptive:evict");
  gpushare_query query = {0};
  ASSERT_OK(gpushare_query_begin(queue_, 0, &query));
  const gpushare_ticket ticket = api_.Submit(api_.BeTask(1000), false);
  ASSERT_OK(gpushare_poll_until(api_.runtime, api_.NowNs() + 5 * kMs));
  gpushare_bool complete = 1;
  ASSERT_OK(gpushare_ticket_poll(api_.runtime, ticket, &complete));
  EXPECT_EQ(complete, 0);
  ASSERT_OK(gpushare_query_end(api_.runtime, query));
  const gpushare_completion_record record = api_.Finish(ticket);
  EXPECT_EQ(record.verdict, GPUSHARE_VERDICT_OK);
  EXPECT_NE(record.hold_reason, GPUSHARE_REASON_NONE);
}

}  // namespace
}  // namespace gpushare_test
