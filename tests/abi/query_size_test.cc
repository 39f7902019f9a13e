// Queries whose application states the size of their inputs: what a whole query takes is learned
// from those that ran alone, and a policy sees it before the query's tasks are there.

#include <gpushare/gpushare_policy.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string>

#include "tests/abi/api_fixture.h"

namespace gpushare_test {
namespace {

constexpr int64_t kRoundNs = 10 * kUs;
constexpr int32_t kSms = 132;
constexpr int kTasks = 3;  // of a query

// Launches everything, and keeps the most that a plan showed of a query's duration.
struct Seen {
  int64_t solo_ns = 0;
};

void PlanAndSee(void* user, const gpushare_snapshot* snapshot, gpushare_plan* plan) {
  Seen& seen = *static_cast<Seen*>(user);
  for (uint32_t i = 0; i < snapshot->query_count; ++i) {
    const gpushare_query_view* const query =
        GPUSHARE_AT(gpushare_query_view, snapshot->queries, snapshot->query_stride, i);
    seen.solo_ns = std::max(seen.solo_ns, query->solo_ns);
  }
  for (uint32_t i = 0; i < snapshot->head_count; ++i) {
    const gpushare_head_view* const head =
        GPUSHARE_AT(gpushare_head_view, snapshot->heads, snapshot->head_stride, i);
    gpushare_planned_launch launch = {};
    launch.task = head->task;
    launch.form = GPUSHARE_FORM_ORIGINAL;
    launch.lane_class =
        head->app_class == GPUSHARE_CLASS_BEST_EFFORT ? GPUSHARE_LANE_BE : GPUSHARE_LANE_LC;
    plan->launches[plan->launch_count++] = launch;
  }
}

class QuerySizeTest : public testing::Test {
 protected:
  void Open() {
    api_.Open({"sim", GPUSHARE_DRIVE_POLL});
    gpushare_simulation_record record = GPUSHARE_SIMULATION_RECORD_INIT;
    record.block_task_ns = kRoundNs;
    gpushare_kernel_options options = GPUSHARE_KERNEL_OPTIONS_INIT;
    options.name = "layer";
    options.workers_per_sm_max = 1;
    options.simulation = &record;
    ASSERT_OK(gpushare_kernel_register(api_.runtime, &options, &layer_));
  }
  void TearDown() override {
    EXPECT_OK(gpushare_kernel_release(layer_));
    api_.Close();
  }

  // A query of three layers of `size` rounds each. Size 0: not stated.
  void Run(double size, int64_t rounds) {
    gpushare_query_options options = GPUSHARE_QUERY_OPTIONS_INIT;
    options.input_size = size;
    gpushare_query query = {0};
    ASSERT_OK(gpushare_query_begin_with(api_.lc_queue, &options, &query));
    for (int i = 0; i < kTasks; ++i) {
      gpushare_task_options task = GPUSHARE_TASK_OPTIONS_INIT;
      task.kernel = layer_;
      task.block_tasks = rounds * kSms;
      task.query = query;
      EXPECT_EQ(api_.Finish(api_.Submit(task, true)).verdict, GPUSHARE_VERDICT_OK);
    }
    ASSERT_OK(gpushare_query_end(api_.runtime, query));
  }
  void RunSizes() {
    for (int i = 0; i < 6; ++i) {
      for (const int64_t size : {2, 4, 8, 16, 32}) Run(static_cast<double>(size), size);
    }
  }

