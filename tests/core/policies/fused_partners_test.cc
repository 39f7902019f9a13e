// adaptive: BE kernels as fused partners of LC kernels (candidates/fused.h,
// carry_out/fused_heads.h).

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/core/policies/adaptive/arrangement/tuning.h"
#include "tests/core/policies/snapshot_builder.h"

namespace gpushare::core::testing {
namespace {

// A service at load 0.4 whose queries take 2 ms, in GEMMs of 500 us, with a target of 20 ms; and a
// BE kernel with tasks of 1 ms that goes with the GEMM: 0.6 of the GEMM's time of BE work for a
// tenth more.
class FusedPartnersTest : public ::testing::Test {
 protected:
  FusedPartnersTest() {
    app().main_kernel = {static_cast<uint32_t>(gemm + 1)};
    app().promise.p99_alone_ns = 6 * kMs;
    app().shadow_p99_ns = 6 * kMs;
    app().blocking_budget_ns = 4 * kMs;
  }
  LcAppView& app() { return builder.lc_apps[static_cast<size_t>(lc)]; }
  FusedView& Pair() { return builder.fused[0]; }
  void BlocksOfSm(int32_t blocks) {
    const_cast<FusedKernelDesc*>(Pair().kernel)->blocks_per_sm = blocks;
  }
  HeadView& Gemm(int64_t headroom_ns = 15 * kMs, int32_t ready_count = 1) {
    const int32_t query = builder.AddQuery(lc, headroom_ns);
    return builder.AddLcKernelHead(query, gemm, 500 * kUs, ready_count);
  }
  Plan PlanNow() { return PlanOf("adaptive", builder); }
  static ::testing::AssertionResult IsFusedWith(const Plan& plan, const HeadView& lc,
                                                const HeadView& be) {
    const PlannedLaunch* launch = FindLaunch(plan, lc);
    if (launch != nullptr && launch->form == Form::kFused && launch->fused_with == be.task) {
      return ::testing::AssertionSuccess();
    }
    return ::testing::AssertionFailure() << Describe(plan);
  }
  // The BE task beside the LC kernel of the query on the device, for `age_ns`.
  RunningView& AddPartner(int64_t issued_ns, int64_t age_ns) {
    const auto query = static_cast<size_t>(builder.AddQuery(lc, 15 * kMs));
    builder.queries[query].issued_ns = issued_ns;
    app().tasks_in_flight = 1;
    app().service_age_ns = age_ns;
    RunningView& partner = builder.AddRunningBe(be, kernel, kMs, {{kWholeDevice, Form::kFused}});
    partner.parts[0].launched_ns = builder.snapshot.now_ns - age_ns;
    return partner;
  }

