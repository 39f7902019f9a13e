// adaptive: BE workers that stay beside the LC work of apps that promise a target alone.

#include <gtest/gtest.h>

#include "src/core/base/tuning.h"
#include "tests/core/policies/snapshot_builder.h"

namespace gpushare::core::testing {
namespace {

constexpr int32_t kSms = 132;

// A service of 1 ms queries with a target of 10 ms and a p99 alone of 3 ms, and one BE kernel: with
// two of its eight workers on each SM LC has 0.8 of its speed, and BE 0.4.
class LcOverlapTest : public ::testing::Test {
 protected:
  LcOverlapTest() {
    const int32_t lc_kernel = builder.AddKernel(40 * kUs);
    lc_row = builder.AddOverlapRow(lc_kernel);
    be_row = builder.AddOverlapRow(kernel);
    app().promise.p99_alone_ns = 3 * kMs;
    app().main_kernel = {static_cast<uint32_t>(lc_kernel + 1)};
    SetSpeeds(0.8F, 0.4F);
  }
  LcAppView& app() { return builder.lc_apps[static_cast<size_t>(lc)]; }
  void SetSpeeds(float lc_speed, float be_speed, float error = 0) {
    builder.CoSchedule(be_row, lc_row, 0) = {
        {2, 6}, {be_speed, lc_speed}, error, 1 - 1 / (lc_speed + be_speed)};
  }
  QueryView& AddQuery(int64_t left_ns) {
    const int32_t index = builder.AddQuery(lc, 0);
    QueryView& query = builder.queries[static_cast<size_t>(index)];
    query.solo_ns = 1 * kMs;
    query.deadline_ns = builder.snapshot.now_ns + left_ns;
    return query;
  }
  HeadView& AddHead(int64_t duration_ns = 8 * kMs) {
    HeadView& head = builder.AddBeHead(be, kernel, duration_ns);
    head.overlap_index = be_row;
    head.blocks_left = 200'000;
    return head;
  }
  RunningView& AddRunning(int32_t workers_per_sm) {
    RunningView& running = builder.AddRunningBe(
        be, kernel, 8 * kMs, {{kWholeDevice, Form::kWorkers, false, workers_per_sm * kSms}});
    running.task.overlap_index = be_row;
    running.task.blocks_left = 200'000;
    return running;
  }

