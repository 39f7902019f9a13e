// Where the adaptive policy puts a graph in segments: the whole device or the BE side of a split,
// alone on its SMs, one launch at a time.

#include <cmath>

#include "gtest/gtest.h"
#include "src/core/base/tuning.h"
#include "tests/core/policies/snapshot_builder.h"

namespace gpushare::core::testing {
namespace {

class SegmentsPlanTest : public ::testing::Test {
 protected:
  SegmentsPlanTest() { builder.Pair(lc, kernel, 84) = {1.0f, 1.0f, 0.5f, 0.5f}; }
  void LcActive() {
    builder.AddRunningLc(lc, lc_place);
    builder.snapshot.in_force.split = builder.Split(84);
  }
  HeadView& AddStep() {
    HeadView& head = builder.AddBeHead(be, kernel, 8 * kMs);
    head.kind = TaskKind::kGraph;
    return head;
  }
  RunningView& AddRunningStep(PlaceIndex place) {
    RunningView& running = builder.AddRunningBe(be, kernel, 8 * kMs, {{place, Form::kSegments}});
    running.task.kind = TaskKind::kGraph;
    return running;
  }

  SnapshotBuilder builder;
  int32_t lc = builder.AddLcApp(0.3, 546 * kUs, 1'548 * kUs, 1.05);
  int32_t be = builder.AddBeApp();
  int32_t other = builder.AddBeApp();
  int32_t kernel = builder.AddKernel(40 * kUs);
  PlaceIndex lc_place = builder.LcPlace(84);
  PlaceIndex be_place = builder.BePlace(84);
};

TEST_F(SegmentsPlanTest, AGraphKeepsTheBeSideWhileAQueryIsActive) {
  LcActive();
  const HeadView& step = AddStep();
  const Plan plan = PlanOf("adaptive", builder);
  EXPECT_TRUE(IsLaunched(plan, step, {.form = Form::kSegments}, be_place));
  EXPECT_EQ(plan.launches.size(), 1);
}

TEST_F(SegmentsPlanTest, AGraphHasTheWholeDeviceWhileNoQueryIsActive) {
  const HeadView& step = AddStep();
  const HeadView& workers = builder.AddBeHead(other, kernel, 8 * kMs);
  builder.be_apps[1].attained_ns[kSmTime] = 1e9;
  const Plan plan = PlanOf("adaptive", builder);
  ASSERT_NE(FindLaunch(plan, step, kWholeDevice), nullptr) << Describe(plan);
  EXPECT_EQ(plan.launches.size(), 1) << Describe(plan);
  EXPECT_TRUE(IsHeld(plan, workers, Reason::kHoldWindow));
}

TEST_F(SegmentsPlanTest, NothingIsLaunchedBesideAGraphOnTheWholeDevice) {
  AddRunningStep(kWholeDevice);
  const HeadView& workers = builder.AddBeHead(other, kernel, 8 * kMs);
  const Plan plan = PlanOf("adaptive", builder);
  EXPECT_EQ(plan.evictions.size(), 0) << Describe(plan);
  EXPECT_EQ(plan.launches.size(), 0) << Describe(plan);
  EXPECT_NE(FindHold(plan, workers), nullptr);
}

TEST_F(SegmentsPlanTest, AGraphOnTheBeSideLeavesForTheWholeDeviceWhenNoQueryIsActive) {
  const RunningView& running = AddRunningStep(be_place);
  const Plan plan = PlanOf("adaptive", builder);
  EXPECT_TRUE(IsEvicted(plan, running.task, be_place, Reason::kEvictForLayout));
  EXPECT_EQ(plan.launches.size(), 0) << "one launch of a graph at a time";
}

TEST_F(SegmentsPlanTest, AGraphKeepsTheBeSideWhereOtherBeWorkWouldTakeIt) {
  AddRunningStep(be_place);
  builder.AddBeHead(other, kernel, 8 * kMs);
  const Plan plan = PlanOf("adaptive", builder);
  EXPECT_EQ(plan.evictions.size(), 0) << Describe(plan);
}

TEST_F(SegmentsPlanTest, AGraphOnTheBeSideStaysWhileAQueryIsActive) {
  LcActive();
  AddRunningStep(be_place);
  const Plan plan = PlanOf("adaptive", builder);
  EXPECT_EQ(plan.evictions.size(), 0) << Describe(plan);
  EXPECT_EQ(plan.launches.size(), 0);
}

TEST_F(SegmentsPlanTest, AnActiveQueryEvictsAGraphFromTheWholeDevice) {
  LcActive();
  const RunningView& running = AddRunningStep(kWholeDevice);
  EXPECT_TRUE(
      IsEvicted(PlanOf("adaptive", builder), running.task, kWholeDevice, Reason::kEvictForLc));
}

// Workers of other queues must not queue one behind the other before a graph for ever.
TEST_F(SegmentsPlanTest, NobodyGoesBeforeAGraphThatWaitsUntilItsPlaceIsEmpty) {
  LcActive();
  builder.AddRunningBe(other, kernel, 8 * kMs, {{be_place}});
  const HeadView& step = AddStep();
  const HeadView& next = builder.AddBeHead(other, kernel, 8 * kMs);
  builder.be_apps[1].attained_ns[kSmTime] = 1e9;
  const Plan plan = PlanOf("adaptive", builder);
  EXPECT_EQ(FindLaunch(plan, step), nullptr) << Describe(plan);
  EXPECT_EQ(FindLaunch(plan, next), nullptr) << Describe(plan);
  EXPECT_TRUE(IsHeld(plan, step, Reason::kHoldWindow));
}

// They would have the SMs that its last segments wait for.
TEST_F(SegmentsPlanTest, NothingIsLaunchedOnTheSmsOfAGraphThatLeaves) {
  LcActive();
  AddRunningStep(kWholeDevice).parts[0].evicting = true;
  const HeadView& workers = builder.AddBeHead(other, kernel, 8 * kMs);
  const Plan plan = PlanOf("adaptive", builder);
  EXPECT_EQ(FindLaunch(plan, workers), nullptr) << Describe(plan);
  EXPECT_TRUE(IsHeld(plan, workers, Reason::kHoldWindow));
}

// A graph that no partition holds has its turns while no query is active.
class UnconfinableGraphTest : public SegmentsPlanTest {
 protected:
  HeadView& AddGraph() {
    HeadView& head = AddStep();
    head.confinable = false;
    return head;
  }
  RunningView& AddWorkers(int64_t got_ns) {
    builder.be_apps[1].attained_ns[kSmTime] = static_cast<double>(got_ns + 8 * kMs);
    return builder.AddRunningBe(other, kernel, 8 * kMs, {{be_place}, {lc_place}});
  }
};

TEST_F(UnconfinableGraphTest, NobodyGoesBeforeItOnTheSidesOfASplit) {
  const HeadView& graph = AddGraph();
  builder.AddRunningBe(other, kernel, 8 * kMs, {{be_place}, {lc_place}});
  const HeadView& next = builder.AddBeHead(other, kernel, 8 * kMs);
  builder.be_apps[1].attained_ns[kSmTime] = 8e6;
  const Plan plan = PlanOf("adaptive", builder);
  EXPECT_EQ(FindLaunch(plan, next), nullptr) << Describe(plan);
  EXPECT_EQ(FindLaunch(plan, graph), nullptr) << Describe(plan);
  EXPECT_EQ(plan.evictions.size(), 0) << "the workers have had no more than the graph";
}

TEST_F(UnconfinableGraphTest, WorkersThatHadMoreLeaveForIt) {
  AddGraph();
  const RunningView& workers = AddWorkers(5 * kMs);
  const Plan plan = PlanOf("adaptive", builder);
  for (const PlaceIndex place : {be_place, lc_place}) {
    EXPECT_TRUE(IsEvicted(plan, workers.task, place, Reason::kEvictForLayout));
  }
}

TEST_F(UnconfinableGraphTest, WorkersThatHadLessStay) {
  AddGraph();
  builder.be_apps[0].attained_ns[kSmTime] = 10e6;
  AddWorkers(5 * kMs);
  const Plan plan = PlanOf("adaptive", builder);
  EXPECT_EQ(plan.evictions.size(), 0) << Describe(plan);
}

// It cannot start then, so the BE side is not left empty for it.
TEST_F(UnconfinableGraphTest, WorkersKeepTheBeSideWhileAQueryIsActive) {
  LcActive();
  AddGraph();
  const HeadView& next = builder.AddBeHead(other, kernel, 8 * kMs);
  builder.be_apps[1].attained_ns[kSmTime] = 1e9;
  const Plan plan = PlanOf("adaptive", builder);
  EXPECT_NE(FindLaunch(plan, next, be_place), nullptr) << Describe(plan);
}

// The whole device, with all of its CapSMs.
class SmguardSegmentsTest : public SegmentsPlanTest {
 protected:
  RunningView& AddWhole() {
    RunningView& running = AddRunningStep(kWholeDevice);
    running.parts[0].workers = 132 * 8;
    builder.be_apps[0].used_capsms = 132;
    builder.snapshot.capsms_free = 0;
    return running;
  }
};

TEST_F(SmguardSegmentsTest, AQueryWithAReservationEvictsAllOfAGraph) {
  builder.lc_apps[0].reserved_capsms = 32;
  LcActive();
  const RunningView& running = AddWhole();
  const Plan plan = PlanOf("smguard", builder);
  ASSERT_NE(FindEviction(plan, running.task, kWholeDevice), nullptr) << Describe(plan);
  EXPECT_EQ(FindEviction(plan, running.task, kWholeDevice)->workers_to_keep, 0);
}

TEST_F(SmguardSegmentsTest, AReservationEvictsNoGraphWhileNoQueryIsActive) {
  builder.lc_apps[0].reserved_capsms = 32;
  AddWhole();
  const Plan plan = PlanOf("smguard", builder);
  EXPECT_EQ(plan.evictions.size(), 0) << Describe(plan);
}

TEST_F(SmguardSegmentsTest, AQuotaEvictsNoGraphThatNoPlaceHoldsWithinIt) {
  builder.be_apps[0].quota_capsms = 5;
  AddWhole();
  const Plan plan = PlanOf("smguard", builder);
  EXPECT_EQ(plan.evictions.size(), 0) << Describe(plan);
}

// Its next launch has the BE side of 48 SMs.
TEST_F(SmguardSegmentsTest, APackedQuotaEvictsAGraphFromMoreSmsThanItHas) {
  builder.be_apps[0].quota_capsms = 50;
  builder.be_apps[0].packed = true;
  const RunningView& running = AddWhole();
  const Plan plan = PlanOf("smguard", builder);
  EXPECT_NE(FindEviction(plan, running.task, kWholeDevice), nullptr) << Describe(plan);
}

// What leaves for a reservation is free soon: a plan meanwhile evicts nobody else for it.
TEST_F(SmguardSegmentsTest, WorkersStayWhileAGraphLeavesForTheReservation) {
  builder.lc_apps[0].reserved_capsms = 32;
  LcActive();
  AddWhole().parts[0].evicting = true;
  builder.AddRunningBe(other, kernel, 8 * kMs, {{kWholeDevice, Form::kWorkers, false, 80}});
  builder.be_apps[1].used_capsms = 10;
  const Plan plan = PlanOf("smguard", builder);
  EXPECT_EQ(plan.evictions.size(), 0) << Describe(plan);
}

// Its evictions move the p99 by four times the budget: in all idle periods the bound would be
// missed, in none of them it would starve.
TEST_F(SegmentsPlanTest, AGraphWithLongSegmentsRunsInTheShareOfIdlePeriodsThatTheBoundAllows) {
  builder.snapshot.partitions_available = false;
  builder.lc_apps[0].tail_rate = 1e-6;
  builder.lc_apps[0].blocking_budget_ns = 100 * kUs;
  HeadView& step = AddStep();
  step.eviction_ns = 400 * kUs;
  const double share = std::expm1(0.1) / std::expm1(0.4);
  constexpr int kPeriods = 2000;
  builder.snapshot.now_ns = (kPeriods + 100) * kMs;
  int launched = 0;
  for (int period = 0; period < kPeriods; ++period) {
    builder.lc_apps[0].idle_since_ns = (period + 1) * kMs;
    const Plan plan = PlanOf("adaptive", builder);
    if (FindLaunch(plan, step, kWholeDevice) != nullptr) {
      ++launched;
    } else {
      EXPECT_TRUE(IsHeld(plan, step, Reason::kHoldBlocking));
    }
  }
  EXPECT_NEAR(static_cast<double>(launched) / kPeriods, share, 0.04);
}

TEST_F(SegmentsPlanTest, AShareOfIdlePeriodsOpensNoPlaceBesideAQuery) {
  LcActive();
  builder.snapshot.partitions_available = false;
  builder.lc_apps[0].tail_rate = 1e-6;
  builder.lc_apps[0].blocking_budget_ns = 100 * kUs;
  builder.Pair(lc, kernel, 84).lc_speed = 0.1f;  // no split pays
  HeadView& step = AddStep();
  step.eviction_ns = 110 * kUs;
  builder.snapshot.now_ns = 100 * kMs;
  for (int period = 0; period < 50; ++period) {
    builder.lc_apps[0].idle_since_ns = (period + 1) * kMs;
    EXPECT_EQ(PlanOf("adaptive", builder).launches.size(), 0);
  }
}

// How long segments may be.
class SegmentLengthTest : public ::testing::Test {
 protected:
  SegmentLengthTest() { graph.code = GraphCode(); }
  void AddApp(int64_t budget_ns) {
    const int32_t app = builder.AddLcAppWithTarget(0.1, 1 * kMs, 1'000 * kMs);
    builder.lc_apps[static_cast<size_t>(app)].blocking_budget_ns = budget_ns;
    builder.lc_apps[static_cast<size_t>(app)].load = 0;
  }
  RunningView& AddRunningStep() {
    RunningView& running =
        builder.AddRunningBe(be, kernel, 8 * kMs, {{kWholeDevice, Form::kSegments}});
    running.task.kind = TaskKind::kGraph;
    running.task.kernel = &graph;
    return running;
  }
  HeadView& AddHead() {
    HeadView& head = builder.AddBeHead(be, kernel, 8 * kMs);
    head.kind = TaskKind::kGraph;
    head.kernel = &graph;
    return head;
  }
  int64_t Longest() { return PlanOf("adaptive", builder).longest_segment_ns; }

  KernelDesc graph;
  SnapshotBuilder builder;
  int32_t be = builder.AddBeApp();
  int32_t kernel = builder.AddKernel(40 * kUs);
};

TEST_F(SegmentLengthTest, WithoutAnLcAppAGraphOfAFewMillisecondsIsOneSegment) {
  EXPECT_EQ(Longest(), kNever);
  RunningView& step = AddRunningStep();
  step.task.remaining.duration_ns = 4 * kMs;
  graph.graph()->cut.segments = 40;
  EXPECT_EQ(Longest(), kNever);
}

// The first query of an app that comes would wait for the rest of it.
TEST_F(SegmentLengthTest, WithoutAnLcAppALongerGraphHasTheLongestSegments) {
  RunningView& step = AddRunningStep();
  step.task.remaining.duration_ns = 4 * kMs + 1;
  EXPECT_EQ(Longest(), 2 * kMs);
  step.task.remaining.duration_ns = 1 * kMs;
  graph.graph()->cut.segments = 41;
  EXPECT_EQ(Longest(), 2 * kMs) << "its prediction is of its rest, or wrong";
  builder.running.clear();
  EXPECT_EQ(Longest(), kNever);
  HeadView& head = AddHead();
  EXPECT_EQ(Longest(), 2 * kMs);
  head.evictable = false;
  EXPECT_EQ(Longest(), kNever) << "it runs in no segments";
}

// A query waits for two of them.
TEST_F(SegmentLengthTest, SegmentsAreAsLongAsTheTightestBudgetAllows) {
  AddApp(10 * kMs);
  AddRunningStep();
  EXPECT_EQ(Longest(), 2 * kMs);
  AddApp(3'999 * kUs);
  EXPECT_EQ(Longest(), 400 * kUs);
  AddApp(800 * kUs);
  EXPECT_EQ(Longest(), 400 * kUs);
  AddApp(799 * kUs);
  EXPECT_EQ(Longest(), 0);
  graph.graph()->segment_ns = 20 * kUs;
  EXPECT_EQ(Longest(), kSegmentNs) << "its own are shorter";
}

TEST_F(SegmentLengthTest, BesideAQueryAGraphHasItsOwnSegments) {
  AddApp(100 * kMs);
  AddRunningStep();
  builder.AddQuery(0, kNever);
  builder.lc_apps[0].active_queries = 1;
  EXPECT_EQ(Longest(), 0);
}

// Its wait and that for the segments would add up.
TEST_F(SegmentLengthTest, BesideOtherBeWorkAGraphHasItsOwnSegments) {
  AddApp(100 * kMs);
  AddRunningStep();
  RunningView& other = builder.AddRunningBe(be, kernel, 8 * kMs, {{kWholeDevice}});
  EXPECT_EQ(Longest(), 0);
  other.task.kind = TaskKind::kGraph;
  EXPECT_EQ(Longest(), 0) << "two graphs";
}

TEST_F(SegmentLengthTest, AnAppThatStatesNothingKeepsShortSegments) {
  AddApp(100 * kMs);
  AddRunningStep();
  EXPECT_GT(Longest(), 0);
  builder.AddLcApp(0, 0, 0, 0);
  EXPECT_EQ(Longest(), 0);
}

// It holds no BE work either (IsSilent).
TEST_F(SegmentLengthTest, AnAppThatNeverHadAQueryAllowsLongSegmentsWhateverItStates) {
  builder.AddLcApp(0, 0, 1 * kMs, 1.05);
  builder.lc_apps.back().blocking_budget_ns = kNever;
  AddApp(kNever);
  AddRunningStep();
  EXPECT_EQ(Longest(), 2 * kMs);
}

// Only work that each step can wait for starts in a gap (evidence/steps.h), and only 0.8 of the
// budget is for it.
TEST_F(SegmentLengthTest, InAGapSegmentsAreShortBeforeTheAppHasALoad) {
  AddApp(4 * kMs);
  AddRunningStep();
  builder.snapshot.now_ns = 100 * kMs;
  EXPECT_EQ(Longest(), 2 * kMs);
  builder.lc_apps[0].expected_by_ns = 100 * kMs + 300 * kUs;
  const Plan plan = PlanOf("adaptive", builder);
  EXPECT_EQ(plan.longest_segment_ns, 0);
  EXPECT_EQ(plan.replan_at_ns, 100 * kMs + 300 * kUs);
  builder.snapshot.now_ns = builder.lc_apps[0].expected_by_ns;
  EXPECT_EQ(Longest(), 2 * kMs) << "the gap is over";
}

// A graph of which nobody measured the nodes has segments up to five times as long as asked.
TEST_F(SegmentLengthTest, WhatAnEvictionTakesSaysHowLongSegmentsAreThatNobodyMeasured) {
  AddApp(3 * kMs);
  RunningView& step = AddRunningStep();
  EXPECT_EQ(Longest(), 400 * kUs);
  step.task.eviction_p99_ns = kSegmentsOutstanding * 5 * kSegmentNs;
  EXPECT_EQ(Longest(), 0);
}

// Between queries a graph moves from place to place, and a long segment keeps it where it is slow.
TEST_F(SegmentLengthTest, WhileAnAppHasALoadAGraphHasItsOwnSegments) {
  AddApp(100 * kMs);
  AddRunningStep();
  EXPECT_EQ(Longest(), 2 * kMs);
  builder.lc_apps[0].load = 0.1;
  EXPECT_EQ(Longest(), 0);
}

// A silence lasts, and one step waits for what runs at its end. In a gap each step would.
TEST_F(SegmentLengthTest, InTheSilencesOfAnEngineSegmentsAreLong) {
  AddApp(1 * kMs);
  AddRunningStep();
  builder.lc_apps[0].load = 0.5;
  builder.lc_apps[0].first_late_max = 0.5;
  builder.lc_apps[0].late_delay_ns = 1 * kMs;
  EXPECT_EQ(Longest(), 400 * kUs) << "two of 400 us are within the budget";
  builder.lc_apps[0].blocking_budget_ns = builder.lc_apps[0].late_delay_ns = 100 * kUs;
  constexpr int kSilences = 400;
  int silences_of_long_segments = 0;
  for (int silence = 1; silence <= kSilences; ++silence) {
    builder.lc_apps[0].idle_since_ns = silence;
    silences_of_long_segments += Longest() == 400 * kUs ? 1 : 0;
  }
  EXPECT_NEAR(silences_of_long_segments, 0.5 * kSilences, 0.1 * kSilences)
      << "each that ends with such segments makes its first step late";
  builder.lc_apps[0].first_late_max = 1;
  EXPECT_EQ(Longest(), 400 * kUs) << "each of the first ones may be late, and waits no longer";
  builder.lc_apps[0].load = 0;
  EXPECT_EQ(Longest(), 400 * kUs) << "an engine that rests";
  builder.lc_apps[0].load = 0.5;
  builder.lc_apps[0].expected_by_ns = builder.snapshot.now_ns + 300 * kUs;
  const Plan plan = PlanOf("adaptive", builder);
  EXPECT_EQ(plan.longest_segment_ns, 0);
  EXPECT_LE(plan.replan_at_ns, builder.snapshot.now_ns + 300 * kUs);
  builder.lc_apps[0].first_late_max = 0;
  builder.lc_apps[0].expected_by_ns = 0;
  EXPECT_EQ(Longest(), 0) << "it does not work in steps";
}

}  // namespace
}  // namespace gpushare::core::testing