  SnapshotBuilder builder{{}};  // without splits
  int32_t lc = builder.AddLcAppWithTarget(0.4, 2 * kMs, 20 * kMs);
  int32_t be = builder.AddBeApp();
  int32_t gemm = builder.AddKernel(kNever);
  int32_t kernel = builder.AddKernel(40 * kUs);
  FusedView& pair = builder.Fuse(gemm, kernel, 0.6, 1.1);
};

TEST_F(FusedPartnersTest, AKernelTakesBeWorkAlong) {
  const HeadView& lc_head = Gemm();
  const HeadView& be_head = builder.AddBeHead(be, kernel, kMs);
  const Plan plan = PlanNow();
  EXPECT_TRUE(IsFusedWith(plan, lc_head, be_head));
  EXPECT_TRUE(IsLaunched(
      plan, lc_head,
      {.place = kWholeDevice, .lane_class = LaneClass::kLc, .fused_kernel = Pair().kernel->id}));
  EXPECT_EQ(plan.holds.size(), 0) << Describe(plan);
  EXPECT_EQ(plan.replan_at_ns, builder.snapshot.now_ns) << "the next plan says when it leaves";
  EXPECT_FALSE(plan.routes[0].fast_path) << "the scheduler must see each kernel";
  EXPECT_TRUE(plan.routes[0].evict_overlapping);
}

TEST_F(FusedPartnersTest, TheAblationFusesNothing) {
  const HeadView& lc_head = Gemm();
  builder.AddBeHead(be, kernel, kMs);
  const Plan plan = PlanOf("adaptive:apart", builder);
  EXPECT_TRUE(IsLaunched(plan, lc_head, {.form = Form::kOriginal}));
  EXPECT_TRUE(plan.routes[0].fast_path);
}

// 0.6 + 0.4 (0.6 - 0.1) of the device, where grids beside queries have 0.6 + 0.4 x 0.09.
TEST_F(FusedPartnersTest, TheValueIsTheGainOfThePairInLcTime) {
  Gemm();
  builder.AddBeHead(be, kernel, kMs);
  const Plan plan = PlanNow();
  EXPECT_EQ(plan.choice.kind, ChoiceKind::kLayout);
  EXPECT_NEAR(static_cast<double>(plan.choice.value), 0.8e6, 1e3);
  EXPECT_NEAR(static_cast<double>(plan.choice.runner_up_value), 0.636e6, 1e3);
  EXPECT_GT(plan.choice.shift.shift_ns, 0);
  EXPECT_LE(plan.choice.shift.shift_ns, plan.choice.shift.limit_ns);
}

// The error bar is part of the slowdown: 1.1 x 1.4 = 1.54, and 0.6 - 0.54 is less than grids gain.
TEST_F(FusedPartnersTest, WhereGridsGainMoreTheyAreChosen) {
  const HeadView& lc_head = Gemm();
  const HeadView& be_head = builder.AddBeHead(be, kernel, kMs);
  Pair().curve.error = 0.4;
  const Plan plan = PlanNow();
  EXPECT_TRUE(IsLaunched(plan, lc_head, {.form = Form::kOriginal}));
  EXPECT_TRUE(IsLaunched(plan, be_head, {.form = Form::kOriginal})) << Describe(plan);
  EXPECT_TRUE(plan.routes[0].fast_path);
}

// A network of 16 GEMMs: each costs its query 12.4 us, whatever its partner. Of 500 us they gain
// more than grids beside queries do; of 20 us they gain nothing.
TEST_F(FusedPartnersTest, NodesOfAGraphGainWhatIsLeftOfACut) {
  for (const int64_t node_ns : {500 * kUs, 20 * kUs}) {
    std::vector<GraphPiece> pieces;
    for (int i = 0; i < kMaxCutNodes; ++i) {
      pieces.push_back({.kernel = app().main_kernel, .is_node = true, .solo_ns = node_ns});
      pieces.push_back({.kernel = {77}, .solo_ns = node_ns / 100});
    }
    app().pieces = pieces;
    builder.AddBeHead(be, kernel, kMs);
    EXPECT_EQ(PlanNow().routes[0].cuts_graphs, node_ns == 500 * kUs);
    builder.snapshot.cut_node_ns = 400 * kUs;  // of another device
    EXPECT_FALSE(PlanNow().routes[0].cuts_graphs);
    builder.snapshot.cut_node_ns = Snapshot().cut_node_ns;
    app().pieces = {};
  }
}

TEST_F(FusedPartnersTest, APairThatLosesIsNotFused) {
  const HeadView& lc_head = Gemm();
  builder.AddBeHead(be, kernel, kMs);
  Pair().curve = {1, 1, 0, 1, 0, true};
  EXPECT_TRUE(IsLaunched(PlanNow(), lc_head, {.form = Form::kOriginal}));
}

// 12 us of LC kernel at 0.5 are less than the turn of 11 us and a tenth.
TEST_F(FusedPartnersTest, AShortKernelIsNotWorthItsTurn) {
  HeadView& lc_head = Gemm();
  builder.AddBeHead(be, kernel, kMs);
  lc_head.remaining.duration_ns = 2 * kFusedTurnNs + 1'000;
  EXPECT_EQ(FindLaunch(PlanNow(), lc_head)->form, Form::kFused);
  lc_head.remaining.duration_ns = 2 * kFusedTurnNs - 1'000;
  EXPECT_EQ(FindLaunch(PlanNow(), lc_head)->form, Form::kOriginal);
}

// Alone the kernel would have 11 us of 500 less. The partner leaves 40 us before each kernel's end,
// of the 561 us that it takes beside it.
TEST_F(FusedPartnersTest, TheValueCountsTurnsAndThePartnersAbsence) {
  Gemm();
  builder.AddBeHead(be, kernel, kMs);
  app().main_kernel_ns = 500 * kUs;
  const double turn = static_cast<double>(kFusedTurnNs) / (500.0 * kUs);
  const double absent = 40.0 / (500 * (1.1 + turn));
  const double gain = 0.6 * (1 - absent) - 0.1 - turn;
  EXPECT_NEAR(static_cast<double>(PlanNow().choice.value), (0.6 + 0.4 * gain) * 1e6, 1e3);
}

// A BE task of 100 us is 0.2 of each LC kernel, which it leaves by itself.
TEST_F(FusedPartnersTest, TheValueOfShortTasksIsWhatOneTaskIsToAKernel) {
  Gemm();
  builder.AddBeHead(be, kernel, 100 * kUs);
  app().main_kernel_ns = 500 * kUs;
  const double turn = static_cast<double>(kFusedTurnNs) / (500.0 * kUs);
  const double gain = 0.2 - 0.2 * 0.1 / 0.6 - turn;
  EXPECT_NEAR(static_cast<double>(PlanNow().choice.value), (0.6 + 0.4 * gain) * 1e6, 1e3);
}

// A queue at load 0.84 would miss a target of 12 ms. The lag leaves 5.4 ms, and a query costs 0.2.
TEST_F(FusedPartnersTest, WhereTheLagKeepsATargetTheQueueNeedNot) {
  app().load = 0.76;
  app().promise.target_ns = 12 * kMs;
  Gemm();
  builder.AddBeHead(be, kernel, kMs);
  const Plan plan = PlanNow();
  EXPECT_NEAR(static_cast<double>(plan.choice.value), (0.24 + 0.76 * 0.5) * 1e6, 1e3);
  EXPECT_EQ(plan.choice.shift.shift_ns, plan.choice.shift.limit_ns);
}

// All times of the curve are over a prediction that is 1.3 times too short.
TEST_F(FusedPartnersTest, ACurveThatBeginsAboveOneSaysWhatTheKernelTakesAlone) {
  Gemm();
  builder.AddBeHead(be, kernel, kMs);
  Pair().curve = {1.3, 1.3 * 0.1 / 0.78, 1, 0.78, 0, true};
  EXPECT_NEAR(static_cast<double>(PlanNow().choice.value), 0.8e6, 1e3);
}

// What is left of a partner is predicted at its speed alone, so that in a fused launch it is used
// up before its end. A plan at that time launched the whole queue without partners.
TEST_F(FusedPartnersTest, APartnerBeyondItsPredictedTimeIsStillOne) {
  RunningView& partner = AddPartner(500 * kUs, 400 * kUs);
  partner.task.whole_ns = 300 * kUs;
  partner.task.remaining.duration_ns = 0;
  const HeadView& next = builder.AddLcKernelHead(0, gemm, 500 * kUs, 7);
  const Plan plan = PlanNow();
  EXPECT_TRUE(IsHeld(plan, next, Reason::kHoldWindow)) << Describe(plan);
  EXPECT_FALSE(plan.routes[0].fast_path);
  EXPECT_TRUE(plan.arrangement.fused);
}

// A rest of 1 us is not worth its turn, but the next task of 1 ms is behind it.
TEST_F(FusedPartnersTest, TheRestOfATaskGoesAlongHoweverShort) {
  const HeadView& lc_head = Gemm(15 * kMs, 7);
  HeadView& rest = builder.AddBeHead(be, kernel, kUs);
  rest.whole_ns = kMs;
  EXPECT_FALSE(IsFusedWith(PlanNow(), lc_head, rest)) << "a task that never ran is as short again";
  rest.resumed = true;
  EXPECT_TRUE(IsFusedWith(PlanNow(), lc_head, rest));
  app().tasks_in_flight = 1;
  EXPECT_TRUE(IsHeld(PlanNow(), lc_head, Reason::kHoldWindow)) << "it waits for the rest too";
}

// One block task is left, so that a single worker has it. The pair is judged with all of the quota.
TEST_F(FusedPartnersTest, TheRestOfATaskWithinAQuotaGoesAlong) {
  const HeadView& lc_head = Gemm(15 * kMs, 7);
  HeadView& rest = builder.AddBeHead(be, kernel, kUs);
  rest.whole_ns = kMs;
  rest.blocks_left = 1;
  builder.be_apps[0].quota_capsms = 100 / rest.kernel->resources.workers_per_sm_max;
  EXPECT_FALSE(IsFusedWith(PlanNow(), lc_head, rest)) << "a task that never ran is as short again";
  rest.resumed = true;
  EXPECT_TRUE(IsFusedWith(PlanNow(), lc_head, rest));
}

// Else the next query would find the fast path, and its kernels would all be launched at once.
TEST_F(FusedPartnersTest, PartnersStayInForceWhileTheLastKernelRunsAlone) {
  builder.AddQuery(lc, 15 * kMs);
  app().tasks_in_flight = 1;
  builder.AddBeHead(be, kernel, kMs);
  EXPECT_TRUE(PlanNow().routes[0].fast_path) << "a query that takes no partner along";
  builder.snapshot.in_force.fused = true;
  const Plan plan = PlanNow();
  EXPECT_FALSE(plan.routes[0].fast_path);
  EXPECT_TRUE(plan.arrangement.fused);
}

// The service in the CUDA-core part: its kernel of 500 us beside a BE kernel of 1 ms in the
// Tensor-core part. With r0 = 2 it takes 1.2 / 2 of... t(2) = 2.2 of the other's time: 1.1 of its
// own.
TEST_F(FusedPartnersTest, ACudaCoreKernelOfAServiceTakesTensorWorkAlong) {
  builder.fused.clear();
  builder.Fuse(kernel, gemm, 2, 2.2);
  const HeadView& lc_head = Gemm();
  const HeadView& be_head = builder.AddBeHead(be, kernel, kMs);
  const Plan plan = PlanNow();
  EXPECT_TRUE(IsFusedWith(plan, lc_head, be_head));
  EXPECT_NEAR(static_cast<double>(plan.choice.value), (0.6 + 0.4 * (0.5 - 0.1)) * 1e6, 1e3);
}

TEST_F(FusedPartnersTest, ThePartnerIsTheOneThatGainsMost) {
  const int32_t other = builder.AddKernel(40 * kUs);
  builder.Fuse(gemm, other, 0.8, 1.1);
  const HeadView& lc_head = Gemm();
  builder.AddBeHead(be, kernel, kMs);
  const HeadView& best = builder.AddBeHead(be, other, kMs);
  const Plan plan = PlanNow();
  EXPECT_TRUE(IsFusedWith(plan, lc_head, best));
  EXPECT_TRUE(IsHeld(plan, builder.head(1), Reason::kHoldLcActive));
}

// The slack is 0.9 (20 - 6) ms, and the kernel costs 50 us and its turn.
TEST_F(FusedPartnersTest, AQueryThatIsBehindItsShadowGoesAlone) {
  const HeadView& lc_head = Gemm(kNever, 3);
  builder.AddBeHead(be, kernel, kMs);
  const int64_t slack_ns = app().promise.LagSlack(app().solo_ns, app().shadow_p99_ns);
  const int64_t accepted_ns = 20 * kUs;  // half of the eviction that a busy period begins with
  app().lag_ns = slack_ns + accepted_ns - 50 * kUs - kFusedTurnNs;
  EXPECT_EQ(FindLaunch(PlanNow(), lc_head)->form, Form::kFused);
  app().lag_ns += 1;
  EXPECT_TRUE(IsLaunched(PlanNow(), lc_head, {.form = Form::kOriginal, .count = 1}));
  app().lag_ns = slack_ns + accepted_ns + 1;
  EXPECT_TRUE(IsLaunched(PlanNow(), lc_head, {.form = Form::kOriginal, .count = 3}))
      << "a query that runs late does not wait for partners";
}

// A query that has been in service for 1.1 ms did 1 ms of its work beside partners.
TEST_F(FusedPartnersTest, WhatPartnersCostTheQuerySoFarCounts) {
  const HeadView& lc_head = Gemm(kNever);
  builder.AddBeHead(be, kernel, kMs);
  const int64_t slack_ns = app().promise.LagSlack(app().solo_ns, app().shadow_p99_ns);
  app().lag_ns = slack_ns + 20 * kUs - 50 * kUs - kFusedTurnNs;
  app().service_age_ns = 1'100 * kUs;
  EXPECT_EQ(FindLaunch(PlanNow(), lc_head)->form, Form::kOriginal);
  app().lag_ns -= 100 * kUs + 1;
  EXPECT_EQ(FindLaunch(PlanNow(), lc_head)->form, Form::kFused);
}

TEST_F(FusedPartnersTest, AHeadroomMustHoldTheLongerKernel) {
  const HeadView& lc_head = Gemm(50 * kUs + kFusedTurnNs);
  builder.AddBeHead(be, kernel, kMs);
  EXPECT_EQ(FindLaunch(PlanNow(), lc_head)->form, Form::kFused);
  builder.queries[0].headroom_ns -= 1;
  EXPECT_EQ(FindLaunch(PlanNow(), lc_head)->form, Form::kOriginal);
}

// LC work on the device closes the gate for the partner.
TEST_F(FusedPartnersTest, AKernelWaitsForTheOneBeforeItWhileAPartnerIsThere) {
  const HeadView& lc_head = Gemm();
  app().tasks_in_flight = 1;
  EXPECT_TRUE(IsLaunched(PlanNow(), lc_head, {.form = Form::kOriginal})) << "without BE work";
  const HeadView& be_head = builder.AddBeHead(be, kernel, kMs);
  Plan plan = PlanNow();
  EXPECT_TRUE(IsHeld(plan, lc_head, Reason::kHoldWindow)) << Describe(plan);
  EXPECT_TRUE(IsHeld(plan, be_head, Reason::kHoldLcActive));
  app().tasks_in_flight = 0;
  EXPECT_TRUE(IsFusedWith(PlanNow(), lc_head, be_head)) << "it never waits on an idle device";
}

// The query finds BE workers, which leave for it: its first kernel goes alone, and the second waits
// for them behind it.
TEST_F(FusedPartnersTest, TheFirstKernelGoesAloneWhereBeWorkStillLeaves) {
  const HeadView& lc_head = Gemm(15 * kMs, 4);
  const RunningView& workers = builder.AddRunningBe(be, kernel, kMs, {{kWholeDevice}});
  Plan plan = PlanNow();
  EXPECT_TRUE(IsLaunched(plan, lc_head, {.form = Form::kOriginal, .count = 1}));
  EXPECT_TRUE(IsEvicted(plan, workers.task, kWholeDevice, Reason::kEvictForLc));
  EXPECT_EQ(plan.replan_at_ns, builder.snapshot.now_ns);
  app().tasks_in_flight = 1;
  builder.running[0].parts[0].evicting = true;
  EXPECT_TRUE(IsHeld(PlanNow(), lc_head, Reason::kHoldWindow));
}

TEST_F(FusedPartnersTest, APartnerStaysBesideItsKernel) {
  const RunningView& partner = AddPartner(500 * kUs, 100 * kUs);
  const Plan plan = PlanNow();
  EXPECT_EQ(plan.evictions.size(), 0) << Describe(plan);
  EXPECT_EQ(FindLaunch(plan, partner.task), nullptr);
}

// Half of the accepted eviction, 20 us, is no lag; the age costs a tenth of what was served.
TEST_F(FusedPartnersTest, AQueryThatRunsLateSendsThePartnerAway) {
  const RunningView& partner = AddPartner(500 * kUs, 110 * kUs);
  const int64_t slack_ns = app().promise.LagSlack(app().solo_ns, app().shadow_p99_ns);
  app().lag_ns = slack_ns + 20 * kUs - 10 * kUs - 1'000;
  Plan plan = PlanNow();
  EXPECT_EQ(plan.evictions.size(), 0) << Describe(plan);
  EXPECT_LE(plan.replan_at_ns, builder.snapshot.now_ns + kFusedTurnNs) << "it looks again in time";
  app().lag_ns += 2'000;
  plan = PlanNow();
  EXPECT_TRUE(IsEvicted(plan, partner.task, kWholeDevice, Reason::kEvictForLc, 0));
  app().lag_ns = 0;
  builder.queries[0].headroom_ns = -1;
  EXPECT_TRUE(IsEvicted(PlanNow(), partner.task, kWholeDevice, Reason::kEvictForLc, 0));
}

// 500 us beside the partner take 550; its eviction takes 40 us.
TEST_F(FusedPartnersTest, APartnerLeavesInTimeForTheNextKernel) {
  const RunningView& partner = AddPartner(500 * kUs, 100 * kUs);
  const HeadView& next = builder.AddLcKernelHead(0, gemm, 500 * kUs);
  Plan plan = PlanNow();
  EXPECT_EQ(plan.evictions.size(), 0) << Describe(plan);
  EXPECT_TRUE(IsHeld(plan, next, Reason::kHoldWindow));
  EXPECT_GT(plan.replan_at_ns, builder.snapshot.now_ns + 300 * kUs);
  EXPECT_LE(plan.replan_at_ns, builder.snapshot.now_ns + 411 * kUs);
  builder.running[0].parts[0].launched_ns = builder.snapshot.now_ns - 520 * kUs;
  plan = PlanNow();
  EXPECT_TRUE(IsEvicted(plan, partner.task, kWholeDevice, Reason::kEvictForLc, 0));
}

// Beside the GEMM, which takes 550 us, a BE task of 300 us takes 550. One of 310 us takes more than
// a turn longer.
TEST_F(FusedPartnersTest, APartnerThatEndsWithItsKernelIsNotEvicted) {
  AddPartner(500 * kUs, 540 * kUs);
  builder.AddLcKernelHead(0, gemm, 500 * kUs);
  for (const int64_t whole_ns : {300 * kUs, 310 * kUs}) {
    builder.running[0].task.block_ns = static_cast<double>(whole_ns) / 100'000;
    EXPECT_EQ(PlanNow().evictions.size(), whole_ns == 300 * kUs ? 0 : 1);
  }
}

TEST_F(FusedPartnersTest, APartnerWhoseKernelHasEndedGoesOnUntilTheNextIsLaunched) {
  const RunningView& partner = AddPartner(0, 600 * kUs);
  app().tasks_in_flight = 0;
  EXPECT_EQ(PlanNow().evictions.size(), 0) << "the application has not submitted the next";
  const HeadView& next = builder.AddLcKernelHead(0, gemm, 500 * kUs);
  const Plan plan = PlanNow();
  EXPECT_NE(FindLaunch(plan, next), nullptr);
  EXPECT_TRUE(IsEvicted(plan, partner.task, kWholeDevice, Reason::kEvictForLc, 0));
}

// Beyond its LC kernel's end a partner has its fused blocks' workers: the curve rises by 1.5 there.
TEST_F(FusedPartnersTest, APartnerReturnsAsWorkersBetweenQueries) {
  const RunningView& partner =
      builder.AddRunningBe(be, kernel, kMs, {{kWholeDevice, Form::kFused}});
  EXPECT_EQ(PlanNow().evictions.size(), 0) << "the curve rises by 1: it is as fast";
  Pair().curve.bend += 0.5;
  EXPECT_TRUE(IsEvicted(PlanNow(), partner.task, kWholeDevice, Reason::kEvictForLayout));
  builder.running[0].task.remaining.duration_ns = 100 * kUs;
  EXPECT_EQ(PlanNow().evictions.size(), 0) << "too little is left to pay for it";
}

// Beside a GEMM, the kernel's block tasks take so much longer that no budget has room for one.
TEST_F(FusedPartnersTest, APartnerThatLeavesTooLateIsNone) {
  const HeadView& lc_head = Gemm();
  const HeadView& be_head = builder.AddBeHead(be, kernel, kMs);
  BlocksOfSm(be_head.kernel->resources.workers_per_sm_max);
  app().blocking_budget_ns = 74 * kUs;  // 40 us x 1.1 / 0.6
  EXPECT_EQ(FindLaunch(PlanNow(), lc_head)->form, Form::kFused);
  app().blocking_budget_ns = 73 * kUs;
  EXPECT_EQ(FindLaunch(PlanNow(), lc_head)->form, Form::kOriginal);
}

// One fused block an SM has one worker of each part: 132 in all.
TEST_F(FusedPartnersTest, AQuotaBoundsThePartnersWorkers) {
  const HeadView& lc_head = Gemm();
  const HeadView& be_head = builder.AddBeHead(be, kernel, kMs);
  const int32_t workers = be_head.kernel->resources.workers_per_sm_max;
  const int32_t quota = 100 / workers;
  builder.be_apps[0].quota_capsms = quota;
  Plan plan = PlanNow();
  ASSERT_TRUE(IsFusedWith(plan, lc_head, be_head));
  EXPECT_TRUE(IsEvicted(plan, be_head, kWholeDevice, Reason::kEvictForQuota, quota * workers))
      << "its eviction word keeps the quota";
  EXPECT_NEAR(static_cast<double>(plan.choice.value),
              (0.6 + 0.4 * (0.6 - 0.1) * quota * workers / 132) * 1e6, 1e3);
  builder.be_apps[0].used_capsms = quota;
  plan = PlanNow();
  EXPECT_FALSE(IsFusedWith(plan, lc_head, be_head)) << "nothing is left of the quota";
}

// 40 us of BE work take a quarter of the workers a third of the kernel's 500 us. They pay for a
// turn of 11 us; a quarter of 40 us does not.
TEST_F(FusedPartnersTest, AShortTaskWithinAQuotaGainsAllOfItsWork) {
  const HeadView& lc_head = Gemm();
  const HeadView& be_head = builder.AddBeHead(be, kernel, 40 * kUs);
  builder.be_apps[0].quota_capsms = 33 / be_head.kernel->resources.workers_per_sm_max;
  EXPECT_TRUE(IsFusedWith(PlanNow(), lc_head, be_head));
}

TEST_F(FusedPartnersTest, AReservationHoldsInAFusedLaunch) {
  const HeadView& lc_head = Gemm();
  const HeadView& be_head = builder.AddBeHead(be, kernel, kMs);
  const int32_t workers = lc_head.kernel->resources.workers_per_sm_max;
  BlocksOfSm(workers);
  app().reserved_capsms = 100;
  EXPECT_TRUE(IsFusedWith(PlanNow(), lc_head, be_head));
  const_cast<KernelDesc*>(lc_head.kernel)->resources.workers_per_sm_max = 2 * workers;
  EXPECT_FALSE(IsFusedWith(PlanNow(), lc_head, be_head)) << "its part alone has 66 CapSMs";
}

// A confined task has its home, and no place there is a fused launch's.
TEST_F(FusedPartnersTest, WorkWithAPackedQuotaIsNoPartner) {
  SnapshotBuilder split;
  const int32_t app_index = split.AddLcAppWithTarget(0.4, 2 * kMs, 20 * kMs);
  const int32_t be_app = split.AddBeApp();
  const int32_t lc_kernel = split.AddKernel(kNever);
  const int32_t be_kernel = split.AddKernel(40 * kUs);
  split.Fuse(lc_kernel, be_kernel, 0.6, 1.1);
  split.lc_apps[0].main_kernel = {static_cast<uint32_t>(lc_kernel + 1)};
  split.be_apps[0].quota_capsms = 48;
  split.be_apps[0].packed = true;
  const HeadView& lc_head =
      split.AddLcKernelHead(split.AddQuery(app_index, 15 * kMs), lc_kernel, 500 * kUs);
  const HeadView& be_head = split.AddBeHead(be_app, be_kernel, kMs);
  EXPECT_FALSE(IsFusedWith(PlanOf("adaptive", split), lc_head, be_head));
}

TEST_F(FusedPartnersTest, TwoLcHeadsGoAtOnce) {
  const HeadView& one = Gemm();
  const HeadView& other = Gemm();
  builder.AddBeHead(be, kernel, kMs);
  const Plan plan = PlanNow();
  EXPECT_TRUE(IsLaunched(plan, one, {.form = Form::kOriginal}));
  EXPECT_TRUE(IsLaunched(plan, other, {.form = Form::kOriginal}));
}

TEST_F(FusedPartnersTest, BetweenQueriesBeWorkHasTheDeviceAsWorkers) {
  const HeadView& be_head = builder.AddBeHead(be, kernel, kMs);
  const Plan plan = PlanNow();
  EXPECT_TRUE(IsLaunched(plan, be_head, {.form = Form::kWorkers, .place = kWholeDevice}));
  EXPECT_FALSE(plan.routes[0].fast_path) << "the next query's kernels are decisions";
}

// A query whose kernels have all been launched alone takes no partner along any more.
TEST_F(FusedPartnersTest, WhereNothingOfAQueryCanBeFusedGridsGoBesideIt) {
  builder.AddQuery(lc, 15 * kMs);
  app().tasks_in_flight = 2;
  const HeadView& be_head = builder.AddBeHead(be, kernel, kMs);
  EXPECT_TRUE(IsLaunched(PlanNow(), be_head, {.form = Form::kOriginal}));
}

// With a bound of 1.05 on the p99 a pair that slows kernels by a tenth is chosen for a part of LC's
// time at most, by what the queue makes of it.
TEST_F(FusedPartnersTest, ABoundLimitsTheShareOfTimeThatIsFused) {
  app().promise = Promise();
  app().promise.p99_bound = 1.05;
  app().promise.p99_alone_ns = 6 * kMs;
  app().blocking_budget_ns = 270 * kUs;
  const HeadView& lc_head = Gemm(kNever);
  builder.AddBeHead(be, kernel, kMs);
  const Plan tight = PlanNow();
  if (FindLaunch(tight, lc_head)->form == Form::kFused) {
    EXPECT_LT(tight.choice.value, 0.8e6);
    EXPECT_LE(tight.choice.shift.shift_ns, tight.choice.shift.limit_ns);
  }
  app().promise.p99_bound = 1.5;
  const Plan loose = PlanNow();
  EXPECT_EQ(FindLaunch(loose, lc_head)->form, Form::kFused) << Describe(loose);
  EXPECT_GE(loose.choice.value, tight.choice.value);
}

}  // namespace
}  // namespace gpushare::core::testing
