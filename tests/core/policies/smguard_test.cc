// smguard: algorithm 1, partial eviction, packed placement. The kernels hold 8 workers a CapSM.

#include <gtest/gtest.h>

#include "tests/core/policies/snapshot_builder.h"

namespace gpushare::core::testing {
namespace {

class SmguardTest : public ::testing::Test {
 protected:
  // 84 of 132 CapSMs reserved for LC.
  SmguardTest() {
    builder.lc_apps[0].reserved_capsms = 84;
    builder.snapshot.capsms_free = 48;
  }
  int32_t AddBeApp(int32_t quota, double used) {
    const int32_t app = builder.AddBeApp();
    builder.be_apps.back().quota_capsms = quota;
    builder.be_apps.back().used_capsms = used;
    return app;
  }
  SnapshotBuilder builder;
  int32_t lc = builder.AddLcApp(0.3, 667 * kUs, 2'176 * kUs, 1.05);
  int32_t kernel = builder.AddKernel(40 * kUs);  // M = 8
};

// Lines 1-2 of algorithm 1: the request is met, in workers.
TEST_F(SmguardTest, ABeTaskGetsItsQuotaInWorkersSpreadOverTheDevice) {
  const HeadView& head = builder.AddBeHead(AddBeApp(20, 0), kernel, 8 * kMs);
  const Plan plan = PlanOf("smguard", builder);
  ASSERT_NE(FindLaunch(plan, head), nullptr);
  const PlannedLaunch& launch = *FindLaunch(plan, head);
  EXPECT_EQ(launch.form, Form::kWorkers);
  EXPECT_EQ(launch.workers, 20 * 8);
  EXPECT_EQ(launch.place, kWholeDevice);
  EXPECT_EQ(launch.lane_class, LaneClass::kBe);
  EXPECT_EQ(launch.reason, Reason::kQuota);
  EXPECT_EQ(plan.routes[0].place, kWholeDevice);
  EXPECT_FALSE(plan.routes[0].evict_overlapping);
}

// Lines 8-9: a quota task takes what remains, never what is reserved.
TEST_F(SmguardTest, ALaterTaskGetsWhatRemainsAndTheNextIsHeld) {
  const HeadView& first = builder.AddBeHead(AddBeApp(40, 0), kernel, 8 * kMs);
  const HeadView& second = builder.AddBeHead(AddBeApp(40, 0), kernel, 8 * kMs);
  const HeadView& third = builder.AddBeHead(AddBeApp(40, 0), kernel, 8 * kMs);
  const Plan plan = PlanOf("smguard", builder);
  EXPECT_EQ(FindLaunch(plan, first)->workers, 40 * 8);
  EXPECT_EQ(FindLaunch(plan, second)->workers, 8 * 8);
  EXPECT_TRUE(IsHeld(plan, third, Reason::kHoldCapSm));
}

TEST_F(SmguardTest, TheQuotaBindsAllTasksOfTheApp) {
  const int32_t app = AddBeApp(20, 15);
  builder.snapshot.capsms_free = 33;
  const HeadView& first = builder.AddBeHead(app, kernel, 8 * kMs);
  const HeadView& second = builder.AddBeHead(app, kernel, 8 * kMs);
  const Plan plan = PlanOf("smguard", builder);
  EXPECT_EQ(FindLaunch(plan, first)->workers, 5 * 8);
  ASSERT_NE(FindHold(plan, second), nullptr);
  EXPECT_EQ(FindHold(plan, second)->value_ns, 20);
  EXPECT_EQ(FindHold(plan, second)->limit_ns, 20);
}

TEST_F(SmguardTest, WithoutAQuotaATaskTakesAllThatIsNotReserved) {
  const HeadView& head = builder.AddBeHead(AddBeApp(0, 0), kernel, 8 * kMs);
  EXPECT_EQ(FindLaunch(PlanOf("smguard", builder), head)->workers, 48 * 8);
}

TEST_F(SmguardTest, AShortTaskTakesNoMoreWorkersThanItHasBlockTasks) {
  const int32_t app = AddBeApp(20, 0);
  HeadView& small = builder.AddBeHead(app, kernel, 1 * kMs);
  small.blocks_left = 12;
  const HeadView& next = builder.AddBeHead(app, kernel, 8 * kMs);
  const Plan plan = PlanOf("smguard", builder);
  EXPECT_EQ(FindLaunch(plan, small)->workers, 12);
  EXPECT_EQ(FindLaunch(plan, next)->workers, 160 - 12);
}

// Line 5: R_gap = R_request - R_remain, and only that much leaves.
TEST_F(SmguardTest, AShortReservationEvictsTheGapAndTheRestOfTheWorkersStays) {
  const int32_t app = AddBeApp(0, 100);  // launched before the reservation was made
  builder.snapshot.capsms_free = 0;
  const RunningView& task =
      builder.AddRunningBe(app, kernel, 8 * kMs, {{kWholeDevice, Form::kWorkers, false, 800}});
  builder.AddLcHead(lc);
  const Plan plan = PlanOf("smguard", builder);
  ASSERT_EQ(plan.evictions.size(), 1);
  const PlannedEviction* eviction = FindEviction(plan, task.task, kWholeDevice);
  ASSERT_NE(eviction, nullptr);
  EXPECT_EQ(eviction->workers_to_keep, 48 * 8);
  EXPECT_EQ(eviction->reason, Reason::kEvictForReservation);
  EXPECT_EQ(plan.launches.size(), 1) << "LC does not wait for the drain";
}

TEST_F(SmguardTest, TheGapComesFromTheTaskThatLeavesSoonest) {
  const int32_t slow_kernel = builder.AddKernel(2'500 * kUs);
  const int32_t app = AddBeApp(0, 60);
  builder.snapshot.capsms_free = 0;
  const RunningView& slow = builder.AddRunningBe(app, slow_kernel, 8 * kMs,
                                                 {{kWholeDevice, Form::kWorkers, false, 10 * 8}});
  const RunningView& quick =
      builder.AddRunningBe(app, kernel, 8 * kMs, {{kWholeDevice, Form::kWorkers, false, 50 * 8}});
  const Plan plan = PlanOf("smguard", builder);
  ASSERT_EQ(plan.evictions.size(), 1);
  EXPECT_EQ(FindEviction(plan, slow.task, kWholeDevice), nullptr);
  EXPECT_EQ(FindEviction(plan, quick.task, kWholeDevice)->workers_to_keep, 38 * 8);
}

TEST_F(SmguardTest, AnAppBeyondAQuotaThatShrankGivesBackTheDifference) {
  const int32_t app = AddBeApp(16, 24);
  builder.snapshot.capsms_free = 24;
  const RunningView& task =
      builder.AddRunningBe(app, kernel, 8 * kMs, {{kWholeDevice, Form::kWorkers, false, 24 * 8}});
  EXPECT_TRUE(IsEvicted(PlanOf("smguard", builder), task.task, kWholeDevice, Reason::kEvictForQuota,
                        16 * 8));
}

TEST_F(SmguardTest, PackedPutsBeOnWholeSmsRoundedDownAndLcOnTheOthers) {
  // 45 CapSMs: the split with 40 for BE, not the one with 48.
  const HeadView& head = builder.AddBeHead(AddBeApp(45, 0), kernel, 8 * kMs);
  const Plan plan = PlanOf("smguard:packed", builder);
  EXPECT_TRUE(IsLaunched(plan, head, {.place = builder.BePlace(92), .workers = 40 * 8}));
  EXPECT_EQ(plan.routes[0].place, builder.LcPlace(92));
}

TEST_F(SmguardTest, PackedNeverCutsIntoTheReservation) {
  builder.lc_apps[0].reserved_capsms = 100;
  builder.snapshot.capsms_free = 32;
  const HeadView& head = builder.AddBeHead(AddBeApp(64, 0), kernel, 8 * kMs);
  EXPECT_TRUE(IsLaunched(PlanOf("smguard:packed", builder), head,
                         {.place = builder.BePlace(108), .workers = 24 * 8}));
}

// Nobody can bound its workers, so its place is what bounds it.
TEST_F(SmguardTest, WorkWithoutWorkersRunsInAPlaceWithinTheQuotaWhileAQueryIsActive) {
  builder.lc_apps[0].active_queries = 1;
  const HeadView& library = builder.AddBeTask(AddBeApp(45, 0), TaskKind::kLibrary, 1 * kMs);
  for (const char* policy : {"smguard", "smguard:packed"}) {
    const Plan plan = PlanOf(policy, builder);
    EXPECT_TRUE(IsLaunched(plan, library, {.place = builder.BePlace(92)})) << policy << policy;
  }
}

// Under smguard:packed all BE apps have one side, which is larger than one app's quota.
TEST_F(SmguardTest, WorkWithoutWorkersKeepsItsOwnQuotaOnTheSideOfAllApps) {
  const HeadView& small = builder.AddBeTask(AddBeApp(24, 0), TaskKind::kOpaque, 1 * kMs);
  AddBeApp(24, 0);
  const Plan plan = PlanOf("smguard:packed", builder);
  EXPECT_EQ(plan.routes[0].place, builder.LcPlace(84));
  EXPECT_TRUE(IsLaunched(plan, small, {.place = builder.BePlace(108)}));
}

// It was accepted before the quota, and takes its turn while no query is active.
TEST_F(SmguardTest, WorkThatNoPlaceHoldsWithinItsQuotaIsHeldForAQueryWithTheSmallestPlace) {
  const HeadView& library = builder.AddBeTask(AddBeApp(7, 0), TaskKind::kLibrary, 1 * kMs);
  HeadView& anywhere = builder.AddBeTask(AddBeApp(48, 0), TaskKind::kLibrary, 1 * kMs);
  anywhere.confinable = false;
  const Plan turn = PlanOf("smguard", builder);
  EXPECT_TRUE(IsLaunched(turn, library, {.place = kWholeDevice}));
  EXPECT_EQ(FindLaunch(turn, anywhere), nullptr) << "one at a time";
  builder.lc_apps[0].active_queries = 1;
  const Plan plan = PlanOf("smguard", builder);
  EXPECT_EQ(FindLaunch(plan, library), nullptr);
  EXPECT_EQ(FindLaunch(plan, anywhere), nullptr);
  EXPECT_TRUE(IsHeld(plan, library, Reason::kHoldCapSm, 8, 7));
  EXPECT_EQ(FindHold(plan, anywhere)->value_ns, 132);
  EXPECT_EQ(FindHold(plan, anywhere)->limit_ns, 48);
}

// The reserved SMs are free when the next query comes.
TEST_F(SmguardTest, WorkWithoutWorkersAndQuotaStaysOffTheReservedSms) {
  const HeadView& library = builder.AddBeTask(AddBeApp(0, 0), TaskKind::kLibrary, 1 * kMs);
  EXPECT_TRUE(IsLaunched(PlanOf("smguard", builder), library, {.place = builder.BePlace(84)}));
}

TEST_F(SmguardTest, WorkWithoutWorkersTakesItsTurnWhenNoQueryIsActive) {
  builder.snapshot.capsms_free = 0;  // others' workers hold what its place needs
  const HeadView& first = builder.AddBeTask(AddBeApp(48, 0), TaskKind::kLibrary, 1 * kMs);
  const HeadView& second = builder.AddBeTask(AddBeApp(48, 0), TaskKind::kOpaque, 1 * kMs);
  const Plan plan = PlanOf("smguard", builder);
  EXPECT_TRUE(IsLaunched(plan, first, {.place = builder.BePlace(84)}));
  EXPECT_TRUE(IsHeld(plan, second, Reason::kHoldCapSm)) << "one at a time";
  builder.lc_apps[0].active_queries = 1;
  EXPECT_EQ(FindLaunch(PlanOf("smguard", builder), first), nullptr);
}

TEST_F(SmguardTest, WorkWithoutWorkersWaitsForTheTurnOfAnother) {
  builder.snapshot.capsms_free = 0;
  builder.AddRunningBe(AddBeApp(48, 48), builder.AddKernel(kNever), 1 * kMs,
                       {{builder.BePlace(84), Form::kOriginal, false, 0}});
  const HeadView& library = builder.AddBeTask(AddBeApp(48, 0), TaskKind::kLibrary, 1 * kMs);
  EXPECT_NE(FindHold(PlanOf("smguard", builder), library), nullptr);
}

TEST_F(SmguardTest, WorkBeyondTheDeviceDrivesNobodyAwayUnlessSomethingIsReserved) {
  builder.AddRunningBe(AddBeApp(48, 132), builder.AddKernel(kNever), 1 * kMs,
                       {{kWholeDevice, Form::kOriginal, false, 0}});
  builder.AddRunningBe(AddBeApp(0, 40), kernel, 8 * kMs,
                       {{kWholeDevice, Form::kWorkers, false, 40 * 8}});
  EXPECT_EQ(PlanOf("smguard", builder).evictions.size(), 1);
  builder.lc_apps[0].reserved_capsms = 0;
  EXPECT_EQ(PlanOf("smguard", builder).evictions.size(), 0);
}

TEST_F(SmguardTest, WorkWithoutWorkersDoesNotAddToWhatItsAppHolds) {
  const int32_t app = AddBeApp(48, 8);
  const HeadView& library = builder.AddBeTask(app, TaskKind::kLibrary, 1 * kMs);
  EXPECT_NE(FindHold(PlanOf("smguard", builder), library), nullptr);
}

TEST_F(SmguardTest, TheAppThatIsNextByWeightTakesTheCapSms) {
  const int32_t rich = AddBeApp(0, 0);
  const int32_t poor = AddBeApp(0, 0);
  builder.be_apps[0].attained_ns[kSmTime] = 20 * kMs;
  builder.be_apps[1].attained_ns[kSmTime] = 10 * kMs;
  const HeadView& first = builder.AddBeHead(rich, kernel, 8 * kMs);
  const HeadView& second = builder.AddBeHead(poor, kernel, 8 * kMs);
  const Plan plan = PlanOf("smguard", builder);
  EXPECT_EQ(FindHold(plan, first)->reason, Reason::kHoldCapSm);
  EXPECT_NE(FindLaunch(plan, second), nullptr);
}

// Spread over the device its workers would get several times their share.
TEST_F(SmguardTest, APackedQuotaIsASideOfTheDeviceAlsoWhereTheOthersAreSpread) {
  const int32_t packed = AddBeApp(45, 0);
  builder.be_apps.back().packed = true;
  const HeadView& head = builder.AddBeHead(packed, kernel, 8 * kMs);
  const Plan plan = PlanOf("smguard", builder);
  EXPECT_TRUE(IsLaunched(plan, head, {.place = builder.BePlace(92), .workers = 40 * 8}));
  EXPECT_EQ(plan.routes[0].place, kWholeDevice) << "LC keeps the device";
}

TEST_F(SmguardTest, PackedQuotasThatLieInEachOtherTakeTurns) {
  builder.lc_apps[0].reserved_capsms = 0;
  builder.snapshot.capsms_free = 132 - 40;
  const int32_t large = AddBeApp(40, 40);
  const int32_t small = AddBeApp(24, 0);
  for (BeAppView& app : builder.be_apps) app.packed = true;
  builder.AddRunningBe(large, kernel, 8 * kMs, {{builder.BePlace(92), Form::kWorkers, false, 320}});
  const HeadView& head = builder.AddBeHead(small, kernel, 8 * kMs);
  EXPECT_EQ(FindHold(PlanOf("smguard", builder), head)->reason, Reason::kHoldCapSm);
  builder.running.clear();
  builder.be_apps[0].used_capsms = 0;
  EXPECT_TRUE(IsLaunched(PlanOf("smguard", builder), head, {.place = builder.BePlace(108)}));
}

// The paper's: between queries BE has the reserved CapSMs too.
TEST_F(SmguardTest, UnderActiveAReservationHoldsWhileItsAppHasAQuery) {
  const HeadView& head = builder.AddBeHead(AddBeApp(0, 0), kernel, 8 * kMs);
  EXPECT_EQ(FindLaunch(PlanOf("smguard:active", builder), head)->workers, 132 * 8);
  EXPECT_EQ(FindLaunch(PlanOf("smguard", builder), head)->workers, 48 * 8);
  builder.lc_apps[0].active_queries = 1;
  EXPECT_EQ(FindLaunch(PlanOf("smguard:active", builder), head)->workers, 48 * 8);
}

TEST_F(SmguardTest, UnderActiveAQueryThatComesEvictsTheGap) {
  const int32_t app = AddBeApp(0, 132);
  builder.snapshot.capsms_free = -84;
  const RunningView& task =
      builder.AddRunningBe(app, kernel, 8 * kMs, {{kWholeDevice, Form::kWorkers, false, 132 * 8}});
  EXPECT_EQ(PlanOf("smguard:active", builder).evictions.size(), 0);
  builder.AddLcHead(lc);
  const Plan plan = PlanOf("smguard:active", builder);
  const PlannedEviction* eviction = FindEviction(plan, task.task, kWholeDevice);
  ASSERT_NE(eviction, nullptr);
  EXPECT_EQ(eviction->workers_to_keep, 48 * 8);
  EXPECT_EQ(eviction->reason, Reason::kEvictForReservation);
}

// Another app's query does not make it hold.
TEST_F(SmguardTest, UnderActiveOnlyTheReservationsOfActiveAppsHold) {
  const int32_t other = builder.AddLcApp(0.3, 667 * kUs, 2'176 * kUs, 1.05);
  builder.lc_apps[0].reserved_capsms = 64;
  builder.lc_apps[1].reserved_capsms = 20;
  builder.lc_apps[static_cast<size_t>(other)].active_queries = 1;
  const HeadView& head = builder.AddBeHead(AddBeApp(0, 0), kernel, 8 * kMs);
  EXPECT_EQ(FindLaunch(PlanOf("smguard:active", builder), head)->workers, 112 * 8);
}

// 60 CapSMs: the split with 68 SMs for LC, whose BE side has the other 64.
TEST_F(SmguardTest, AnAppWithAPackedReservationIsSizedByItAndBeHasTheOtherSide) {
  const int32_t spread = builder.AddLcApp(0.1, 667 * kUs, 2'176 * kUs, 1.05);
  builder.lc_apps[0].reserved_capsms = 60;
  builder.lc_apps[0].packed = true;
  builder.snapshot.capsms_free = 72;
  const HeadView& head = builder.AddBeHead(AddBeApp(0, 0), kernel, 8 * kMs);
  const HeadView& query = builder.AddLcHead(lc);
  for (const char* policy : {"smguard", "smguard:active"}) {
    const Plan plan = PlanOf(policy, builder);
    EXPECT_EQ(plan.routes[0].place, builder.LcPlace(68)) << policy;
    EXPECT_EQ(plan.routes[static_cast<size_t>(spread)].place, kWholeDevice) << policy;
    EXPECT_EQ(FindLaunch(plan, query)->place, builder.LcPlace(68)) << policy;
    EXPECT_TRUE(IsLaunched(plan, head, {.place = builder.BePlace(68), .workers = 64 * 8}))
        << policy << policy;
  }
}

// A side of a split has one kind of lane for LC work, whatever the app's priority.
TEST_F(SmguardTest, AnAppOnASideHasItsLaneWhateverItsPriority) {
  const int32_t above = builder.AddLcApp(0.1, 667 * kUs, 2'176 * kUs, 1.05);
  builder.lc_apps[static_cast<size_t>(above)].priority = 1;
  builder.lc_apps[0].reserved_capsms = 60;
  builder.lc_apps[0].packed = true;
  const Plan plan = PlanOf("smguard", builder);
  EXPECT_EQ(plan.routes[0].place, builder.LcPlace(68));
  EXPECT_EQ(plan.routes[0].lane_class, LaneClass::kLc);
}

// Also between queries: whole SMs cannot be freed by evicting some of the workers.
TEST_F(SmguardTest, APackedReservationHoldsAlsoUnderActive) {
  builder.lc_apps[0].packed = true;
  const HeadView& head = builder.AddBeHead(AddBeApp(0, 0), kernel, 8 * kMs);
  EXPECT_TRUE(IsLaunched(PlanOf("smguard:active", builder), head,
                         {.place = builder.BePlace(84), .workers = 48 * 8}));
}

TEST_F(SmguardTest, BeWorkFromBeforeAPackedReservationLeavesItsSide) {
  const RunningView& task = builder.AddRunningBe(AddBeApp(0, 40), kernel, 8 * kMs,
                                                 {{kWholeDevice, Form::kWorkers, false, 40 * 8}});
  builder.AddLcHead(lc);
  EXPECT_EQ(FindEviction(PlanOf("smguard", builder), task.task, kWholeDevice), nullptr);
  builder.lc_apps[0].packed = true;
  const Plan plan = PlanOf("smguard", builder);
  const PlannedEviction* eviction = FindEviction(plan, task.task, kWholeDevice);
  ASSERT_NE(eviction, nullptr);
  EXPECT_EQ(eviction->workers_to_keep, 0);
  EXPECT_EQ(eviction->reason, Reason::kEvictForReservation);
}

// A quota of 24 on whole SMs keeps its own side beside one of 48 SMs for all.
TEST_F(SmguardTest, APackedQuotaKeepsItsOwnSideBesideThatOfAllApps) {
  const int32_t packed = AddBeApp(24, 0);
  builder.be_apps.back().packed = true;
  const HeadView& small = builder.AddBeHead(packed, kernel, 8 * kMs);
  const HeadView& large = builder.AddBeHead(AddBeApp(24, 0), kernel, 8 * kMs);
  const Plan plan = PlanOf("smguard:packed", builder);
  EXPECT_EQ(FindLaunch(plan, small)->place, builder.BePlace(108));
  EXPECT_EQ(FindLaunch(plan, large)->place, builder.BePlace(84));
}

}  // namespace
}  // namespace gpushare::core::testing
