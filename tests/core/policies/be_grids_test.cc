// adaptive: BE grids beside the queries of apps that promise a target alone.

#include <gtest/gtest.h>

#include <vector>

#include "src/core/policies/adaptive/arrangement/tuning.h"
#include "tests/core/policies/snapshot_builder.h"

namespace gpushare::core::testing {
namespace {

// A service of 1 ms queries at load 0.5 with a target of 10 ms and a p99 alone of 4 ms, so that a
// query that comes has time for 6 ms; and a BE kernel with tasks of 1 ms.
class BeGridsTest : public ::testing::Test {
 protected:
  BeGridsTest() {
    app().promise.p99_alone_ns = 4 * kMs;
    app().blocking_budget_ns = 6 * kMs;
  }
  LcAppView& app() { return builder.lc_apps[static_cast<size_t>(lc)]; }
  HeadView& AddHead(int64_t duration_ns = kMs) {
    return builder.AddBeHead(be, kernel, duration_ns);
  }

  SnapshotBuilder builder{{}};  // without splits
  int32_t lc = builder.AddLcAppWithTarget(0.5, 1 * kMs, 10 * kMs);
  int32_t be = builder.AddBeApp();
  int32_t kernel = builder.AddKernel(40 * kUs);
};

TEST_F(BeGridsTest, BesideAQueryThatHasTimeAGridStartsOnAPlainLane) {
  const HeadView& head = AddHead();
  builder.AddQuery(lc, 5 * kMs);
  Plan plan = PlanOf("adaptive", builder);
  const PlannedLaunch* launch = FindLaunch(plan, head);
  ASSERT_NE(launch, nullptr) << Describe(plan);
  EXPECT_EQ(launch->form, Form::kOriginal);
  EXPECT_EQ(launch->lane_class, LaneClass::kPlain) << "no gate holds it, and LC goes first";
  EXPECT_EQ(launch->place, kWholeDevice);
  EXPECT_EQ(launch->reason, Reason::kFitsHeadroom);
  EXPECT_EQ(plan.routes[0].lane_class, LaneClass::kLc);
  EXPECT_TRUE(plan.routes[0].evict_overlapping) << "of workers that are left";
  EXPECT_TRUE(IsHeld(PlanOf("adaptive:apart", builder), head, Reason::kHoldLcActive));
}

TEST_F(BeGridsTest, BetweenTwoQueriesAGridStartsToo) {
  const HeadView& head = AddHead();
  EXPECT_TRUE(IsLaunched(PlanOf("adaptive", builder), head, {.form = Form::kOriginal}))
      << "workers would leave for the query";
}

// A tenth of the target stays unused; the more queries are late, the more.
TEST_F(BeGridsTest, AHeadroomKeepsAReserve) {
  const HeadView& head = AddHead();
  const auto index = static_cast<size_t>(builder.AddQuery(lc, 2'001 * kUs));
  EXPECT_NE(FindLaunch(PlanOf("adaptive", builder), head), nullptr);
  builder.queries[index].headroom_ns = 1'999 * kUs;
  EXPECT_TRUE(IsHeld(PlanOf("adaptive", builder), head, Reason::kHoldHeadroom));
  builder.queries[index].headroom_ns = 2'999 * kUs;
  app().target_tail = 2;
  EXPECT_EQ(FindLaunch(PlanOf("adaptive", builder), head), nullptr);
  builder.queries[index].headroom_ns = 3'001 * kUs;
  EXPECT_NE(FindLaunch(PlanOf("adaptive", builder), head), nullptr);
}

// 10 ms less the p99 of 4 ms that a query may wait behind others.
TEST_F(BeGridsTest, AQueryThatComesFindsTimeForItsOwnQueue) {
  const HeadView& head = AddHead();
  builder.AddQuery(lc, 9 * kMs);
  builder.snapshot.queued_ns = 5 * kMs;
  EXPECT_NE(FindLaunch(PlanOf("adaptive", builder), head), nullptr);
  builder.snapshot.queued_ns = 5'001 * kUs;
  EXPECT_TRUE(IsHeld(PlanOf("adaptive", builder), head, Reason::kHoldQueuedTime, {}, 6 * kMs));
}

TEST_F(BeGridsTest, TwoAreOnTheDeviceAtATime) {
  AddHead();
  AddHead();
  const HeadView& third = AddHead();
  builder.AddQuery(lc, 9 * kMs);
  Plan plan = PlanOf("adaptive", builder);
  EXPECT_EQ(plan.launches.size(), 2) << Describe(plan);
  EXPECT_TRUE(IsHeld(plan, third, Reason::kHoldWindow));
  builder.AddRunningBe(be, kernel, kMs, {{kWholeDevice, Form::kOriginal}});
  plan = PlanOf("adaptive", builder);
  EXPECT_EQ(plan.launches.size(), 1) << Describe(plan);
}

// Only workers continue from the task's counter, and a query evicts them.
TEST_F(BeGridsTest, TheRestOfAnEvictedTaskRunsBetweenQueries) {
  HeadView& rest = AddHead();
  rest.resumed = true;
  Plan plan = PlanOf("adaptive", builder);
  EXPECT_TRUE(IsLaunched(plan, rest, {.form = Form::kWorkers, .lane_class = LaneClass::kBe}));
  builder.lc_apps[0].idle_since_ns = builder.snapshot.now_ns - 1'999;
  plan = PlanOf("adaptive", builder);
  ASSERT_TRUE(IsHeld(plan, rest, Reason::kHoldHysteresis));
  EXPECT_EQ(plan.replan_at_ns, builder.snapshot.now_ns + 1);
  const RunningView& workers =
      builder.AddRunningBe(be, kernel, kMs, {{kWholeDevice, Form::kWorkers}});
  builder.AddQuery(lc, 9 * kMs);
  plan = PlanOf("adaptive", builder);
  EXPECT_TRUE(IsHeld(plan, rest, Reason::kHoldLcActive));
  EXPECT_NE(FindEviction(plan, workers.task, kWholeDevice), nullptr);
}

// Segments of 40 ms in all; an eviction takes 0.4 ms.
class BeSegmentsTest : public BeGridsTest {
 protected:
  int32_t graph = builder.AddKernel(400 * kUs);
};

TEST_F(BeSegmentsTest, BesideAQueryThatHasTimeAGraphStartsInSegments) {
  const HeadView& head = builder.AddBeGraph(be, graph, 40 * kMs);
  const auto index = static_cast<size_t>(builder.AddQuery(lc, 401 * kUs));
  Plan plan = PlanOf("adaptive", builder);
  const PlannedLaunch* launch = FindLaunch(plan, head);
  ASSERT_NE(launch, nullptr) << Describe(plan);
  EXPECT_EQ(launch->form, Form::kSegments);
  EXPECT_EQ(launch->lane_class, LaneClass::kBe) << "that has an eviction word";
  EXPECT_FALSE(plan.routes[0].evict_overlapping) << "the next query does not evict them";
  EXPECT_EQ(plan.arrangement.segments, SegmentsRun::kBesideQueries);
  builder.queries[index].headroom_ns = 399 * kUs;
  EXPECT_TRUE(IsHeld(PlanOf("adaptive", builder), head, Reason::kHoldHeadroom));
}

// Segments leave in time. Where more queries are late than a p99 allows, they leave earlier.
TEST_F(BeSegmentsTest, SegmentsAloneNeedAReserveOnlyWhereManyQueriesAreLate) {
  const HeadView& head = builder.AddBeGraph(be, graph, 40 * kMs);
  const auto index = static_cast<size_t>(builder.AddQuery(lc, 1'399 * kUs));
  app().target_tail = 0.5;
  EXPECT_NE(FindLaunch(PlanOf("adaptive", builder), head), nullptr);
  app().target_tail = 2;
  EXPECT_EQ(FindLaunch(PlanOf("adaptive", builder), head), nullptr);
  builder.queries[index].headroom_ns = 1'401 * kUs;
  EXPECT_NE(FindLaunch(PlanOf("adaptive", builder), head), nullptr);
  app().target_tail = 1;
  builder.queries[index].headroom_ns = 1'399 * kUs;
  AddHead(100 * kUs);
  EXPECT_EQ(FindLaunch(PlanOf("adaptive", builder), head), nullptr) << "a grid does not leave";
}

TEST_F(BeSegmentsTest, RunningSegmentsLeaveWhenAHeadroomIsSpent) {
  const RunningView& running =
      builder.AddRunningGraph(be, graph, 40 * kMs, {kWholeDevice, Form::kSegments});
  const auto index = static_cast<size_t>(builder.AddQuery(lc, 3 * kMs));
  Plan plan = PlanOf("adaptive", builder);
  EXPECT_EQ(plan.evictions.size(), 0) << Describe(plan);
  EXPECT_EQ(plan.replan_at_ns, builder.snapshot.now_ns + 3 * kMs + 1);
  builder.queries[index].headroom_ns = -1 * kUs;
  plan = PlanOf("adaptive", builder);
  ASSERT_NE(FindEviction(plan, running.task, kWholeDevice), nullptr) << Describe(plan);
  EXPECT_EQ(PlanOf("adaptive:apart", builder).evictions.size(), 1);
}

// The T_q gate is that of one query: target less its own 1 ms.
TEST_F(BeSegmentsTest, SegmentsAloneMayStayBehindALongerQueue) {
  builder.AddRunningGraph(be, graph, 40 * kMs, {kWholeDevice, Form::kSegments});
  builder.AddQuery(lc, 9 * kMs);
  builder.snapshot.queued_ns = 8'999 * kUs;
  EXPECT_EQ(PlanOf("adaptive", builder).evictions.size(), 0);
  builder.snapshot.queued_ns = 9'001 * kUs;
  EXPECT_EQ(PlanOf("adaptive", builder).evictions.size(), 1);
  builder.snapshot.queued_ns = 8'999 * kUs;
  AddHead();
  EXPECT_EQ(PlanOf("adaptive", builder).evictions.size(), 1) << "a grid would not leave";
}

TEST_F(BeSegmentsTest, AQueryEvictsWorkersBesideThem) {
  const RunningView& segments =
      builder.AddRunningGraph(be, graph, 40 * kMs, {kWholeDevice, Form::kSegments});
  const RunningView& workers =
      builder.AddRunningBe(be, kernel, kMs, {{kWholeDevice, Form::kWorkers}});
  builder.AddQuery(lc, 9 * kMs);
  const Plan plan = PlanOf("adaptive", builder);
  EXPECT_NE(FindEviction(plan, workers.task, kWholeDevice), nullptr) << Describe(plan);
  EXPECT_EQ(FindEviction(plan, segments.task, kWholeDevice), nullptr);
}

TEST_F(BeGridsTest, WhereNothingCanBeEvictedWorkersBesideAQueryStay) {
  builder.AddRunningBe(be, kernel, kMs, {{kWholeDevice, Form::kWorkers}});
  builder.AddQuery(lc, 9 * kMs);
  EXPECT_EQ(PlanOf("adaptive", builder).evictions.size(), 1);
  builder.snapshot.eviction_available = false;
  const Plan plan = PlanOf("adaptive", builder);
  EXPECT_EQ(plan.evictions.size(), 0) << Describe(plan);
}

// 4.9 ms of the rest and 1.2 ms are more than 6 ms.
TEST_F(BeGridsTest, ARestCountsForTheGridsBehindIt) {
  HeadView& rest = AddHead(4'900 * kUs);
  rest.resumed = true;
  HeadView& head = AddHead(1'200 * kUs);
  EXPECT_TRUE(IsHeld(PlanOf("adaptive", builder), head, Reason::kHoldQueuedTime));
  head.remaining.duration_ns = kMs;
  EXPECT_EQ(PlanOf("adaptive", builder).launches.size(), 2);
}

class BeGridsForbiddenTest : public BeGridsTest {
 protected:
  BeGridsForbiddenTest() { builder.AddQuery(lc, 9 * kMs); }
  bool Starts() { return FindLaunch(PlanOf("adaptive", builder), head_) != nullptr; }
  HeadView& head_ = AddHead();
};

TEST_F(BeGridsForbiddenTest, ByAnyPromiseButATarget) {
  EXPECT_TRUE(Starts());
  app().promise.p99_bound = 2;
  EXPECT_FALSE(Starts());
  app().promise.p99_bound = 0;
  app().promise.p50_bound = 2;
  EXPECT_FALSE(Starts());
  app().promise.p50_bound = 0;
  builder.AddLcApp(0.1, kMs, 3 * kMs, 1.5);
  EXPECT_FALSE(Starts()) << "of another app";
  builder.lc_apps.back().load = 0;
  builder.lc_apps.back().blocking_budget_ns = kNever;
  EXPECT_TRUE(Starts()) << "an app that has never sent a query promises nothing yet";
  builder.AddLcAppWithTarget(0, kMs, 200 * kMs);
  builder.lc_apps.back().target_tail = 2;
  builder.lc_apps.back().blocking_budget_ns = kNever;
  EXPECT_TRUE(Starts()) << "nor is a tenth of its target kept";
}

TEST_F(BeGridsForbiddenTest, ByALoadAtWhichTheyGainLittle) {
  app().load = kGridLoadMin - 0.01;
  EXPECT_FALSE(Starts());
  app().load = kGridLoadMin;
  EXPECT_TRUE(Starts());
}

// 6 ms less the reserve.
TEST_F(BeGridsForbiddenTest, ByATaskThatIsTooLong) {
  head_.remaining.duration_ns = 5'001 * kUs;
  EXPECT_FALSE(Starts());
  head_.remaining.duration_ns = 4'999 * kUs;
  EXPECT_TRUE(Starts());
  head_.remaining.error_ns = 2 * kUs;
  EXPECT_FALSE(Starts());
}

TEST_F(BeGridsForbiddenTest, ByOpaqueWork) {
  HeadView& other = builder.AddBeTask(be, TaskKind::kOpaque, kMs);
  EXPECT_FALSE(Starts());
  other.kind = TaskKind::kLibrary;
  EXPECT_TRUE(Starts());
}

TEST_F(BeGridsForbiddenTest, ByAGraphThatLeavesTooLate) {
  HeadView& graph = builder.AddBeGraph(be, builder.AddKernel(200 * kUs), 40 * kMs);
  graph.eviction_p99_ns = 4'999 * kUs;
  EXPECT_TRUE(Starts());
  graph.eviction_p99_ns = 5'001 * kUs;
  EXPECT_FALSE(Starts());
  graph.eviction_p99_ns = kNever;
  graph.evictable = false;
  EXPECT_FALSE(Starts()) << "it runs whole, for 40 ms";
}

TEST_F(BeGridsForbiddenTest, ByWorkThatRunsAlready) {
  builder.AddRunningBe(be, kernel, kMs, {{kWholeDevice, Form::kOriginal}});
  EXPECT_TRUE(Starts());
  builder.running.back().task.remaining.duration_ns = 6 * kMs;
  EXPECT_FALSE(Starts());
  builder.running.back().task.remaining.duration_ns = kMs;
  builder.running.back().parts[0].launched_ns = builder.snapshot.now_ns - 5 * kMs;
  EXPECT_TRUE(Starts()) << "it waited for LC's blocks";
  builder.running.back().parts[0].form = Form::kWorkers;
  EXPECT_FALSE(Starts()) << "long workers do not become short by running";
}

TEST_F(BeGridsForbiddenTest, ByAReservationOrAQuota) {
  app().reserved_capsms = 32;
  EXPECT_FALSE(Starts());
  app().reserved_capsms = 0;
  builder.be_apps[0].quota_capsms = 16;
  EXPECT_FALSE(Starts());
}

// A service of 1 ms queries at load 0.5, and one split.
class BeGridsChoiceTest : public ::testing::Test {
 protected:
  BeGridsChoiceTest() { builder.lc_apps[0].promise.p99_alone_ns = 4 * kMs; }

  SnapshotBuilder builder{{84}};
  int32_t lc = builder.AddLcAppWithTarget(0.5, kMs, 10 * kMs);
  int32_t be = builder.AddBeApp();
};

// Whole 0.5, and 0.5 x 0.09 for the grids; the split gives the BE side's speed.
TEST_F(BeGridsChoiceTest, TheyAreChosenWhereTheyBeatTheBestSplit) {
  const int32_t kernel = builder.AddKernel(40 * kUs);
  builder.AddBeHead(be, kernel, kMs);
  PairOption& pair = builder.Pair(lc, kernel, 84);
  pair = {0.9F, 0.95F, 0.40F, 0.6F};
  const Plan split = PlanOf("adaptive", builder);
  EXPECT_EQ(split.choice.chosen, 84) << Describe(split);
  pair = {0.9F, 0.95F, 0.20F, 0.6F};
  const Plan grids = PlanOf("adaptive", builder);
  EXPECT_EQ(grids.choice.chosen, 132) << Describe(grids);
  EXPECT_NEAR(static_cast<double>(grids.choice.value), 0.5e6 + kGridGain * 0.5e6, 0.01e6);
  EXPECT_EQ(grids.arrangement.segments, SegmentsRun::kNone);
  ASSERT_EQ(grids.launches.size(), 1);
  EXPECT_EQ(grids.launches[0].form, Form::kOriginal);
  EXPECT_EQ(grids.routes[0].place, kWholeDevice);
  builder.heads.clear();
  builder.AddRunningBe(be, kernel, kMs, {{kWholeDevice, Form::kOriginal}});
  EXPECT_EQ(PlanOf("adaptive", builder).routes[0].place, kWholeDevice)
      << "while its queue's only task runs";
}

// Whole 0.5, and 0.5 x what was measured; the split gives 0.5 x 0.9 + 0.36 x 0.5, or so.
TEST_F(BeGridsChoiceTest, SegmentsAreChosenByTheirMeasuredGain) {
  const int32_t graph = builder.AddKernel(400 * kUs);
  HeadView& step = builder.AddBeGraph(be, graph, 40 * kMs);
  builder.Pair(lc, graph, 84) = {0.95F, 0.95F, 0.40F, 0.6F};
  step.segment_gain = 0.1;
  const Plan split = PlanOf("adaptive", builder);
  EXPECT_EQ(split.choice.chosen, 84) << Describe(split);
  EXPECT_EQ(split.arrangement.segments, SegmentsRun::kOnSplit);
  step.segment_gain = 0.7;
  const Plan beside = PlanOf("adaptive", builder);
  EXPECT_EQ(beside.choice.chosen, 132) << Describe(beside);
  EXPECT_NEAR(static_cast<double>(beside.choice.value), 0.85e6, 0.01e6);
  EXPECT_EQ(beside.arrangement.segments, SegmentsRun::kBesideQueries);
}

// The split is predicted to give 0.63; beside queries segments give 0.5 + 0.5 x 0.1.
TEST_F(BeGridsChoiceTest, ASplitIsWorthWhatSegmentsGainedOnOne) {
  const int32_t graph = builder.AddKernel(400 * kUs);
  HeadView& step = builder.AddBeGraph(be, graph, 40 * kMs);
  builder.Pair(lc, graph, 84) = {0.95F, 0.95F, 0.40F, 0.6F};
  step.segment_gain = 0.1;
  EXPECT_EQ(PlanOf("adaptive", builder).choice.chosen, 84);
  step.split_gain = -0.2;
  step.split_gain_known = 0.1;
  EXPECT_EQ(PlanOf("adaptive", builder).choice.chosen, 84) << "hardly known";
  step.split_gain_known = 0.9;
  const Plan beside = PlanOf("adaptive", builder);
  EXPECT_EQ(beside.choice.chosen, 132) << Describe(beside);
  EXPECT_EQ(beside.arrangement.segments, SegmentsRun::kBesideQueries);
  EXPECT_NEAR(static_cast<double>(beside.choice.runner_up_value), 0.42e6, 0.02e6);
  step.segment_gain = 0.4;
  step.split_gain = 0.8;
  EXPECT_EQ(PlanOf("adaptive", builder).choice.chosen, 84) << "it gives more than predicted";
}

// The split that is in force has a bonus.
TEST_F(BeGridsChoiceTest, ASplitInForceKeepsItsBonusWhenItIsMeasured) {
  const int32_t graph = builder.AddKernel(400 * kUs);
  builder.Pair(lc, graph, 84) = {0.95F, 0.95F, 0.40F, 0.6F};
  RunningView& step =
      builder.AddRunningGraph(be, graph, 40 * kMs, {builder.splits[0].be_place, Form::kSegments});
  builder.snapshot.in_force.split = 0;
  step.task.split_gain = 0.5;
  step.task.split_gain_known = 1;
  step.task.segment_gain = 0.5 + kLayoutHysteresis / 0.5 - 0.01;
  EXPECT_EQ(PlanOf("adaptive", builder).choice.chosen, 84);
  step.task.segment_gain = 0.5 + kLayoutHysteresis / 0.5 + 0.01;
  EXPECT_EQ(PlanOf("adaptive", builder).choice.chosen, 132);
}

// Under the split they have the whole device between queries, and a query has just come.
TEST_F(BeGridsChoiceTest, SegmentsThatLeaveTheWholeDeviceDoNotEndTheSplit) {
  const int32_t graph = builder.AddKernel(400 * kUs);
  builder.Pair(lc, graph, 84) = {0.95F, 0.95F, 0.40F, 0.6F};
  RunningView& step =
      builder.AddRunningGraph(be, graph, 40 * kMs, {kWholeDevice, Form::kSegments, true});
  builder.AddQuery(lc, 9 * kMs);
  step.task.split_gain = 0.5;
  step.task.split_gain_known = 1;
  step.task.segment_gain = 0.5 - 0.5 * kLayoutHysteresis / 0.5;  // less, and near a tie
  builder.snapshot.in_force = {.split = 0, .segments = SegmentsRun::kOnSplit};
  const Plan split = PlanOf("adaptive", builder);
  EXPECT_EQ(split.choice.chosen, 84) << Describe(split);
  EXPECT_EQ(split.arrangement.segments, SegmentsRun::kOnSplit)
      << "else its time to settle begins anew";
  EXPECT_EQ(split.routes[0].place, builder.splits[0].lc_place);
  builder.snapshot.in_force = {.segments = SegmentsRun::kBesideQueries};
  const Plan beside = PlanOf("adaptive", builder);
  EXPECT_EQ(beside.choice.chosen, 132) << Describe(beside);
  EXPECT_EQ(beside.arrangement.segments, SegmentsRun::kBesideQueries);
}

// Nobody measured the pair on the split, on which it might have more than half of the device.
TEST_F(BeGridsChoiceTest, ASplitIsTriedOnlyForMoreThanTheyAreWorth) {
  builder.snapshot.trials_open = true;
  const int32_t graph = builder.AddKernel(400 * kUs);
  HeadView& step = builder.AddBeGraph(be, graph, 40 * kMs);
  builder.Pair(lc, graph, 84) = {0.3F, 0.95F, 0.40F, 0.6F};
  const std::vector<float> hoped = {0.95F};
  builder.snapshot.pairs.hoped = hoped;
  step.segment_gain = 0.1;
  EXPECT_EQ(PlanOf("adaptive", builder).arrangement.TriedSplit(), 0);
  step.segment_gain = 0.7;
  const Plan beside = PlanOf("adaptive", builder);
  EXPECT_EQ(beside.arrangement.TriedSplit(), -1);
  EXPECT_EQ(beside.arrangement.segments, SegmentsRun::kBesideQueries) << Describe(beside);
  EXPECT_EQ(beside.choice.chosen, 132);
  EXPECT_EQ(beside.choice.runner_up, 84);
  EXPECT_GT(beside.choice.runner_up_value, 600'000) << "what the trial hopes for";
  EXPECT_LT(beside.choice.runner_up_value, beside.choice.value);
  EXPECT_GT(beside.choice.shift.shift_ns, 0) << "what a query meets";
  EXPECT_LE(beside.choice.shift.shift_ns, beside.choice.shift.limit_ns);
  EXPECT_GT(beside.choice.runner_up_shift.shift_ns, 0) << "as the trial hopes";
  EXPECT_LE(beside.choice.runner_up_shift.shift_ns, beside.choice.runner_up_shift.limit_ns);
  // Near a tie, a trial that has begun goes on.
  step.segment_gain = static_cast<double>(beside.choice.runner_up_value) / 0.5e6 - 1 + 0.02;
  EXPECT_EQ(PlanOf("adaptive", builder).arrangement.TriedSplit(), -1);
  builder.snapshot.in_force = {.split = 0, .trial_kernel = 0};
  EXPECT_EQ(PlanOf("adaptive", builder).arrangement.TriedSplit(), 0);
}

}  // namespace
}  // namespace gpushare::core::testing