  SnapshotBuilder builder{{}};  // without splits
  int32_t lc = builder.AddLcAppWithTarget(0.5, 1 * kMs, 10 * kMs);
  int32_t be = builder.AddBeApp();
  int32_t kernel = builder.AddKernel(40 * kUs);
  int32_t lc_row = -1;
  int32_t be_row = -1;
};

TEST_F(LcOverlapTest, AQueryTakesTheWorkersThatAreTooManyAndTheRestStays) {
  const RunningView& running = AddRunning(8);
  AddQuery(9 * kMs);
  Plan plan = PlanOf("adaptive", builder);
  ASSERT_EQ(plan.evictions.size(), 1) << Describe(plan);
  EXPECT_EQ(plan.evictions[0].task, running.task.task);
  EXPECT_EQ(plan.evictions[0].workers_to_keep, 2 * kSms);
  EXPECT_EQ(plan.evictions[0].reason, Reason::kEvictForLc);
  EXPECT_FALSE(plan.routes[0].evict_overlapping);
  EXPECT_TRUE(plan.routes[0].fast_path);
  plan = PlanOf("adaptive:apart", builder);
  ASSERT_EQ(plan.evictions.size(), 1);
  EXPECT_EQ(plan.evictions[0].workers_to_keep, 0);
  EXPECT_TRUE(plan.routes[0].evict_overlapping);
}

TEST_F(LcOverlapTest, WorkersThatAreFewEnoughAreLeftAlone) {
  AddRunning(2);
  AddQuery(9 * kMs);
  const Plan plan = PlanOf("adaptive", builder);
  EXPECT_EQ(plan.evictions.size(), 0) << Describe(plan);
  EXPECT_EQ(plan.launches.size(), 0);
}

TEST_F(LcOverlapTest, BesideAnActiveQueryAHeadStartsWithTheWorkersThatMayStay) {
  const HeadView& head = AddHead();
  AddQuery(9 * kMs);
  const Plan plan = PlanOf("adaptive", builder);
  ASSERT_EQ(plan.launches.size(), 1) << Describe(plan);
  EXPECT_EQ(plan.launches[0].task, head.task);
  EXPECT_EQ(plan.launches[0].workers, 2 * kSms);
  EXPECT_EQ(plan.launches[0].reason, Reason::kCoResident);
  EXPECT_EQ(FindHold(plan, head), nullptr);
}

TEST_F(LcOverlapTest, OneTaskIsBesideAQueryAtATime) {
  const RunningView& first = AddRunning(2);
  const RunningView& second = AddRunning(2);
  const HeadView& head = AddHead();
  AddQuery(9 * kMs);
  const Plan plan = PlanOf("adaptive", builder);
  EXPECT_EQ(FindEviction(plan, first.task, kWholeDevice), nullptr) << Describe(plan);
  ASSERT_NE(FindEviction(plan, second.task, kWholeDevice), nullptr);
  EXPECT_EQ(FindEviction(plan, second.task, kWholeDevice)->workers_to_keep, 0);
  ASSERT_NE(FindHold(plan, head), nullptr);
  EXPECT_EQ(FindHold(plan, head)->reason, Reason::kHoldLcActive);
}

// Two queries of 1 ms take 2.5 ms at 0.8, and an eviction and the slack 0.09 ms more.
TEST_F(LcOverlapTest, AQueryThatWouldBeLateEvictsAllWorkers) {
  AddRunning(2);
  AddQuery(9 * kMs);
  QueryView& second = AddQuery(2'600 * kUs);
  EXPECT_EQ(PlanOf("adaptive", builder).evictions.size(), 0);
  second.deadline_ns = builder.snapshot.now_ns + 2'580 * kUs;
  const Plan plan = PlanOf("adaptive", builder);
  ASSERT_EQ(plan.evictions.size(), 1) << Describe(plan);
  EXPECT_EQ(plan.evictions[0].workers_to_keep, 0);
  builder.queries[0].done_ns = 100 * kUs;
  EXPECT_EQ(PlanOf("adaptive", builder).evictions.size(), 0) << "less is left to do";
}

// Six queries take 7.5 ms at 0.8: with the p99 of 3 ms behind them the target is lost.
TEST_F(LcOverlapTest, ABacklogBehindWhichNoQueryWouldKeepItsTargetEvictsAllWorkers) {
  AddRunning(2);
  for (int i = 0; i < 5; ++i) AddQuery(9 * kMs);
  EXPECT_EQ(PlanOf("adaptive", builder).evictions.size(), 0);
  AddQuery(9 * kMs);
  const Plan plan = PlanOf("adaptive", builder);
  ASSERT_EQ(plan.evictions.size(), 1) << Describe(plan);
  EXPECT_EQ(plan.evictions[0].workers_to_keep, 0);
}

TEST_F(LcOverlapTest, WithoutAGainBeyondTheErrorBarBeIsEvicted) {
  AddRunning(2);
  AddQuery(9 * kMs);
  SetSpeeds(0.8F, 0.4F, 0.1F);  // (0.36 - 0.28) / 0.72
  EXPECT_EQ(PlanOf("adaptive", builder).evictions.size(), 0);
  SetSpeeds(0.8F, 0.4F, 0.14F);
  EXPECT_EQ(PlanOf("adaptive", builder).evictions.size(), 1);
}

TEST_F(LcOverlapTest, AnyPromiseButATargetForbidsIt) {
  AddRunning(2);
  AddQuery(9 * kMs);
  app().promise.p99_bound = 1.5;
  EXPECT_EQ(PlanOf("adaptive", builder).evictions.size(), 1);
  app().promise.p99_bound = 0;
  app().promise.p50_bound = 1.5;
  EXPECT_EQ(PlanOf("adaptive", builder).evictions.size(), 1);
  app().promise.p50_bound = 0;
  EXPECT_EQ(PlanOf("adaptive", builder).evictions.size(), 0);
  builder.AddLcApp(0.1, 1 * kMs, 3 * kMs, 1.05);
  EXPECT_EQ(PlanOf("adaptive", builder).evictions.size(), 1) << "of another app";
  builder.lc_apps.back().load = 0;
  EXPECT_EQ(PlanOf("adaptive", builder).evictions.size(), 0) << "it has never sent a query";
}

TEST_F(LcOverlapTest, AKernelThatTheTableDoesNotHaveForbidsIt) {
  RunningView& running = AddRunning(2);
  AddQuery(9 * kMs);
  running.task.overlap_index = -1;
  EXPECT_EQ(PlanOf("adaptive", builder).evictions.size(), 1);
  running.task.overlap_index = be_row;
  app().main_kernel = {77};
  EXPECT_EQ(PlanOf("adaptive", builder).evictions.size(), 1);
}

// It ran longer than 1.25 ms, which is what the table says for all of it.
TEST_F(LcOverlapTest, AQueryThatIsSlowedMoreThanPredictedEvictsAllWorkers) {
  AddRunning(2);
  QueryView& query = AddQuery(9 * kMs);
  query.done_ns = 1'249 * kUs;
  EXPECT_EQ(PlanOf("adaptive", builder).evictions.size(), 0);
  query.done_ns = 1'251 * kUs;
  const Plan plan = PlanOf("adaptive", builder);
  ASSERT_EQ(plan.evictions.size(), 1) << Describe(plan);
  EXPECT_EQ(plan.evictions[0].workers_to_keep, 0);
}

// 10 ms less 1.25 ms of work, 3 ms of the p99, 0.04 of the eviction and 0.05 of slack.
TEST_F(LcOverlapTest, ItLooksAgainWhenTheSlackIsSpent) {
  AddRunning(2);
  AddQuery(9 * kMs);
  const Plan plan = PlanOf("adaptive", builder);
  EXPECT_EQ(plan.replan_at_ns, builder.snapshot.now_ns + 5'660 * kUs);
}

// A ratio is a share of the kernel with the lower row, so it means other workers beside each app.
TEST_F(LcOverlapTest, TwoAppsForWhichARatioMeansOtherWorkersForbidIt) {
  AddRunning(2);
  AddQuery(9 * kMs);
  const int32_t second_kernel = builder.AddKernel(40 * kUs);
  const int32_t second_row = builder.AddOverlapRow(second_kernel);
  const int32_t second = builder.AddLcAppWithTarget(0.1, 1 * kMs, 10 * kMs);
  LcAppView& view = builder.lc_apps[static_cast<size_t>(second)];
  view.promise.p99_alone_ns = 3 * kMs;
  view.main_kernel = {static_cast<uint32_t>(second_kernel + 1)};
  CoScheduleOption& option = builder.CoSchedule(second_row, be_row, 0);
  option = {{6, 2}, {0.8F, 0.4F}, 0, 1 - 1 / 1.2F};
  EXPECT_EQ(PlanOf("adaptive", builder).evictions.size(), 0);
  option.workers_per_sm = {2, 6};
  EXPECT_EQ(PlanOf("adaptive", builder).evictions.size(), 1);
}

TEST_F(LcOverlapTest, WorkWithoutARowKeepsTheFastPathsEviction) {
  AddRunning(2);
  AddQuery(9 * kMs);
  builder.AddBeTask(be, TaskKind::kOpaque, 1 * kMs);
  EXPECT_TRUE(PlanOf("adaptive", builder).routes[0].evict_overlapping);
}

// At 0.8 a load of 0.74 would be 0.93 of the time, and 0.05 more is beyond what a queue stands.
TEST_F(LcOverlapTest, AHighLoadForbidsIt) {
  AddRunning(2);
  AddQuery(9 * kMs);
  app().load = 0.71;
  EXPECT_EQ(PlanOf("adaptive", builder).evictions.size(), 0);
  app().load = 0.74;
  EXPECT_EQ(PlanOf("adaptive", builder).evictions.size(), 1);
}

// 0.5 + 0.5 x (0.4 - 0.2) / 0.8.
TEST(LcOverlapChoiceTest, ItIsChosenWhereItBeatsTheBestSplit) {
  SnapshotBuilder builder({84});
  const int32_t lc = builder.AddLcAppWithTarget(0.5, 1 * kMs, 10 * kMs);
  const int32_t be = builder.AddBeApp();
  const int32_t lc_kernel = builder.AddKernel(40 * kUs);
  const int32_t kernel = builder.AddKernel(40 * kUs);
  builder.lc_apps[0].promise.p99_alone_ns = 3 * kMs;
  builder.lc_apps[0].main_kernel = {static_cast<uint32_t>(lc_kernel + 1)};
  const int32_t lc_row = builder.AddOverlapRow(lc_kernel);
  const int32_t be_row = builder.AddOverlapRow(kernel);
  builder.CoSchedule(be_row, lc_row, 0) = {{2, 6}, {0.4F, 0.8F}, 0, 1 - 1 / 1.2F};
  builder.AddBeHead(be, kernel, 8 * kMs).overlap_index = be_row;
  PairOption& pair = builder.Pair(lc, kernel, 84);
  pair = {0.9F, 0.95F, 0.45F, 0.6F};
  const Plan split = PlanOf("adaptive", builder);
  EXPECT_EQ(split.choice.chosen, 84) << Describe(split);
  pair = {0.9F, 0.95F, 0.27F, 0.6F};
  const Plan shared = PlanOf("adaptive", builder);
  EXPECT_EQ(shared.choice.chosen, 132) << Describe(shared);
  EXPECT_EQ(shared.choice.runner_up, 84);
  EXPECT_NEAR(static_cast<double>(shared.choice.value), 0.625e6, 0.01e6);
  EXPECT_EQ(shared.routes[0].place, kWholeDevice);
}

}  // namespace
}  // namespace gpushare::core::testing