  // What a policy sees while the query's first task runs.
  int64_t SeenOf(double size, int64_t rounds) {
    Seen seen;
    gpushare_policy_table table = GPUSHARE_POLICY_TABLE_INIT;
    table.name = "see";
    table.make_plan = PlanAndSee;
    table.user = &seen;
    EXPECT_OK(gpushare_set_user_policy(api_.runtime, &table));
    gpushare_query_options options = GPUSHARE_QUERY_OPTIONS_INIT;
    options.input_size = size;
    gpushare_query query = {0};
    EXPECT_OK(gpushare_query_begin_with(api_.lc_queue, &options, &query));
    gpushare_task_options task = GPUSHARE_TASK_OPTIONS_INIT;
    task.kernel = layer_;
    task.block_tasks = rounds * kSms;
    task.query = query;
    api_.Finish(api_.Submit(task, true));
    EXPECT_OK(gpushare_query_end(api_.runtime, query));
    EXPECT_OK(gpushare_set_policy(api_.runtime, "adaptive:evict"));
    return seen.solo_ns;
  }

  gpushare_kernel* layer_ = nullptr;
  Api api_;
};

TEST_F(QuerySizeTest, TheDurationOfAWholeQueryFollowsFromItsSize) {
  Open();
  RunSizes();
  for (const int64_t size : {3, 12, 24}) {
    const auto whole = static_cast<double>(kTasks * size * kRoundNs);
    const auto seen = static_cast<double>(SeenOf(static_cast<double>(size), size));
    EXPECT_GT(seen, 0.95 * whole) << size;
    EXPECT_LT(seen, 1.3 * whole) << size;
  }
  // Without a size it is what the app's queries take on average, or what its tasks are known to.
  const auto mean = static_cast<double>(SeenOf(0, 3));
  EXPECT_GT(mean, 2.0 * kTasks * 3 * kRoundNs);
}

TEST_F(QuerySizeTest, AProfileKeepsIt) {
  Open();
  RunSizes();
  std::string path = (std::filesystem::temp_directory_path() / "gpushare_size_XXXXXX").string();
  const int file = mkstemp(path.data());
  ASSERT_GE(file, 0);
  close(file);
  ASSERT_OK(gpushare_profile_save(api_.runtime, path.c_str()));
  TearDown();
  api_ = Api();
  api_.opening.profile_path = path.c_str();
  Open();
  const auto whole = static_cast<double>(kTasks * 12 * kRoundNs);
  EXPECT_NEAR(static_cast<double>(SeenOf(12, 12)), 1.12 * whole, 0.17 * whole);
  std::filesystem::remove(path);
}

// Beside other work a query takes longer, which says nothing about its size.
TEST_F(QuerySizeTest, QueriesBesideOtherWorkTeachNothing) {
  Open();
  Seen seen;
  gpushare_policy_table table = GPUSHARE_POLICY_TABLE_INIT;
  table.name = "all";
  table.make_plan = PlanAndSee;
  table.user = &seen;
  ASSERT_OK(gpushare_set_user_policy(api_.runtime, &table));
  const gpushare_ticket be = api_.Submit(api_.BeTask(4'000'000), false);
  Run(64, 1);
  Run(64, 1);
  Run(64, 1);
  api_.Finish(be);
  EXPECT_NEAR(static_cast<double>(SeenOf(64, 1)), kTasks * kRoundNs, 0.01 * kRoundNs)
      << "the mean of the app's queries, by what their tasks take alone";
}

TEST_F(QuerySizeTest, AQueryOfNoUsableSizeIsRefused) {
  Open();
  gpushare_query query = {7};
  for (const double bad : {-1.0, 1e13, std::numeric_limits<double>::quiet_NaN()}) {
    gpushare_query_options options = GPUSHARE_QUERY_OPTIONS_INIT;
    options.input_size = bad;
    EXPECT_FAILS(gpushare_query_begin_with(api_.lc_queue, &options, &query),
                 GPUSHARE_INVALID_ARGUMENT, "must lie between 0 and");
    EXPECT_EQ(query.value, 0u);
  }
  gpushare_query_options options = GPUSHARE_QUERY_OPTIONS_INIT;
  options.reserved = 1;
  EXPECT_FAILS(gpushare_query_begin_with(api_.lc_queue, &options, &query), GPUSHARE_UNIMPLEMENTED,
               "reserved");
}

}  // namespace
}  // namespace gpushare_test
