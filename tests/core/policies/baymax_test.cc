// baymax: headroom, the T_q gate, copies, graphs in segments, and the window without a target.

#include <gtest/gtest.h>

#include "src/core/base/tuning.h"
#include "tests/core/policies/snapshot_builder.h"

namespace gpushare::core::testing {
namespace {

class BaymaxTest : public ::testing::Test {
 protected:
  SnapshotBuilder builder;
  int32_t lc = builder.AddLcAppWithTarget(0.3, 1 * kMs, 10 * kMs);
  int32_t be = builder.AddBeApp();
  int32_t kernel = builder.AddKernel(40 * kUs);
};

TEST_F(BaymaxTest, ABeKernelIsDebitedFromTheHeadroomThatTheNextOneSees) {
  builder.AddQuery(lc, 5 * kMs);
  const HeadView& first = builder.AddBeHead(be, kernel, 3 * kMs);
  const HeadView& second = builder.AddBeHead(be, kernel, 3 * kMs);
  const HeadView& third = builder.AddBeHead(be, kernel, 2 * kMs);
  const Plan plan = PlanOf("baymax", builder);
  EXPECT_TRUE(IsLaunched(plan, first, {.form = Form::kOriginal, .reason = Reason::kFitsHeadroom}));
  EXPECT_TRUE(IsHeld(plan, second, Reason::kHoldHeadroom, 3 * kMs, 2 * kMs));
  EXPECT_NE(FindLaunch(plan, third), nullptr) << "a shorter one behind it still fits";
}

TEST_F(BaymaxTest, EveryActiveQuerysHeadroomCounts) {
  builder.AddQuery(lc, 5 * kMs);
  builder.AddQuery(lc, 1 * kMs);
  const HeadView& head = builder.AddBeHead(be, kernel, 2 * kMs);
  EXPECT_NE(FindHold(PlanOf("baymax", builder), head), nullptr);
}

// A prediction that may be off by 200 us takes 200 us more of the headroom, and of T_q.
TEST_F(BaymaxTest, TheErrorOfAPredictionIsChargedToo) {
  builder.AddQuery(lc, 3 * kMs);
  HeadView& first = builder.AddBeHead(be, kernel, 1 * kMs);
  HeadView& second = builder.AddBeHead(be, kernel, 1 * kMs);
  first.remaining.error_ns = 800 * kUs;
  second.remaining.error_ns = 200 * kUs;
  EXPECT_NE(FindLaunch(PlanOf("baymax", builder), second), nullptr);
  second.remaining.error_ns += 1;
  const Plan plan = PlanOf("baymax", builder);
  ASSERT_NE(FindHold(plan, second), nullptr);
  EXPECT_EQ(FindHold(plan, second)->value_ns, 1'200 * kUs + 1);
  EXPECT_EQ(FindHold(plan, second)->limit_ns, 1'200 * kUs);
  builder.queries.clear();
  builder.snapshot.queued_ns = 7'200 * kUs;
  first.remaining.error_ns = 800 * kUs + 1;
  EXPECT_EQ(FindHold(PlanOf("baymax", builder), first)->reason, Reason::kHoldQueuedTime);
}

// The ablation of 7.3: a query that was promised 5 ms has 1 ms left by eq. 3 and 3 ms by eq. 4,
// because BE kernels ran at the same time.
TEST_F(BaymaxTest, WithoutTheRefillTimeThatConcurrencySavedDoesNotComeBack) {
  builder.AddQuery(lc, 3 * kMs);
  builder.queries[0].serial_headroom_ns = 1 * kMs;
  const HeadView& head = builder.AddBeHead(be, kernel, 2 * kMs);
  EXPECT_NE(FindLaunch(PlanOf("baymax", builder), head), nullptr);
  EXPECT_TRUE(IsHeld(PlanOf("baymax:nc", builder), head, Reason::kHoldHeadroom, {}, 1 * kMs));
  builder.queries[0].serial_headroom_ns = 2 * kMs;
  EXPECT_NE(FindLaunch(PlanOf("baymax:nc", builder), head), nullptr);
  builder.queries[0].headroom_ns = 1 * kMs;
  EXPECT_NE(FindHold(PlanOf("baymax:nc", builder), head), nullptr) << "never more than baymax";
}

// The ablation of 7.4.
TEST_F(BaymaxTest, WithoutManagementOfPcieCopiesAreLaunchedAsTheyCome) {
  builder.AddQuery(lc, 1 * kMs);
  builder.snapshot.copies[1] = {1, 0, 1};
  const HeadView& copy = builder.AddBeCopy(be, CopyDirection::kHostToDevice, 1 << 20, 5 * kMs);
  const HeadView& head = builder.AddBeHead(be, kernel, 2 * kMs);
  const Plan plan = PlanOf("baymax:np", builder);
  EXPECT_NE(FindLaunch(plan, copy), nullptr);
  EXPECT_EQ(FindHold(plan, head)->reason, Reason::kHoldHeadroom);
  EXPECT_NE(FindHold(PlanOf("baymax", builder), copy), nullptr);
}

// T_q <= T_tgt alone would let a query that arrives now miss: the gate is T_tgt - T_self = 9 ms.
TEST_F(BaymaxTest, TheGateOnQueuedTimeLeavesRoomForTheQueryItself) {
  builder.snapshot.queued_ns = 4 * kMs;
  const HeadView& fits = builder.AddBeHead(be, kernel, 5 * kMs);
  const HeadView& held = builder.AddBeHead(be, kernel, 1);
  const Plan plan = PlanOf("baymax", builder);
  EXPECT_TRUE(IsLaunched(plan, fits, {.reason = Reason::kIdleDevice}));
  EXPECT_TRUE(IsHeld(plan, held, Reason::kHoldQueuedTime, 9 * kMs + 1, 9 * kMs));
}

// Held by the gate, the LC task that waits for it would wait for ever. The gate stays for the rest.
TEST_F(BaymaxTest, WorkThatLcWaitsForPassesTheGateOnceTheDeviceIsEmpty) {
  const HeadView& other = builder.AddBeHead(be, kernel, 1 * kMs);
  HeadView& awaited = builder.AddBeHead(be, kernel, 20 * kMs);
  EXPECT_TRUE(IsHeld(PlanOf("baymax", builder), awaited, Reason::kHoldQueuedTime));
  awaited.awaited_by_lc = true;
  Plan plan = PlanOf("baymax", builder);
  EXPECT_NE(FindLaunch(plan, awaited), nullptr);
  EXPECT_TRUE(IsHeld(plan, other, Reason::kHoldQueuedTime));
  builder.snapshot.queued_ns = 1 * kMs;
  plan = PlanOf("baymax", builder);
  EXPECT_TRUE(IsHeld(plan, awaited, Reason::kHoldQueuedTime)) << "the device is not empty";
  EXPECT_TRUE(IsHeld(plan, other, Reason::kHoldQueuedTime)) << "it would never be";
  builder.snapshot.queued_ns = 0;
  builder.AddQuery(lc, 5 * kMs);
  plan = PlanOf("baymax", builder);
  EXPECT_TRUE(IsHeld(plan, awaited, Reason::kHoldQueuedTime)) << "a query is active";
  EXPECT_NE(FindLaunch(plan, other), nullptr);
}

TEST_F(BaymaxTest, APinnedCopyThatLcWaitsForPassesTheGateToo) {
  builder.snapshot.copies[1] = {0, 0, 5};
  HeadView& copy = builder.AddBeCopy(be, CopyDirection::kHostToDevice, 1 << 30, 20 * kMs);
  EXPECT_TRUE(IsHeld(PlanOf("baymax", builder), copy, Reason::kHoldQueuedTime));
  copy.awaited_by_lc = true;
  EXPECT_NE(FindLaunch(PlanOf("baymax", builder), copy), nullptr);
}

// No query is active, so that headroom bounds nothing, and N_tr is 5 on an H200.
TEST_F(BaymaxTest, PinnedCopiesLeaveTimeForAQueryThatArrivesBehindThem) {
  builder.snapshot.copies[1] = {0, 0, 5};
  builder.snapshot.copies[2] = {0, 0, 5};
  builder.snapshot.queued_ns = 2 * kMs;
  const HeadView& in = builder.AddBeCopy(be, CopyDirection::kHostToDevice, 1 << 20, 4 * kMs);
  const HeadView& out = builder.AddBeCopy(be, CopyDirection::kDeviceToHost, 1 << 20, 3 * kMs);
  const HeadView& beyond = builder.AddBeCopy(be, CopyDirection::kHostToDevice, 1 << 20, 1);
  const HeadView& kernel_beyond = builder.AddBeHead(be, kernel, 1);
  const Plan plan = PlanOf("baymax", builder);
  EXPECT_NE(FindLaunch(plan, in), nullptr);
  EXPECT_NE(FindLaunch(plan, out), nullptr);
  for (const HeadView* held : {&beyond, &kernel_beyond}) {
    EXPECT_TRUE(IsHeld(plan, *held, Reason::kHoldQueuedTime, 9 * kMs + 1, 9 * kMs));
  }
}

TEST_F(BaymaxTest, LcGoesFirstInOrderOfSubmissionAndCountsAsQueued) {
  const HeadView& be_head = builder.AddBeHead(be, kernel, 9 * kMs);
  const HeadView& one = builder.AddLcHead(lc);
  const HeadView& two = builder.AddLcHead(lc, 2);
  const Plan plan = PlanOf("baymax", builder);
  ASSERT_EQ(plan.launches.size(), 2);
  EXPECT_EQ(plan.launches[0].task, one.task);
  EXPECT_EQ(plan.launches[1].task, two.task);
  EXPECT_EQ(plan.launches[1].count, 2);
  EXPECT_EQ(FindHold(plan, be_head)->reason, Reason::kHoldQueuedTime);
  EXPECT_EQ(plan.evictions.size(), 0);
}

TEST_F(BaymaxTest, CopiesAreLimitedInEachDirectionAndPinnedOnesAreCharged) {
  builder.AddQuery(lc, 1 * kMs);
  builder.snapshot.copies[1] = {1, 0, 2};
  builder.snapshot.copies[2] = {0, 0, 2};
  const auto copy = [&](CopyDirection direction, int64_t ns, bool pinned) -> HeadView& {
    HeadView& head = builder.AddBeCopy(be, direction, 1 << 20, ns);
    head.pinned = pinned;
    return head;
  };
  const HeadView& pageable = copy(CopyDirection::kHostToDevice, 5 * kMs, false);
  const HeadView& beyond = copy(CopyDirection::kHostToDevice, 5 * kMs, false);
  const HeadView& pinned = copy(CopyDirection::kDeviceToHost, 800 * kUs, true);
  const HeadView& charged = copy(CopyDirection::kDeviceToHost, 300 * kUs, true);
  const Plan plan = PlanOf("baymax", builder);
  EXPECT_NE(FindLaunch(plan, pageable), nullptr) << "a pageable copy is not charged to headroom";
  EXPECT_TRUE(IsHeld(plan, beyond, Reason::kHoldCopies, 1, 1));
  EXPECT_NE(FindLaunch(plan, pinned), nullptr);
  EXPECT_TRUE(IsHeld(plan, charged, Reason::kHoldHeadroom, {}, 200 * kUs));
}

// All pageable copies together move what one of them moves alone.
TEST_F(BaymaxTest, PageableCopiesOfADirectionRunOneAtATimeWhateverEq5Says) {
  for (CopyState& copies : builder.snapshot.copies) copies.be_limit = 5;
  const auto copy = [&](CopyDirection direction, bool pinned) -> HeadView& {
    HeadView& head = builder.AddBeCopy(be, direction, 1 << 20, 50 * kUs);
    head.pinned = pinned;
    return head;
  };
  const HeadView& in = copy(CopyDirection::kHostToDevice, false);
  const HeadView& next = copy(CopyDirection::kHostToDevice, false);
  const HeadView& out = copy(CopyDirection::kDeviceToHost, false);
  const HeadView& pinned = copy(CopyDirection::kHostToDevice, true);
  const HeadView& more = copy(CopyDirection::kHostToDevice, true);
  const Plan plan = PlanOf("baymax", builder);
  EXPECT_NE(FindLaunch(plan, in), nullptr);
  EXPECT_TRUE(IsHeld(plan, next, Reason::kHoldCopies, 1, 1));
  EXPECT_NE(FindLaunch(plan, out), nullptr);
  EXPECT_NE(FindLaunch(plan, pinned), nullptr);
  EXPECT_NE(FindLaunch(plan, more), nullptr);
}

TEST(BaymaxWithoutTargetTest, AWindowBoundsWhatIsIssuedAheadOfEachApp) {
  SnapshotBuilder builder;
  builder.AddLcApp(0.3, 1 * kMs, 3 * kMs, 1.05);
  const int32_t busy = builder.AddBeApp();
  const int32_t free = builder.AddBeApp();
  const int32_t kernel = builder.AddKernel(40 * kUs);
  builder.AddRunningBe(busy, kernel, 1 * kMs, {{kWholeDevice, Form::kOriginal}});
  const HeadView& a = builder.AddBeHead(busy, kernel, 1 * kMs);
  const HeadView& b = builder.AddBeHead(busy, kernel, 1 * kMs);
  const HeadView& c = builder.AddBeHead(free, kernel, 1 * kMs);
  const Plan plan = PlanOf("baymax", builder);
  EXPECT_NE(FindLaunch(plan, a), nullptr);
  EXPECT_TRUE(IsHeld(plan, b, Reason::kHoldWindow, kBeWindowPerApp, kBeWindowPerApp));
  EXPECT_NE(FindLaunch(plan, c), nullptr);
}

// LC and BE apps are counted apart, and both from 0.
TEST(BaymaxWithoutTargetTest, LcTasksOnTheDeviceTakeNoPlaceInTheWindowsOfBeApps) {
  SnapshotBuilder builder;
  const int32_t lc = builder.AddLcApp(0.3, 1 * kMs, 3 * kMs, 1.05);
  const int32_t behind = builder.AddBeApp(0);
  const int32_t ahead = builder.AddBeApp(20 * kMs);
  const int32_t kernel = builder.AddKernel(40 * kUs);
  for (int32_t i = 0; i <= kBeWindowPerApp; ++i) {
    builder.AddRunningLc(lc, kWholeDevice).task.followed = true;
  }
  const HeadView& first = builder.AddBeHead(behind, kernel, 1 * kMs);
  const HeadView& second = builder.AddBeHead(ahead, kernel, 1 * kMs);
  const Plan plan = PlanOf("baymax", builder);
  EXPECT_NE(FindLaunch(plan, first), nullptr);
  EXPECT_NE(FindLaunch(plan, second), nullptr);
}

// With one queue an app, the next task of the app that is behind is no head yet.
TEST(BaymaxWithoutTargetTest, AnAppLeavesTheWindowToTheAppThatIsNextByWeight) {
  SnapshotBuilder builder;
  const int32_t behind = builder.AddBeApp(10 * kMs);
  const int32_t ahead = builder.AddBeApp(20 * kMs);
  const int32_t kernel = builder.AddKernel(40 * kUs);
  RunningView& running =
      builder.AddRunningBe(behind, kernel, 1 * kMs, {{kWholeDevice, Form::kOriginal}});
  const HeadView& head = builder.AddBeHead(ahead, kernel, 1 * kMs);
  EXPECT_NE(FindLaunch(PlanOf("baymax", builder), head), nullptr);
  running.task.followed = true;
  EXPECT_TRUE(IsHeld(PlanOf("baymax", builder), head, Reason::kHoldWindow, 0, kBeWindowPerApp))
      << "the app has nothing on the device";
  // The window is for kernels: a followed copy keeps nobody out of it.
  running.task.kind = TaskKind::kMemcpy;
  EXPECT_NE(FindLaunch(PlanOf("baymax", builder), head), nullptr);
}

TEST(BaymaxWithoutTargetTest, AnAppLeavesTheWindowToWhatFollowsATaskOfTheSamePlan) {
  SnapshotBuilder builder;
  const int32_t behind = builder.AddBeApp(10 * kMs);
  const int32_t ahead = builder.AddBeApp(20 * kMs);
  const int32_t kernel = builder.AddKernel(40 * kUs);
  HeadView& first = builder.AddBeHead(behind, kernel, 1 * kMs);
  const HeadView& second = builder.AddBeHead(ahead, kernel, 1 * kMs);
  EXPECT_NE(FindLaunch(PlanOf("baymax", builder), second), nullptr);
  first.followed = true;
  const Plan plan = PlanOf("baymax", builder);
  EXPECT_NE(FindLaunch(plan, first), nullptr);
  EXPECT_TRUE(IsHeld(plan, second, Reason::kHoldWindow));
}

TEST(BaymaxWithLostTargetTest, BeRunsOneTaskAtATimeWhileNoQueryIsActive) {
  SnapshotBuilder builder;
  const int32_t lc = builder.AddLcAppWithTarget(0.3, 1 * kMs, 1 * kMs);
  const int32_t be = builder.AddBeApp();
  const int32_t kernel = builder.AddKernel(40 * kUs);
  const HeadView& first = builder.AddBeHead(be, kernel, 3 * kMs);
  const HeadView& second = builder.AddBeHead(be, kernel, 3 * kMs);
  const Plan plan = PlanOf("baymax", builder);
  EXPECT_NE(FindLaunch(plan, first), nullptr);
  EXPECT_TRUE(IsHeld(plan, second, Reason::kHoldQueuedTime, 6 * kMs, 0));
  builder.snapshot.queued_ns = 1;
  EXPECT_EQ(PlanOf("baymax", builder).launches.size(), 0) << "something is on the device";
  builder.snapshot.queued_ns = 0;
  builder.AddQuery(lc, -1 * kMs);
  EXPECT_EQ(PlanOf("baymax", builder).launches.size(), 0);
}

// One target that is lost does not lift the gate of another.
TEST(BaymaxWithLostTargetTest, TheGateOfAnotherAppStays) {
  SnapshotBuilder builder;
  builder.AddLcAppWithTarget(0.3, 1 * kMs, 500 * kUs);
  builder.AddLcAppWithTarget(0.3, 1 * kMs, 3 * kMs);
  const int32_t be = builder.AddBeApp();
  const int32_t kernel = builder.AddKernel(40 * kUs);
  const HeadView& held = builder.AddBeHead(be, kernel, 2'001 * kUs);
  const HeadView& fits = builder.AddBeHead(be, kernel, 2'000 * kUs);
  const Plan plan = PlanOf("baymax", builder);
  EXPECT_EQ(FindHold(plan, held)->limit_ns, 2 * kMs);
  EXPECT_NE(FindLaunch(plan, fits), nullptr);
}

// A training step of 40 ms whose eviction waits for 200 us. The gate on T_q is 9 ms.
class BaymaxSegmentsTest : public BaymaxTest {
 protected:
  HeadView& AddStep(int64_t duration_ns = 40 * kMs) {
    return builder.AddBeGraph(be, graph, duration_ns);
  }
  RunningView& AddRunningStep(Form form = Form::kSegments, bool evicting = false) {
    return builder.AddRunningGraph(be, graph, 40 * kMs, {kWholeDevice, form, evicting});
  }
  int32_t graph = builder.AddKernel(200 * kUs);
};

TEST_F(BaymaxSegmentsTest, AGraphIsChargedWhatItsEvictionWaitsFor) {
  builder.AddQuery(lc, 300 * kUs);
  const HeadView& step = AddStep();
  const HeadView& next = builder.AddBeHead(be, kernel, 101 * kUs);
  const Plan plan = PlanOf("baymax", builder);
  const PlannedLaunch* launch = FindLaunch(plan, step);
  ASSERT_NE(launch, nullptr) << Describe(plan);
  EXPECT_EQ(launch->form, Form::kSegments);
  EXPECT_EQ(launch->lane_class, LaneClass::kBe) << "no other lane has an eviction word";
  EXPECT_EQ(launch->place, kWholeDevice);
  EXPECT_EQ(launch->reason, Reason::kFitsHeadroom);
  EXPECT_TRUE(IsHeld(plan, next, Reason::kHoldHeadroom, {}, 100 * kUs));
}

TEST_F(BaymaxSegmentsTest, AGraphThatDoesNotFitIsHeldByTheSameCharge) {
  builder.AddQuery(lc, 200 * kUs - 1);
  HeadView& step = AddStep();
  Plan plan = PlanOf("baymax", builder);
  ASSERT_TRUE(IsHeld(plan, step, Reason::kHoldHeadroom, 200 * kUs));
  builder.queries.clear();
  builder.snapshot.queued_ns = 8'800 * kUs + 1;
  EXPECT_TRUE(IsHeld(PlanOf("baymax", builder), step, Reason::kHoldQueuedTime, 9 * kMs + 1));
  // The last segments take less than an eviction at its p99.
  step.remaining.duration_ns = 100 * kUs;
  step.remaining.error_ns = 50 * kUs;
  builder.snapshot.queued_ns = 8'850 * kUs;
  EXPECT_NE(FindLaunch(PlanOf("baymax", builder), step), nullptr);
}

TEST_F(BaymaxSegmentsTest, WithoutEvictionAGraphIsChargedAndLaunchedWhole) {
  builder.snapshot.eviction_available = false;
  const HeadView& held = AddStep();
  const HeadView& fits = AddStep(3 * kMs);
  const Plan plan = PlanOf("baymax", builder);
  EXPECT_TRUE(IsHeld(plan, held, Reason::kHoldQueuedTime, 40 * kMs));
  EXPECT_TRUE(IsLaunched(plan, fits, {.form = Form::kGraph, .lane_class = LaneClass::kPlain}));
}

TEST_F(BaymaxSegmentsTest, ARunningGraphIsEvictedWhenAHeadroomIsUsedUp) {
  const RunningView& step = AddRunningStep();
  builder.snapshot.now_ns = 7 * kMs;
  builder.AddQuery(lc, 5 * kMs);
  builder.AddQuery(lc, 2 * kMs);
  Plan plan = PlanOf("baymax", builder);
  EXPECT_EQ(plan.evictions.size(), 0) << Describe(plan);
  EXPECT_EQ(plan.replan_at_ns, 9 * kMs + 1) << "nothing else would cause a plan";
  builder.queries[1].headroom_ns = 0;
  EXPECT_EQ(PlanOf("baymax", builder).evictions.size(), 0) << "what is on the device fits";
  builder.queries[1].headroom_ns = -1;
  plan = PlanOf("baymax", builder);
  EXPECT_TRUE(IsEvicted(plan, step.task, kWholeDevice, Reason::kEvictForLc, 0));
  EXPECT_EQ(plan.replan_at_ns, kNever) << "its end causes one";
  builder.queries.clear();
  plan = PlanOf("baymax", builder);
  EXPECT_EQ(plan.evictions.size(), 0);
  EXPECT_EQ(plan.replan_at_ns, kNever);
}

// The LC head of 100 us that this plan launches is in T_q too.
TEST_F(BaymaxSegmentsTest, ARunningGraphIsEvictedWhenTheGateOnQueuedTimeCloses) {
  const RunningView& step = AddRunningStep();
  builder.AddLcHead(lc);
  builder.snapshot.queued_ns = 8'900 * kUs;
  EXPECT_EQ(PlanOf("baymax", builder).evictions.size(), 0);
  builder.snapshot.queued_ns += 1;
  const Plan plan = PlanOf("baymax", builder);
  EXPECT_NE(FindEviction(plan, step.task, kWholeDevice), nullptr) << Describe(plan);
}

// Else another tenant's graph would keep the device from being empty for as long as it has work.
TEST_F(BaymaxSegmentsTest, ARunningGraphMakesRoomForWorkThatLcWaitsFor) {
  RunningView& step = AddRunningStep();
  HeadView& head = builder.AddBeHead(be, kernel, 20 * kMs);
  builder.snapshot.queued_ns = 200 * kUs;
  EXPECT_EQ(PlanOf("baymax", builder).evictions.size(), 0);
  head.awaited_by_lc = true;
  Plan plan = PlanOf("baymax", builder);
  EXPECT_NE(FindEviction(plan, step.task, kWholeDevice), nullptr) << Describe(plan);
  EXPECT_TRUE(IsHeld(plan, head, Reason::kHoldQueuedTime));
  step.task.awaited_by_lc = true;
  EXPECT_EQ(PlanOf("baymax", builder).evictions.size(), 0) << "LC work waits for both";
}

// An eviction of it takes longer than the gate.
TEST_F(BaymaxSegmentsTest, AGraphThatLcWaitsForRunsToItsEnd) {
  const int32_t coarse = builder.AddKernel(10 * kMs);
  HeadView& head = builder.AddBeGraph(be, coarse, 40 * kMs);
  EXPECT_TRUE(IsHeld(PlanOf("baymax", builder), head, Reason::kHoldQueuedTime));
  head.awaited_by_lc = true;
  Plan plan = PlanOf("baymax", builder);
  EXPECT_NE(FindLaunch(plan, head), nullptr);
  EXPECT_EQ(plan.evictions.size(), 0);
  builder.heads.clear();
  RunningView& running =
      builder.AddRunningGraph(be, coarse, 40 * kMs, {kWholeDevice, Form::kSegments, false});
  builder.snapshot.queued_ns = 10 * kMs;
  EXPECT_NE(FindEviction(PlanOf("baymax", builder), running.task, kWholeDevice), nullptr);
  running.task.awaited_by_lc = true;
  EXPECT_EQ(PlanOf("baymax", builder).evictions.size(), 0);
}

TEST_F(BaymaxSegmentsTest, OnlyGraphsInSegmentsThatStayAreEvicted) {
  AddRunningStep(Form::kGraph);
  AddRunningStep(Form::kSegments, true);
  builder.AddRunningBe(be, kernel, 1 * kMs, {{kWholeDevice, Form::kOriginal}});
  builder.AddQuery(lc, -1 * kMs);
  const Plan plan = PlanOf("baymax", builder);
  EXPECT_EQ(plan.evictions.size(), 0) << Describe(plan);
}

TEST_F(BaymaxSegmentsTest, AGraphThatStartsBesideAQueryAsksForThePlanThatEvictsIt) {
  builder.AddQuery(lc, 1 * kMs);
  const HeadView& step = AddStep();
  Plan plan = PlanOf("baymax", builder);
  ASSERT_NE(FindLaunch(plan, step), nullptr);
  EXPECT_EQ(plan.replan_at_ns, builder.snapshot.now_ns + 800 * kUs + 1);
  EXPECT_EQ(plan.evictions.size(), 0);
}

// Both would write the buffers of one capture.
TEST_F(BaymaxSegmentsTest, OneTaskOfAGraphRunsAtATimeAndTheOtherIsNotCharged) {
  builder.AddQuery(lc, 400 * kUs);
  const HeadView& first = AddStep();
  const HeadView& second = AddStep();
  const HeadView& other = builder.AddBeHead(be, kernel, 200 * kUs);
  const Plan plan = PlanOf("baymax", builder);
  EXPECT_NE(FindLaunch(plan, first), nullptr);
  EXPECT_TRUE(IsHeld(plan, second, Reason::kHoldWindow));
  EXPECT_NE(FindLaunch(plan, other), nullptr) << Describe(plan);
}

TEST_F(BaymaxSegmentsTest, TheRestOfAnEvictedGraphGoesOn) {
  HeadView& step = AddStep();
  step.resumed = true;
  EXPECT_TRUE(IsLaunched(PlanOf("baymax", builder), step,
                         {.form = Form::kSegments, .reason = Reason::kResume}));
}

TEST_F(BaymaxSegmentsTest, WithoutTheRefillTheHeadroomOfEquationThreeEvicts) {
  const RunningView& step = AddRunningStep();
  builder.AddQuery(lc, 3 * kMs);
  builder.queries[0].serial_headroom_ns = -1;
  EXPECT_EQ(PlanOf("baymax", builder).evictions.size(), 0);
  const Plan plan = PlanOf("baymax:nc", builder);
  EXPECT_NE(FindEviction(plan, step.task, kWholeDevice), nullptr) << Describe(plan);
}

TEST_F(BaymaxSegmentsTest, WhereATargetIsLostAGraphRunsWhileNoQueryIsActive) {
  builder.AddLcAppWithTarget(0.3, 1 * kMs, 1 * kMs);
  const RunningView& step = AddRunningStep();
  EXPECT_EQ(PlanOf("baymax", builder).evictions.size(), 0);
  builder.AddQuery(lc, 5 * kMs);
  const Plan plan = PlanOf("baymax", builder);
  EXPECT_NE(FindEviction(plan, step.task, kWholeDevice), nullptr) << Describe(plan);
}

}  // namespace
}  // namespace gpushare::core::testing
