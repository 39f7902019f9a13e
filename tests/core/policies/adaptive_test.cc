// What adaptive launches, evicts and holds under an arrangement.

#include <gtest/gtest.h>

#include "src/core/base/tuning.h"
#include "src/core/policies/adaptive/arrangement/tuning.h"
#include "src/core/promise/tuning.h"
#include "tests/core/policies/snapshot_builder.h"

namespace gpushare::core::testing {
namespace {

// Elastic on 84 / 48, one kernel.
class ElasticTest : public ::testing::Test {
 protected:
  ElasticTest() { builder.Pair(lc, kernel, 84).lc_speed = 1.0f; }
  void LcActive() { builder.AddRunningLc(lc, lc_place); }

  SnapshotBuilder builder;
  // The budget is 77 us: two of the kernel's tasks fit together.
  int32_t lc = builder.AddLcApp(0.3, 546 * kUs, 1'548 * kUs, 1.05);
  int32_t be = builder.AddBeApp();
  int32_t kernel = builder.AddKernel(38 * kUs);
  PlaceIndex lc_place = builder.LcPlace(84);
  PlaceIndex be_place = builder.BePlace(84);
};

TEST_F(ElasticTest, BeKeepsItsSideWhileAQueryIsActive) {
  LcActive();
  const HeadView& head = builder.AddBeHead(be, kernel, 8 * kMs);
  const Plan plan = PlanOf("adaptive", builder);
  EXPECT_TRUE(IsLaunched(plan, head, {.reason = Reason::kBesidePartition}, be_place));
  EXPECT_EQ(plan.launches.size(), 1);
}

TEST_F(ElasticTest, ATaskThatKeptItsSideReturnsToTheOtherBeforeANewOneStarts) {
  const RunningView& running = builder.AddRunningBe(be, kernel, 8 * kMs, {{be_place}});
  const HeadView& head = builder.AddBeHead(be, kernel, 8 * kMs);
  const Plan plan = PlanOf("adaptive", builder);
  const PlannedLaunch* part = FindLaunch(plan, running.task, lc_place);
  ASSERT_NE(part, nullptr) << Describe(plan);
  EXPECT_EQ(part->reason, Reason::kElasticReturn);
  EXPECT_EQ(part->form, Form::kWorkers);
  EXPECT_EQ(FindLaunch(plan, running.task, be_place), nullptr);
  // The head queues behind on both sides.
  EXPECT_NE(FindLaunch(plan, head, be_place), nullptr);
  EXPECT_NE(FindLaunch(plan, head, lc_place), nullptr);
}

// Its duration is to be measured.
TEST_F(ElasticTest, ATaskThatRunsAloneHasNothingBesideOrBehindIt) {
  HeadView& first = builder.AddBeHead(be, kernel, 8 * kMs);
  const HeadView& second = builder.AddBeHead(be, kernel, 8 * kMs);
  EXPECT_NE(FindLaunch(PlanOf("adaptive", builder), second), nullptr);
  first.runs_alone = true;
  Plan plan = PlanOf("adaptive", builder);
  EXPECT_NE(FindLaunch(plan, first), nullptr) << Describe(plan);
  EXPECT_TRUE(IsHeld(plan, second, Reason::kHoldWindow));
  RunningView& running = builder.AddRunningBe(be, kernel, 8 * kMs, {{be_place}, {lc_place}});
  first.runs_alone = false;
  EXPECT_NE(FindLaunch(PlanOf("adaptive", builder), first), nullptr);
  running.task.runs_alone = true;
  plan = PlanOf("adaptive", builder);
  EXPECT_EQ(FindLaunch(plan, first), nullptr) << Describe(plan);
}

TEST_F(ElasticTest, ATaskThatIsAlmostDoneDoesNotReturn) {
  const RunningView& running = builder.AddRunningBe(be, kernel, 10 * kUs, {{be_place}});
  const HeadView& head = builder.AddBeHead(be, kernel, 8 * kMs);
  const Plan plan = PlanOf("adaptive", builder);
  EXPECT_EQ(FindLaunch(plan, running.task), nullptr);
  EXPECT_NE(FindLaunch(plan, head, lc_place), nullptr);
}

TEST_F(ElasticTest, ATaskWithAsManyPartsAsItMayHaveGetsNoOther) {
  builder.AddRunningBe(be, kernel, 8 * kMs, {{be_place}, {be_place}, {be_place}, {be_place}});
  EXPECT_EQ(PlanOf("adaptive", builder).launches.size(), 0);
}

TEST_F(ElasticTest, ATaskDoesNotReturnToAPlaceThatItIsStillLeaving) {
  builder.AddRunningBe(be, kernel, 8 * kMs, {{be_place}, {lc_place, Form::kWorkers, true}});
  EXPECT_EQ(PlanOf("adaptive", builder).launches.size(), 0);
}

TEST_F(ElasticTest, OnlyThePartOnTheLcSideIsEvictedForAQuery) {
  LcActive();
  const RunningView& running =
      builder.AddRunningBe(be, kernel, 8 * kMs, {{be_place}, {lc_place}, {lc_place}});
  const Plan plan = PlanOf("adaptive", builder);
  ASSERT_EQ(plan.evictions.size(), 1) << Describe(plan);
  EXPECT_TRUE(IsEvicted(plan, running.task, lc_place, Reason::kEvictForLc, 0));
}

TEST_F(ElasticTest, AnLcHeadIsLaunchedAtOnceBehindBeThatStillLeaves) {
  const RunningView& leaving =
      builder.AddRunningBe(be, kernel, 8 * kMs, {{be_place}, {lc_place, Form::kWorkers, true}});
  const RunningView& live = builder.AddRunningBe(be, kernel, 8 * kMs, {{lc_place}});
  const HeadView& head = builder.AddLcHead(lc, 4);
  const Plan plan = PlanOf("adaptive", builder);
  EXPECT_TRUE(IsLaunched(
      plan, head,
      {.place = lc_place, .lane_class = LaneClass::kLc, .count = 4, .reason = Reason::kLcFirst}));
  EXPECT_EQ(FindEviction(plan, leaving.task, lc_place), nullptr);
  EXPECT_NE(FindEviction(plan, live.task, lc_place), nullptr);
}

TEST_F(ElasticTest, AnLcTaskThatCannotBeConfinedTakesTheWholeDevice) {
  const RunningView& running = builder.AddRunningBe(be, kernel, 8 * kMs, {{be_place}, {lc_place}});
  HeadView& head = builder.AddLcHead(lc);
  head.confinable = false;
  const HeadView& waiting = builder.AddBeHead(be, kernel, 8 * kMs);
  const Plan plan = PlanOf("adaptive", builder);
  EXPECT_EQ(FindLaunch(plan, head)->place, kWholeDevice);
  EXPECT_NE(FindEviction(plan, running.task, be_place), nullptr) << "its SMs are needed too";
  EXPECT_NE(FindEviction(plan, running.task, lc_place), nullptr);
  EXPECT_EQ(FindHold(plan, waiting)->reason, Reason::kHoldLcActive);
}

TEST_F(ElasticTest, BeReturnsOnlyAfterTheHysteresisAndAsksForThatPlan) {
  builder.lc_apps[0].idle_since_ns = builder.snapshot.now_ns - 500;
  const RunningView& running = builder.AddRunningBe(be, kernel, 8 * kMs, {{be_place}});
  Plan plan = PlanOf("adaptive", builder);
  EXPECT_EQ(plan.launches.size(), 0) << Describe(plan);
  EXPECT_EQ(plan.replan_at_ns, builder.snapshot.now_ns + 1'500);
  builder.snapshot.now_ns = plan.replan_at_ns;
  plan = PlanOf("adaptive", builder);
  EXPECT_NE(FindLaunch(plan, running.task, lc_place), nullptr) << Describe(plan);
  EXPECT_EQ(plan.replan_at_ns, kNever);
}

// A step is expected: what it can wait for may start before it, and the rest once the gap is over.
TEST(GapTest, WhatAStepCannotWaitForDoesNotStartInAGap) {
  SnapshotBuilder builder(std::vector<int32_t>{});
  const int32_t lc = builder.AddLcApp(0.5, 2 * kMs, 2 * kMs, 1.05);
  const int32_t be = builder.AddBeApp();
  LcAppView& app = builder.lc_apps[static_cast<size_t>(lc)];
  app.first_late_max = 1;
  app.late_delay_ns = 0;
  app.expected_by_ns = builder.snapshot.now_ns + 200 * kUs;
  app.blocking_budget_ns = 100 * kUs;
  const int32_t kernel = builder.AddKernel(80 * kUs);
  const HeadView& head = builder.AddBeHead(be, kernel, 8 * kMs);
  EXPECT_NE(FindLaunch(PlanOf("adaptive", builder), head), nullptr);
  app.blocking_budget_ns -= 2 * kUs;
  Plan plan = PlanOf("adaptive", builder);
  EXPECT_TRUE(IsHeld(plan, head, Reason::kHoldHysteresis)) << Describe(plan);
  EXPECT_EQ(plan.replan_at_ns, app.expected_by_ns);
  builder.snapshot.now_ns = app.expected_by_ns;
  plan = PlanOf("adaptive", builder);
  EXPECT_NE(FindLaunch(plan, head), nullptr) << Describe(plan);
}

TEST(GapTest, NoCreditIsForAGap) {
  SnapshotBuilder builder(std::vector<int32_t>{});
  const int32_t lc = builder.AddLcApp(0.5, 2 * kMs, 2 * kMs, 1.05);
  const int32_t be = builder.AddBeApp();
  LcAppView& app = builder.lc_apps[static_cast<size_t>(lc)];
  app.tail_credit = kTailCreditMax;
  app.tail_need_per_ns = 1e-9;
  const HeadView& head = builder.AddBeTask(be, TaskKind::kOpaque, kMs);
  ASSERT_NE(FindLaunch(PlanOf("adaptive", builder), head), nullptr);
  app.expected_by_ns = builder.snapshot.now_ns + 1;
  EXPECT_EQ(FindLaunch(PlanOf("adaptive", builder), head), nullptr);
}

TEST(GapTest, NothingIsEvictedForAnExpectedStep) {
  SnapshotBuilder builder(std::vector<int32_t>{});
  const int32_t lc = builder.AddLcApp(0.5, 2 * kMs, 2 * kMs, 1.05);
  const int32_t be = builder.AddBeApp();
  LcAppView& app = builder.lc_apps[static_cast<size_t>(lc)];
  app.expected_by_ns = builder.snapshot.now_ns + 200 * kUs;
  const int32_t kernel = builder.AddKernel(kMs);
  builder.AddRunningBe(be, kernel, 8 * kMs, {{kWholeDevice}});
  const Plan plan = PlanOf("adaptive", builder);
  EXPECT_EQ(plan.evictions.size(), 0) << Describe(plan);
}

TEST_F(ElasticTest, AtMostOneTaskQueuesBehindTheOneThatRuns) {
  builder.AddRunningBe(be, kernel, 8 * kMs, {{be_place}, {lc_place}});
  const HeadView& second = builder.AddBeHead(be, kernel, 8 * kMs);
  const HeadView& third = builder.AddBeHead(be, kernel, 8 * kMs);
  const Plan plan = PlanOf("adaptive", builder);
  EXPECT_NE(FindLaunch(plan, second), nullptr);
  EXPECT_TRUE(IsHeld(plan, third, Reason::kHoldWindow));
}

TEST_F(ElasticTest, ATaskOfTheSameQueueDoesNotQueueBehind) {
  const RunningView& running = builder.AddRunningBe(be, kernel, 8 * kMs, {{be_place}, {lc_place}});
  HeadView& head = builder.AddBeHead(be, kernel, 8 * kMs);
  head.queue = running.task.queue;
  EXPECT_EQ(FindHold(PlanOf("adaptive", builder), head)->reason, Reason::kHoldWindow);
}

// What no pair was measured for may disturb LC beside it for as long as LC would wait: 77 us. On 48
// of 132 SMs 30 us take 82.5, on 84 they take 47.
TEST_F(ElasticTest, UnmeasuredWorkIsJudgedByItsTimeOnThePlace) {
  builder.AddRunningBe(be, kernel, 8 * kMs, {{be_place}, {lc_place}});
  const HeadView& longer = builder.AddBeTask(be, TaskKind::kOpaque, 30 * kUs);
  Plan plan = PlanOf("adaptive", builder);
  EXPECT_EQ(FindLaunch(plan, longer, be_place), nullptr) << Describe(plan);
  builder.heads[0].remaining.duration_ns = 25 * kUs;
  plan = PlanOf("adaptive", builder);
  EXPECT_NE(FindLaunch(plan, longer, be_place), nullptr) << Describe(plan);
}

TEST_F(ElasticTest, ATaskThatCannotBeConfinedWaitsForAnIdleDevice) {
  HeadView& head = builder.AddBeHead(be, kernel, 8 * kMs);
  head.confinable = false;
  builder.AddRunningBe(be, kernel, 8 * kMs, {{be_place}});
  Plan plan = PlanOf("adaptive", builder);
  EXPECT_TRUE(IsLaunched(plan, head, {.place = kWholeDevice}));
  LcActive();
  plan = PlanOf("adaptive", builder);
  EXPECT_EQ(FindHold(plan, head)->reason, Reason::kHoldLcActive);
}

// Whole device, first chain: budget 109 us.
class WholeTest : public ::testing::Test {
 protected:
  SnapshotBuilder builder{std::vector<int32_t>{}};
  int32_t lc = builder.AddLcApp(0.3, 667 * kUs, 2'176 * kUs, 1.05);
  int32_t be = builder.AddBeApp();
  int32_t kernel = builder.AddKernel(40 * kUs);
};

TEST_F(WholeTest, BeIsHeldWhileAQueryIsActiveAndGoesOnWhenItIsNot) {
  HeadView& head = builder.AddBeHead(be, kernel, 8 * kMs);
  head.resumed = true;
  Plan plan = PlanOf("adaptive", builder);
  EXPECT_TRUE(IsLaunched(plan, head, {.reason = Reason::kResume}));
  builder.AddQuery(lc, kNever);
  EXPECT_TRUE(IsHeld(PlanOf("adaptive", builder), head, Reason::kHoldLcActive, 40 * kUs));
}

TEST_F(WholeTest, WorkThatCannotBeEvictedIsDebitedAndRefundedWhenItIsDone) {
  const HeadView& first = builder.AddBeTask(be, TaskKind::kLibrary, 60 * kUs);
  const HeadView& second = builder.AddBeTask(be, TaskKind::kOpaque, 60 * kUs);
  Plan plan = PlanOf("adaptive", builder);
  EXPECT_TRUE(IsLaunched(plan, first, {.form = Form::kLibrary}));
  EXPECT_TRUE(IsHeld(plan, second, Reason::kHoldBlocking, 120 * kUs));

  builder.heads.pop_front();
  const HeadView waiting = builder.head(0);
  builder.AddRunningBe(be, -1, 60 * kUs, {{kWholeDevice, Form::kLibrary}});
  EXPECT_NE(FindHold(PlanOf("adaptive", builder), waiting), nullptr);
  builder.running.back().task.remaining.duration_ns = 40 * kUs;
  EXPECT_NE(FindLaunch(PlanOf("adaptive", builder), waiting), nullptr);
}

TEST_F(WholeTest, EvictableAndOtherWorkTogetherStayWithinTheBudget) {
  builder.AddRunningBe(be, kernel, 8 * kMs, {{kWholeDevice}});
  const HeadView& fits = builder.AddBeTask(be, TaskKind::kLibrary, 60 * kUs);
  const HeadView& held = builder.AddBeTask(be, TaskKind::kLibrary, 60 * kUs);
  const Plan plan = PlanOf("adaptive", builder);
  EXPECT_NE(FindLaunch(plan, fits), nullptr);
  EXPECT_EQ(FindHold(plan, held)->value_ns, 160 * kUs);
}

// The budget is 109 us. Both have workers on each SM, so that block tasks take longer than alone.
TEST_F(WholeTest, TwoTasksOnTheSameSmsLeaveTogetherWithinTheBudget) {
  const int32_t slower = builder.AddKernel(70 * kUs);
  RunningView& running = builder.AddRunningBe(be, kernel, 8 * kMs, {{kWholeDevice}});
  const HeadView& second = builder.AddBeHead(be, slower, 8 * kMs);
  EXPECT_TRUE(IsHeld(PlanOf("adaptive", builder), second, Reason::kHoldBlocking, 110 * kUs));
  running.task.remaining.duration_ns = 30 * kUs;  // it leaves no later than it ends
  EXPECT_NE(FindLaunch(PlanOf("adaptive", builder), second), nullptr);
  builder.running.clear();
  EXPECT_NE(FindLaunch(PlanOf("adaptive", builder), second), nullptr) << "alone it fits";
}

// Means of 40 and 60 us, p99s of 40 and 150.
TEST_F(WholeTest, InATailTheSumOfTheMeansOrTheLargerP99MayFit) {
  builder.AddRunningBe(be, kernel, 8 * kMs, {{kWholeDevice}});
  HeadView& second = builder.AddBeHead(be, builder.AddKernel(60 * kUs), 8 * kMs);
  second.eviction_p99_ns = 150 * kUs;
  EXPECT_NE(FindHold(PlanOf("adaptive", builder), second), nullptr);
  builder.lc_apps[0].tail_rate = 1e-6;
  EXPECT_NE(FindLaunch(PlanOf("adaptive", builder), second), nullptr);
  builder.lc_apps[0].late_delay_ns = 189 * kUs;
  EXPECT_NE(FindHold(PlanOf("adaptive", builder), second), nullptr) << "beyond the tail";
  builder.lc_apps[0].late_delay_ns = kNever;
  second.eviction_ns = second.eviction_p99_ns = 100 * kUs;
  EXPECT_NE(FindLaunch(PlanOf("adaptive", builder), second), nullptr);
}

TEST_F(WholeTest, OfTwoHeadsThatDoNotFitTogetherOneStarts) {
  HeadView& first = builder.AddBeHead(be, kernel, 8 * kMs);
  first.eviction_p99_ns = 120 * kUs;
  const HeadView& second = builder.AddBeHead(be, kernel, 8 * kMs);
  const Plan plan = PlanOf("adaptive", builder);
  EXPECT_NE(FindLaunch(plan, first), nullptr) << Describe(plan);
  EXPECT_TRUE(IsHeld(plan, second, Reason::kHoldBlocking));
}

// Small tasks that fit behind the running one would otherwise go before it for ever.
TEST_F(WholeTest, NobodyGoesBeforeATaskThatWaitsForTheSmsOfAnother) {
  const int32_t behind = builder.AddBeApp(1'000'000);
  builder.AddRunningBe(behind, kernel, 8 * kMs, {{kWholeDevice}});
  HeadView& next = builder.AddBeHead(be, builder.AddKernel(80 * kUs), 8 * kMs);
  next.eviction_p99_ns = 120 * kUs;
  const HeadView& small = builder.AddBeHead(behind, builder.AddKernel(10 * kUs), 8 * kMs);
  const Plan plan = PlanOf("adaptive", builder);
  EXPECT_EQ(plan.launches.size(), 0) << Describe(plan);
  EXPECT_TRUE(IsHeld(plan, next, Reason::kHoldBlocking));
  EXPECT_NE(FindHold(plan, small), nullptr);
}

// The budget is a shift of 109 us: by an eviction of that length, or by 204 us of what nothing
// evicts, as ln((exp(0.817) - 1) / 0.817) = 4e-6 x 109e3.
TEST_F(WholeTest, WhatNothingEvictsMayBeLongerThanAnEviction) {
  builder.lc_apps[0].tail_rate = 4e-6;
  builder.lc_apps[0].uncuttable_budget_ns = 203 * kUs;
  const HeadView& longest = builder.AddBeTask(be, TaskKind::kLibrary, 203 * kUs);
  EXPECT_NE(FindLaunch(PlanOf("adaptive", builder), longest), nullptr);
  const HeadView& slow = builder.AddBeHead(be, builder.AddKernel(4 * kMs), 8 * kMs);
  builder.heads.pop_front();
  const Plan plan = PlanOf("adaptive", builder);
  ASSERT_NE(FindHold(plan, slow), nullptr) << "every busy period begins with its eviction";
  EXPECT_EQ(FindHold(plan, slow)->limit_ns, builder.lc_apps[0].blocking_budget_ns);
}

// The running eviction of 40 us leaves a shift of 69 us: 132 us of what nothing evicts.
TEST_F(WholeTest, AnEvictionTakesItsPartOfTheShift) {
  builder.lc_apps[0].tail_rate = 4e-6;
  builder.AddRunningBe(be, kernel, 8 * kMs, {{kWholeDevice}});
  const HeadView& fits = builder.AddBeTask(be, TaskKind::kLibrary, 131 * kUs);
  EXPECT_NE(FindLaunch(PlanOf("adaptive", builder), fits), nullptr);
  builder.heads[0].remaining.duration_ns = 20 * kMs;
  const Plan plan = PlanOf("adaptive", builder);
  ASSERT_NE(FindHold(plan, fits), nullptr);
  EXPECT_GT(FindHold(plan, fits)->value_ns, FindHold(plan, fits)->limit_ns);
  EXPECT_EQ(FindHold(plan, fits)->limit_ns, builder.lc_apps[0].blocking_budget_ns);
}

// 5 ms delay 7.5 queries.
TEST_F(WholeTest, WorkBeyondTheBudgetStartsOnCreditAndOnlyWithEnoughOfIt) {
  builder.lc_apps[0].tail_need_per_ns = 1.5e-6;
  builder.lc_apps[0].tail_credit = 7.4;
  const HeadView& head = builder.AddBeTask(be, TaskKind::kLibrary, 5 * kMs);
  Plan plan = PlanOf("adaptive", builder);
  EXPECT_TRUE(IsHeld(plan, head, Reason::kHoldTailCredit, 7'500, 7'400));
  EXPECT_EQ(plan.replan_at_ns, builder.snapshot.now_ns + kLoadLookNs) << "quiet time earns";
  builder.lc_apps[0].tail_credit = 7.6;
  EXPECT_TRUE(IsLaunched(PlanOf("adaptive", builder), head, {.reason = Reason::kTailCredit}));
}

TEST_F(WholeTest, WorkOnCreditNeedsCreditForOneLateQueryAtLeast) {
  builder.lc_apps[0].tail_need_per_ns = 1e-9;  // 5 ms delay 0.005 queries
  builder.lc_apps[0].tail_credit = 0.99;
  const HeadView& head = builder.AddBeTask(be, TaskKind::kLibrary, 5 * kMs);
  EXPECT_NE(FindHold(PlanOf("adaptive", builder), head), nullptr);
  builder.lc_apps[0].tail_credit = 1;
  EXPECT_NE(FindLaunch(PlanOf("adaptive", builder), head), nullptr);
  builder.lc_apps[0].tail_credit = 0.99;
  builder.lc_apps[0].load = 0;
  EXPECT_NE(FindLaunch(PlanOf("adaptive", builder), head), nullptr) << "no queue";
}

// Held for credit, or for a budget without an account, the LC task that waits for it would wait for
// seconds, or for ever.
TEST_F(WholeTest, WorkThatLcWaitsForNeedsNoCreditOnceNoQueryIsActive) {
  HeadView& head = builder.AddBeTask(be, TaskKind::kLibrary, 5 * kMs);
  EXPECT_TRUE(IsHeld(PlanOf("adaptive", builder), head, Reason::kHoldBlocking));
  head.awaited_by_lc = true;
  EXPECT_NE(FindLaunch(PlanOf("adaptive", builder), head), nullptr);
  builder.lc_apps[0].tail_need_per_ns = 1.5e-6;
  EXPECT_NE(FindLaunch(PlanOf("adaptive", builder), head), nullptr);
  builder.AddQuery(lc, kNever);
  EXPECT_NE(FindHold(PlanOf("adaptive", builder), head), nullptr);
}

TEST_F(WholeTest, ACopyThatLcWaitsForMovesInSmallPiecesWhateverTheBudget) {
  builder.lc_apps[0].blocking_budget_ns = 1;
  builder.snapshot.copies[1] = {.lc_uses = true};
  HeadView& copy = builder.AddBeCopy(be, CopyDirection::kHostToDevice, 1 << 30, 20 * kMs);
  EXPECT_TRUE(IsHeld(PlanOf("adaptive", builder), copy, Reason::kHoldBlocking));
  copy.awaited_by_lc = true;
  const PlannedLaunch* launch = FindLaunch(PlanOf("adaptive", builder), copy);
  ASSERT_NE(launch, nullptr);
  builder.AddQuery(lc, kNever);
  EXPECT_NE(FindHold(PlanOf("adaptive", builder), copy), nullptr);
}

TEST_F(WholeTest, OnCreditBeStillWaitsForTheActiveQuery) {
  builder.lc_apps[0].tail_need_per_ns = 1.5e-6;
  builder.lc_apps[0].tail_credit = 50;
  const HeadView& head = builder.AddBeTask(be, TaskKind::kLibrary, 5 * kMs);
  builder.AddQuery(lc, kNever);
  EXPECT_TRUE(IsHeld(PlanOf("adaptive", builder), head, Reason::kHoldLcActive));
}

TEST_F(WholeTest, TasksOnCreditTogetherNeedTheSumAndAFullAccountIsEnoughForAny) {
  builder.lc_apps[0].tail_need_per_ns = 1.5e-6;
  builder.lc_apps[0].tail_credit = 8;
  builder.AddRunningBe(be, -1, 5 * kMs, {{kWholeDevice, Form::kLibrary}});
  const HeadView& head = builder.AddBeTask(be, TaskKind::kLibrary, 5 * kMs);
  EXPECT_NE(FindHold(PlanOf("adaptive", builder), head), nullptr);
  builder.lc_apps[0].tail_credit = kTailCreditMax;
  builder.heads[0].remaining.duration_ns = 3600 * 1000 * kMs;
  EXPECT_NE(FindLaunch(PlanOf("adaptive", builder), head), nullptr);
}

TEST_F(WholeTest, EveryAppWhoseBudgetIsTooShortMustHaveTheCredit) {
  builder.lc_apps[0].tail_need_per_ns = 1.5e-6;
  builder.lc_apps[0].tail_credit = 50;
  const int32_t other = builder.AddLcApp(0.1, 100 * kUs, 300 * kUs, 1.05);
  builder.lc_apps[other].tail_need_per_ns = 1.5e-6;
  const HeadView& head = builder.AddBeTask(be, TaskKind::kLibrary, 5 * kMs);
  EXPECT_NE(FindHold(PlanOf("adaptive", builder), head), nullptr);
  builder.lc_apps[other].blocking_budget_ns = kNever;
  EXPECT_NE(FindLaunch(PlanOf("adaptive", builder), head), nullptr);
}

TEST_F(WholeTest, ACopyBeyondTheBudgetMovesItsSmallestPieceOnCredit) {
  builder.snapshot.copies[1].lc_uses = true;
  builder.lc_apps[0].blocking_budget_ns = 0;
  builder.lc_apps[0].tail_need_per_ns = 1.5e-6;
  const HeadView& copy = builder.AddBeCopy(be, CopyDirection::kHostToDevice, 1 << 20, 27 * kUs);
  EXPECT_NE(FindHold(PlanOf("adaptive", builder), copy), nullptr);
  builder.lc_apps[0].tail_credit = 1;
  EXPECT_TRUE(IsLaunched(PlanOf("adaptive", builder), copy,
                         {.blocks_max = kCopyPieceBytesMin, .reason = Reason::kTailCredit}));
}

TEST_F(WholeTest, TheErrorBarOfAPredictionCounts) {
  HeadView& head = builder.AddBeTask(be, TaskKind::kLibrary, 100 * kUs);
  head.remaining.error_ns = 9 * kUs;
  EXPECT_EQ(FindHold(PlanOf("adaptive", builder), head)->value_ns, 109 * kUs);
  head.remaining.error_ns = 8 * kUs;
  EXPECT_NE(FindLaunch(PlanOf("adaptive", builder), head), nullptr);
}

TEST_F(WholeTest, TheAppThatGotLeastGoesFirst) {
  builder.be_apps[0].attained_ns[kSmTime] = 50 * kMs;
  const int32_t poor = builder.AddBeApp(10 * kMs);
  builder.AddBeHead(be, kernel, 8 * kMs);
  const HeadView& first = builder.AddBeHead(poor, kernel, 100 * kMs);
  builder.AddBeHead(poor, kernel, 8 * kMs);
  const Plan plan = PlanOf("adaptive", builder);
  ASSERT_EQ(plan.launches.size(), 2);
  EXPECT_EQ(plan.launches[0].task, first.task);
  EXPECT_EQ(plan.launches[1].task, builder.head(0).task)
      << "what was just launched counts: " << Describe(plan);
}

// The budget is 109 us: four evictions of 20 us fit together.
class QuotaTest : public WholeTest {
 protected:
  int32_t AddQuotaApp(int32_t quota, int64_t attained_ns = 0) {
    const int32_t app = builder.AddBeApp(attained_ns);
    builder.be_apps.back().quota_capsms = quota;
    return app;
  }
  HeadView& AddHeadOf(int32_t app) { return builder.AddBeHead(app, quick, 8 * kMs); }
  RunningView& AddRunningOf(int32_t app, int32_t capsms) {
    builder.be_apps[static_cast<size_t>(app)].used_capsms = capsms;
    return builder.AddRunningBe(app, quick, 8 * kMs,
                                {{kWholeDevice, Form::kWorkers, false, capsms * 8}});
  }
  static void ExpectHeldByWindow(const Plan& plan, const HeadView& head, int32_t live,
                                 int32_t window) {
    EXPECT_TRUE(IsHeld(plan, head, Reason::kHoldWindow, live, window));
  }

  int32_t quick = builder.AddKernel(20 * kUs);  // M = 8
};

TEST_F(QuotaTest, TasksWithinQuotasRunSideBySideWithALaneEach) {
  for (int i = 0; i < kQuotaLanes; ++i) AddHeadOf(AddQuotaApp(12));
  const HeadView& last = AddHeadOf(AddQuotaApp(12));
  const Plan plan = PlanOf("adaptive", builder);
  EXPECT_EQ(plan.launches.size(), kQuotaLanes) << Describe(plan);
  for (int i = 0; i < kQuotaLanes; ++i) {
    const PlannedLaunch* launch = FindLaunch(plan, builder.head(static_cast<size_t>(i)));
    ASSERT_NE(launch, nullptr) << i;
    EXPECT_EQ(launch->workers, 12 * 8) << i;
  }
  ExpectHeldByWindow(plan, last, kQuotaLanes, kQuotaLanes);
}

TEST_F(QuotaTest, TasksBesideOthersLeaveWithinTheBudgetTogether) {
  for (int i = 0; i < 2; ++i) AddRunningOf(AddQuotaApp(12), 12);
  const HeadView& third = AddHeadOf(AddQuotaApp(12));
  EXPECT_NE(FindLaunch(PlanOf("adaptive", builder), third), nullptr);
  builder.heads[0].eviction_ns = builder.heads[0].eviction_p99_ns = 70 * kUs;
  EXPECT_TRUE(IsHeld(PlanOf("adaptive", builder), third, Reason::kHoldBlocking));
}

// Then the third would run on SMs of the others.
TEST_F(QuotaTest, QuotasBeyondTheDeviceLetTwoTasksRun) {
  for (int i = 0; i < 2; ++i) AddHeadOf(AddQuotaApp(60));
  const HeadView& third = AddHeadOf(AddQuotaApp(60));
  ExpectHeldByWindow(PlanOf("adaptive", builder), third, 2, kBeWindowPerPlace);
  builder.be_apps.back().quota_capsms = 12;
  EXPECT_NE(FindLaunch(PlanOf("adaptive", builder), third), nullptr) << "60 + 60 + 12";
}

TEST_F(QuotaTest, CapSmsInUseLeaveTheThirdTaskNoRoom) {
  for (int i = 0; i < 2; ++i) AddRunningOf(AddQuotaApp(60), 60);
  const HeadView& third = AddHeadOf(AddQuotaApp(13));
  ExpectHeldByWindow(PlanOf("adaptive", builder), third, 2, kBeWindowPerPlace);
  builder.be_apps.back().quota_capsms = 12;
  EXPECT_NE(FindLaunch(PlanOf("adaptive", builder), third), nullptr);
}

TEST_F(QuotaTest, ATaskWithoutQuotaIsNoThirdAndHasNoThirdBesideIt) {
  AddRunningOf(AddQuotaApp(12), 12);
  RunningView& second = AddRunningOf(AddQuotaApp(12), 12);
  const HeadView& all = AddHeadOf(be);
  ExpectHeldByWindow(PlanOf("adaptive", builder), all, 2, kBeWindowPerPlace);
  builder.heads.clear();
  const HeadView& within = AddHeadOf(AddQuotaApp(12));
  EXPECT_NE(FindLaunch(PlanOf("adaptive", builder), within), nullptr);
  second.task.app = be;
  ExpectHeldByWindow(PlanOf("adaptive", builder), within, 2, kBeWindowPerPlace);
}

// The app that is next by weight cannot use the SMs that a quota leaves to another.
TEST_F(QuotaTest, SmsWithinAQuotaAreLeftToNoOtherApp) {
  AddRunningOf(AddQuotaApp(12), 12).task.followed = true;
  const HeadView& head = AddHeadOf(AddQuotaApp(24, 30 * kMs));
  EXPECT_NE(FindLaunch(PlanOf("adaptive", builder), head), nullptr);
  builder.be_apps.back().quota_capsms = 0;
  ExpectHeldByWindow(PlanOf("adaptive", builder), head, 1, kBeWindowPerPlace);
}

// With one queue an app, the next task of the app that is behind is no head yet.
TEST_F(WholeTest, ThePlaceBehindARunningTaskIsLeftToItsAppWhileThatIsNext) {
  const int32_t other = builder.AddBeApp(30 * kMs);
  RunningView& running = builder.AddRunningBe(be, kernel, 8 * kMs, {{kWholeDevice}});
  const HeadView& head = builder.AddBeHead(other, kernel, 8 * kMs);
  EXPECT_NE(FindLaunch(PlanOf("adaptive", builder), head), nullptr) << "nothing follows it";
  running.task.followed = true;
  EXPECT_TRUE(IsHeld(PlanOf("adaptive", builder), head, Reason::kHoldWindow));
  builder.be_apps[0].attained_ns[kSmTime] = 30 * kMs;
  EXPECT_NE(FindLaunch(PlanOf("adaptive", builder), head), nullptr) << "its turn has come";
}

// As above, where both heads come in one plan.
TEST_F(WholeTest, ThePlaceBehindALaunchIsLeftToItsAppWhileThatIsNext) {
  const int32_t other = builder.AddBeApp(30 * kMs);
  builder.AddBeHead(be, kernel, 8 * kMs).followed = true;
  const HeadView& head = builder.AddBeHead(other, kernel, 8 * kMs);
  const Plan plan = PlanOf("adaptive", builder);
  EXPECT_EQ(plan.launches.size(), 1);
  EXPECT_EQ(FindHold(plan, head)->reason, Reason::kHoldWindow);
}

// Its last workers leave, nothing is left to claim, and its successor is next.
TEST_F(WholeTest, APlaceThatADrainingTaskHasLeftIsLeftToItsApp) {
  const int32_t other = builder.AddBeApp(30 * kMs);
  RunningView& running =
      builder.AddRunningBe(be, kernel, 100 * kUs, {{kWholeDevice, Form::kWorkers, true}});
  running.task.followed = true;
  const HeadView& head = builder.AddBeHead(other, kernel, 8 * kMs);
  EXPECT_NE(FindLaunch(PlanOf("adaptive", builder), head), nullptr);
  running.draining = true;
  EXPECT_EQ(FindHold(PlanOf("adaptive", builder), head)->reason, Reason::kHoldWindow);
}

// Queries take longer after BE work, which has had its share of time.
TEST_F(WholeTest, BeWorkPausesUntilItsNextShareOfTimeBegins) {
  const RunningView& running = builder.AddRunningBe(be, kernel, 8 * kMs, {{kWholeDevice}});
  const HeadView& head = builder.AddBeHead(be, kernel, 8 * kMs);
  const TimeNs until_ns = builder.snapshot.be_paused_until_ns = builder.snapshot.now_ns + 5 * kMs;
  const Plan plan = PlanOf("adaptive", builder);
  EXPECT_TRUE(plan.launches.empty()) << Describe(plan);
  EXPECT_TRUE(IsEvicted(plan, running.task, kWholeDevice, Reason::kHoldDuty));
  EXPECT_TRUE(IsHeld(plan, head, Reason::kHoldDuty, {}, until_ns));
  EXPECT_EQ(plan.replan_at_ns, until_ns);
  builder.AddRunningLc(lc, kWholeDevice);
  EXPECT_EQ(PlanOf("adaptive", builder).evictions.size(), 1) << "for LC, and once";
  EXPECT_FALSE(PlanOf("adaptive:evict", builder).replan_at_ns == until_ns) << "it is forced";
}

TEST_F(WholeTest, BeWorkRunsInItsShareOfTimeAndAsksForItsEnd) {
  const HeadView& head = builder.AddBeHead(be, kernel, 8 * kMs);
  const TimeNs end_ns = builder.snapshot.be_pauses_at_ns = builder.snapshot.now_ns + 3 * kMs;
  const Plan plan = PlanOf("adaptive", builder);
  EXPECT_NE(FindLaunch(plan, head), nullptr);
  EXPECT_EQ(plan.replan_at_ns, end_ns);
}

// There it runs beside queries, whose measured speed counts.
TEST_F(ElasticTest, OnASplitBeWorkDoesNotPause) {
  const HeadView& head = builder.AddBeHead(be, kernel, 8 * kMs);
  builder.snapshot.be_paused_until_ns = builder.snapshot.now_ns + 5 * kMs;
  EXPECT_NE(FindLaunch(PlanOf("adaptive", builder), head, be_place), nullptr);
}

TEST_F(WholeTest, WithoutLcAppsEverythingRuns) {
  SnapshotBuilder idle;
  const int32_t app = idle.AddBeApp();
  const HeadView& longest = idle.AddBeHead(app, idle.AddKernel(kNever), 100 * kMs);
  const HeadView& copy = idle.AddBeCopy(app, CopyDirection::kPeer, 1 << 30, 20 * kMs);
  const Plan plan = PlanOf("adaptive", idle);
  EXPECT_TRUE(IsLaunched(plan, longest, {.reason = Reason::kIdleDevice}));
  EXPECT_EQ(FindLaunch(plan, copy)->blocks_max, 0);
}

TEST_F(WholeTest, ACopyIsCutToTheBudgetAlsoWhileNoQueryIsActive) {
  // 256 MB in 4.84 ms; half of the budget of 108.8 us moves 3 MB.
  for (CopyState& copies : builder.snapshot.copies) copies.lc_uses = true;
  const HeadView& copy =
      builder.AddBeCopy(be, CopyDirection::kHostToDevice, int64_t{256} << 20, 4'844 * kUs);
  const HeadView& second = builder.AddBeCopy(be, CopyDirection::kHostToDevice, 1 << 20, 27 * kUs);
  const HeadView& other_way =
      builder.AddBeCopy(be, CopyDirection::kDeviceToHost, 1 << 20, 27 * kUs);
  const Plan plan = PlanOf("adaptive", builder);
  const PlannedLaunch* piece = FindLaunch(plan, copy);
  ASSERT_NE(piece, nullptr);
  EXPECT_EQ(piece->reason, Reason::kFillsGap);
  EXPECT_EQ(piece->lane_class, LaneClass::kCopy);
  EXPECT_EQ(piece->blocks_max % 4'096, 0);
  EXPECT_NEAR(static_cast<double>(piece->blocks_max), 268'435'456. * 54.4 / 4'844, 4'097);
  EXPECT_EQ(FindHold(plan, second)->reason, Reason::kHoldCopies);
  EXPECT_NE(FindLaunch(plan, other_way), nullptr) << "the link is full duplex";
}

// By a sixteenth at a load of 0.3 the p99 rises by a tenth.
TEST_F(WholeTest, CopiesThatSlowAnLcAppBeyondItsBoundRunWhileNoQueryIsActive) {
  builder.lc_apps[0].speed_beside_copies = {1, 0.94F, 1, 0.93F};
  const HeadView& in =
      builder.AddBeCopy(be, CopyDirection::kHostToDevice, int64_t{64} << 20, 1'200 * kUs);
  const HeadView& out =
      builder.AddBeCopy(be, CopyDirection::kDeviceToHost, int64_t{64} << 20, 1'200 * kUs);
  Plan plan = PlanOf("adaptive", builder);
  ASSERT_NE(FindLaunch(plan, in), nullptr);
  // A query that meets it is delayed by half of the budget of 108.8 us at most: 54.4 us x 0.94 /
  // 0.06 of 1,200 us.
  EXPECT_NEAR(static_cast<double>(FindLaunch(plan, in)->blocks_max), (64 << 20) * 0.7103, 1e5);
  const HeadView& second =
      builder.AddBeCopy(be, CopyDirection::kHostToDevice, int64_t{64} << 20, 1'200 * kUs);
  for (CopyState& copies : builder.snapshot.copies) copies.be_limit = 5;
  EXPECT_EQ(FindLaunch(PlanOf("adaptive", builder), second), nullptr) << "one piece at a time";
  builder.AddQuery(lc, kNever);
  plan = PlanOf("adaptive", builder);
  const PlannedHold* held = FindHold(plan, in);
  ASSERT_NE(held, nullptr);
  EXPECT_EQ(held->reason, Reason::kHoldBlocking);
  EXPECT_GT(held->value_ns, held->limit_ns);
  EXPECT_TRUE(IsLaunched(plan, out, {.blocks_max = 0})) << "this direction slows nobody";
}

// Else nobody would see that a direction was closed for nothing.
TEST_F(WholeTest, ACopyThatSlowsAnLcAppRunsBesideAQueryOnCredit) {
  builder.lc_apps[0].speed_beside_copies = {1, 0.94F, 1, 0.94F};
  builder.lc_apps[0].tail_need_per_ns = 1.5e-6;
  builder.AddQuery(lc, kNever);
  const HeadView& in =
      builder.AddBeCopy(be, CopyDirection::kHostToDevice, int64_t{64} << 20, 1'200 * kUs);
  EXPECT_NE(FindHold(PlanOf("adaptive", builder), in), nullptr);
  builder.lc_apps[0].tail_credit = kTailCreditMax;
  EXPECT_TRUE(IsLaunched(PlanOf("adaptive", builder), in, {.reason = Reason::kTailCredit}));
  builder.AddRunningBe(be, -1, 26 * kUs, {{kWholeDevice, Form::kMemcpy}});
  builder.running.back().task.kind = TaskKind::kMemcpy;
  builder.running.back().task.direction = CopyDirection::kHostToDevice;
  builder.running.back().task.pinned = true;
  EXPECT_EQ(FindLaunch(PlanOf("adaptive", builder), in), nullptr) << "one at a time";
}

TEST_F(WholeTest, PageableCopiesSlowNobody) {
  builder.lc_apps[0].speed_beside_copies = {1, 0.5F, 0.5F, 0.5F};
  HeadView& in = builder.AddBeCopy(be, CopyDirection::kHostToDevice, 1 << 20, 10 * kUs);
  in.pinned = false;
  builder.AddQuery(lc, kNever);
  EXPECT_NE(FindLaunch(PlanOf("adaptive", builder), in), nullptr);
}

TEST_F(WholeTest, ACopyCountsWithThoseThatRun) {
  builder.lc_apps[0].speed_beside_copies = {1, 0.995F, 0.995F, 0.9F};
  const HeadView& out =
      builder.AddBeCopy(be, CopyDirection::kDeviceToHost, int64_t{64} << 20, 1'200 * kUs);
  builder.AddQuery(lc, kNever);
  EXPECT_NE(FindLaunch(PlanOf("adaptive", builder), out), nullptr);
  builder.AddRunningBe(be, -1, 26 * kUs, {{kWholeDevice, Form::kMemcpy}});
  builder.running.back().task.kind = TaskKind::kMemcpy;
  builder.running.back().task.direction = CopyDirection::kHostToDevice;
  builder.running.back().task.pinned = true;
  EXPECT_EQ(FindLaunch(PlanOf("adaptive", builder), out), nullptr);
}

TEST_F(WholeTest, CopiesSlowNobodyWithoutALimit) {
  SnapshotBuilder loose;
  const int32_t app = loose.AddBeApp();
  const int32_t service = loose.AddLcApp(0.3, 667 * kUs, 2'176 * kUs, 0);
  loose.lc_apps[0].speed_beside_copies = {1, 0.5F, 0.5F, 0.5F};
  loose.AddQuery(service, kNever);
  const HeadView& in = loose.AddBeCopy(app, CopyDirection::kHostToDevice, 1 << 26, 1'200 * kUs);
  EXPECT_TRUE(IsLaunched(PlanOf("adaptive", loose), in, {.blocks_max = 0}));
}

TEST_F(WholeTest, PageableCopiesRunInShortPiecesOneAtATimeBesideLcApps) {
  // No LC app copies anything; 16 MB at 10 GB/s.
  SnapshotBuilder idle;
  for (SnapshotBuilder* each : {&builder, &idle}) {
    const int32_t app = each == &idle ? idle.AddBeApp() : be;
    HeadView& in = each->AddBeCopy(app, CopyDirection::kHostToDevice, 16 << 20, 1'600 * kUs);
    in.pinned = false;
    HeadView& out = each->AddBeCopy(app, CopyDirection::kDeviceToHost, 16 << 20, 1'600 * kUs);
    out.pinned = false;
    const HeadView& peer = each->AddBeCopy(app, CopyDirection::kPeer, 16 << 20, 300 * kUs);
    const Plan plan = PlanOf("adaptive", *each);
    ASSERT_NE(FindLaunch(plan, in), nullptr);
    EXPECT_TRUE(IsLaunched(plan, peer, {.blocks_max = 0}));
    if (each == &idle) {
      EXPECT_EQ(FindLaunch(plan, in)->blocks_max, 0);
      EXPECT_NE(FindLaunch(plan, out), nullptr);
      continue;
    }
    // Half of the budget of 108.8 us.
    EXPECT_NEAR(static_cast<double>(FindLaunch(plan, in)->blocks_max), 16777216. * 54.4 / 1'600,
                4'097);
    EXPECT_EQ(FindLaunch(plan, out), nullptr) << "the host launches both";
  }
}

TEST_F(WholeTest, APageablePieceWaitsForTheOneInFlightAlsoOnCredit) {
  builder.lc_apps[0].blocking_budget_ns = 0;
  builder.lc_apps[0].tail_need_per_ns = 1.5e-6;
  builder.lc_apps[0].tail_credit = 1;
  HeadView& in = builder.AddBeCopy(be, CopyDirection::kHostToDevice, 1 << 20, 27 * kUs);
  in.pinned = false;
  const Plan alone = PlanOf("adaptive", builder);
  EXPECT_TRUE(IsLaunched(alone, in, {.reason = Reason::kTailCredit}));
  builder.AddRunningBe(be, -1, 26 * kUs, {{kWholeDevice, Form::kMemcpy}});
  builder.running.back().task.kind = TaskKind::kMemcpy;
  builder.running.back().task.direction = CopyDirection::kDeviceToHost;
  EXPECT_EQ(FindLaunch(PlanOf("adaptive", builder), in), nullptr);
}

TEST_F(WholeTest, ASlowPageableCopyIsNotHeldForEver) {
  SnapshotBuilder loose;
  const int32_t app = loose.AddBeApp();
  loose.AddLcApp(0.1, 100 * kUs, 300 * kUs, 0);  // no bound, no budget
  HeadView& slow = loose.AddBeCopy(app, CopyDirection::kHostToDevice, 1 << 20, 20 * kMs);
  slow.pinned = false;
  EXPECT_TRUE(IsLaunched(PlanOf("adaptive", loose), slow, {.blocks_max = kCopyPieceBytesMin}));
}

// The smallest piece may take longer than kPageablePieceNs, but not longer than its direction has.
TEST_F(WholeTest, ASlowPageableCopyTakesItsPieceFromTheBudgetOfItsDirection) {
  builder.snapshot.copies[1].be_limit = 3;
  builder.snapshot.copies[1].lc_uses = true;
  builder.lc_apps[0].blocking_budget_ns = 400 * kUs;  // half of it for pieces
  HeadView& slow = builder.AddBeCopy(be, CopyDirection::kHostToDevice, 1 << 20, 3'300 * kUs);
  slow.pinned = false;
  EXPECT_NE(FindHold(PlanOf("adaptive", builder), slow), nullptr) << "a piece takes 206 us";
  slow.remaining.duration_ns = 2'400 * kUs;
  const HeadView& held = builder.AddBeCopy(be, CopyDirection::kHostToDevice, 1 << 16, 60 * kUs);
  const Plan plan = PlanOf("adaptive", builder);
  EXPECT_TRUE(IsLaunched(plan, slow, {.blocks_max = kCopyPieceBytesMin})) << "150 us";
  EXPECT_NE(FindHold(plan, held), nullptr) << "50 us are left";
}

TEST_F(WholeTest, TheLastPieceOfASlowPageableCopyIsItsRest) {
  builder.lc_apps[0].blocking_budget_ns = 400 * kUs;
  HeadView& slow = builder.AddBeCopy(be, CopyDirection::kHostToDevice, 10'000, 150 * kUs);
  slow.pinned = false;
  EXPECT_TRUE(IsLaunched(PlanOf("adaptive", builder), slow, {.blocks_max = 10'000}));
}

TEST_F(WholeTest, CopiesOfOneDirectionShareTheBudget) {
  builder.snapshot.copies[1].be_limit = 3;
  builder.snapshot.copies[1].lc_uses = true;
  builder.AddRunningBe(be, -1, 26 * kUs, {{kWholeDevice, Form::kMemcpy}});
  builder.running.back().task.kind = TaskKind::kMemcpy;
  builder.running.back().task.direction = CopyDirection::kHostToDevice;
  const HeadView& fits = builder.AddBeCopy(be, CopyDirection::kHostToDevice, 1 << 20, 28 * kUs);
  const HeadView& held = builder.AddBeCopy(be, CopyDirection::kHostToDevice, 1 << 20, 27 * kUs);
  const Plan plan = PlanOf("adaptive", builder);
  EXPECT_NE(FindLaunch(plan, fits), nullptr);
  EXPECT_TRUE(IsHeld(plan, held, Reason::kHoldBlocking))
      << "0.4 us move less than the smallest piece";
}

TEST_F(WholeTest, WhileAQueryIsActivePiecesAreSmallAndADirectionThatLcNeverUsesIsFree) {
  builder.snapshot.copies[1].lc_uses = true;
  builder.AddQuery(lc, kNever);
  const HeadView& in = builder.AddBeCopy(be, CopyDirection::kHostToDevice, 1 << 20, 27 * kUs);
  const HeadView& out =
      builder.AddBeCopy(be, CopyDirection::kDeviceToHost, int64_t{256} << 20, 4'844 * kUs);
  const Plan plan = PlanOf("adaptive", builder);
  ASSERT_TRUE(IsLaunched(plan, in, {.reason = Reason::kFillsGap}));
  EXPECT_NEAR(static_cast<double>(FindLaunch(plan, in)->blocks_max), 1'048'576. * 13.6 / 27, 4'097);
  EXPECT_TRUE(IsLaunched(plan, out, {.blocks_max = 0})) << "the whole of it";
}

TEST_F(WholeTest, ACopyMayRunBesideAQueryThatHasHeadroom) {
  builder.snapshot.copies[1].lc_uses = true;
  builder.AddQuery(lc, 50 * kUs);
  const HeadView& copy = builder.AddBeCopy(be, CopyDirection::kHostToDevice, 1 << 18, 7 * kUs);
  EXPECT_EQ(FindLaunch(PlanOf("adaptive", builder), copy)->reason, Reason::kFitsHeadroom);
  builder.queries[0].headroom_ns = -5;
  EXPECT_TRUE(IsHeld(PlanOf("adaptive", builder), copy, Reason::kHoldHeadroom, {}, -5));
}

// Arrangement changes.

TEST_F(ElasticTest, BeOnTheWholeDeviceLeavesForABetterLayout) {
  const RunningView& running = builder.AddRunningBe(be, kernel, 8 * kMs, {{kWholeDevice}});
  const Plan plan = PlanOf("adaptive", builder);
  EXPECT_EQ(plan.routes[0].place, lc_place);
  EXPECT_TRUE(IsEvicted(plan, running.task, kWholeDevice, Reason::kEvictForLayout));
}

TEST_F(ElasticTest, NothingIsLaunchedBesideLcWorkOfTheOldLayout) {
  builder.AddRunningLc(lc, kWholeDevice);
  const HeadView& head = builder.AddBeHead(be, kernel, 8 * kMs);
  const Plan plan = PlanOf("adaptive", builder);
  EXPECT_EQ(plan.routes[0].place, lc_place);
  EXPECT_EQ(FindLaunch(plan, head), nullptr) << Describe(plan);
  EXPECT_EQ(FindHold(plan, head)->reason, Reason::kHoldLcActive);
}

TEST(LayoutChangeTest, LcKeepsItsRouteUntilLongBlockTasksHaveLeftTheNewOne) {
  for (const bool leaving : {false, true}) {
    SnapshotBuilder builder;
    const int32_t lc = builder.AddLcApp(0.3, 546 * kUs, 1'548 * kUs, 1.05);
    const int32_t be = builder.AddBeApp();
    const int32_t long_kernel = builder.AddKernel(2'550 * kUs);
    // The pair was refitted: 84 SMs are not enough any more, 108 are.
    builder.Pair(lc, long_kernel, 84).lc_speed = 0.9f;
    builder.Pair(lc, long_kernel, 108).lc_speed = 1.0f;
    const RunningView& running = builder.AddRunningBe(
        be, long_kernel, 80 * kMs, {{builder.BePlace(84), Form::kWorkers, leaving}});
    builder.snapshot.in_force = {.split = builder.Split(84), .segments = SegmentsRun::kOnSplit};
    const HeadView& head = builder.AddBeHead(be, long_kernel, 80 * kMs);
    const Plan plan = PlanOf("adaptive", builder);
    EXPECT_EQ(plan.routes[0].place, builder.LcPlace(84)) << Describe(plan);
    EXPECT_EQ(FindEviction(plan, running.task, builder.BePlace(84)) != nullptr, !leaving);
    EXPECT_EQ(plan.launches.size(), 0);
    EXPECT_TRUE(IsHeld(plan, head, Reason::kHoldBlocking, 2'550 * kUs));
    EXPECT_EQ(plan.arrangement, builder.snapshot.in_force) << "the change waits";
    builder.running.clear();
    EXPECT_EQ(PlanOf("adaptive", builder).arrangement.split, builder.Split(108));
  }
}

// Its queries would say nothing of the split that they do not use yet.
TEST(LayoutChangeTest, NoTrialBeginsWhileLcKeepsItsOldRoute) {
  for (const bool waits : {false, true}) {
    SnapshotBuilder builder;
    const int32_t lc = builder.AddLcApp(0.3, 546 * kUs, 1'548 * kUs, 1.05);
    const int32_t be = builder.AddBeApp();
    const int32_t kernel = builder.AddKernel(2'550 * kUs);
    builder.Pair(lc, kernel, 84).lc_speed = 0.9f;
    builder.Pair(lc, kernel, 108).lc_speed = 0.47f;
    std::vector<float> hoped(builder.splits.size());
    hoped[static_cast<size_t>(builder.Split(108))] = 1.0f;
    builder.snapshot.pairs.hoped = hoped;
    builder.snapshot.trials_open = true;
    if (waits) builder.AddRunningBe(be, kernel, 80 * kMs, {{builder.BePlace(84)}});
    builder.snapshot.in_force.split = builder.Split(84);
    builder.AddBeHead(be, kernel, 80 * kMs);
    Plan plan = PlanOf("adaptive", builder);
    EXPECT_EQ(plan.arrangement.TriedSplit(), waits ? -1 : builder.Split(108)) << Describe(plan);
    builder.snapshot.in_force = {.split = builder.Split(108), .trial_kernel = kernel};
    plan = PlanOf("adaptive", builder);
    EXPECT_EQ(plan.arrangement.TriedSplit(), builder.Split(108)) << "one that has begun goes on";
  }
}

TEST(LayoutChangeTest, ATrialSaysWhatItHopesForAndWhatIsKnown) {
  SnapshotBuilder builder;
  const int32_t lc = builder.AddLcApp(0.3, 546 * kUs, 1'548 * kUs, 1.2);
  const int32_t be = builder.AddBeApp();
  const int32_t kernel = builder.AddKernel(2'550 * kUs);
  builder.Pair(lc, kernel, 84).lc_speed = 0.2f;
  builder.Pair(lc, kernel, 108).lc_speed = 0.97f;
  std::vector<float> hoped(builder.splits.size());
  hoped[static_cast<size_t>(builder.Split(84))] = 0.96f;
  builder.snapshot.pairs.hoped = hoped;
  builder.snapshot.trials_open = true;
  builder.AddBeHead(be, kernel, 80 * kMs);
  const Plan plan = PlanOf("adaptive", builder);
  ASSERT_EQ(plan.arrangement.TriedSplit(), builder.Split(84)) << Describe(plan);
  EXPECT_EQ(plan.choice.kind, ChoiceKind::kLayout);
  EXPECT_EQ(plan.choice.chosen, 84);
  EXPECT_EQ(plan.choice.runner_up, 108);
  EXPECT_GT(plan.choice.value, plan.choice.runner_up_value);
  EXPECT_GT(plan.choice.shift.shift_ns, plan.choice.runner_up_shift.shift_ns);
  EXPECT_LE(plan.choice.shift.shift_ns, plan.choice.shift.limit_ns);
  EXPECT_GT(plan.choice.runner_up_shift.shift_ns, 0);
}

TEST(LayoutChangeTest, LcDoesNotStayForWorkThatBlocksTheOldRouteAsWell) {
  SnapshotBuilder builder;
  const int32_t lc = builder.AddLcApp(0.3, 546 * kUs, 1'548 * kUs, 1.05);
  const int32_t be = builder.AddBeApp();
  const int32_t long_kernel = builder.AddKernel(2'550 * kUs);
  builder.Pair(lc, long_kernel, 108).lc_speed = 1.0f;
  const RunningView& running =
      builder.AddRunningBe(be, long_kernel, 80 * kMs, {{builder.LcPlace(84)}});
  builder.snapshot.in_force.split = builder.Split(84);
  const Plan plan = PlanOf("adaptive", builder);
  EXPECT_EQ(plan.routes[0].place, builder.LcPlace(108)) << Describe(plan);
  EXPECT_NE(FindEviction(plan, running.task, builder.LcPlace(84)), nullptr);
}

}  // namespace
}  // namespace gpushare::core::testing
