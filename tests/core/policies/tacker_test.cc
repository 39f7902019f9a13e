// tacker: equations 7 to 9 with their corrections, the choice by T_gain, pruning, and what happens
// to LC kernels that could be fused. Durations are the paper's terms: a TC kernel of 100 us.

#include <gtest/gtest.h>

#include <vector>

#include "src/core/base/tuning.h"
#include "tests/core/policies/snapshot_builder.h"

namespace gpushare::core::testing {
namespace {

class TackerTest : public ::testing::Test {
 protected:
  SnapshotBuilder builder;
  int32_t lc = builder.AddLcAppWithTarget(0.3, 1 * kMs, 10 * kMs);
  int32_t be = builder.AddBeApp();
  int32_t gemm = builder.AddKernel(kNever);
  int32_t fft = builder.AddKernel(40 * kUs);
  int32_t sgemm = builder.AddKernel(40 * kUs);

  // The last query, whose next kernel is the GEMM of 100 us.
  HeadView& Gemm(int64_t headroom_ns, int32_t ready_count = 1) {
    const int32_t query = builder.AddQuery(lc, headroom_ns);
    return builder.AddLcKernelHead(query, gemm, 100 * kUs, ready_count);
  }
  static bool Fused(const Plan& plan, const HeadView& lc, const HeadView& be) {
    const PlannedLaunch* launch = FindLaunch(plan, lc);
    return launch != nullptr && launch->form == Form::kFused && launch->fused_with == be.task;
  }
};

// T_k_fuse = 120 us where both end together: 20 us of headroom do 100 us of BE work.
TEST_F(TackerTest, FusesWhenTheHeadroomCoversTheLongerKernel) {
  builder.Fuse(gemm, fft, 1, 1.2);
  const HeadView& tc = Gemm(5 * kMs);
  const HeadView& cd = builder.AddBeHead(be, fft, 100 * kUs);
  const Plan plan = PlanOf("tacker", builder);
  ASSERT_EQ(plan.launches.size(), 1);
  EXPECT_TRUE(Fused(plan, tc, cd));
  EXPECT_EQ(plan.launches[0].place, kWholeDevice);
  EXPECT_EQ(plan.launches[0].reason, Reason::kFitsHeadroom);
  EXPECT_EQ(plan.holds.size(), 0);
}

// Eq. 8: T_k_fuse - T_tc < T_hr, and equal is not enough. 500 us of TC and CD work take 600 us.
TEST_F(TackerTest, TheHeadroomMustExceedWhatTheFusedKernelTakesLonger) {
  builder.Fuse(gemm, fft, 1, 1.2);
  HeadView& tc = Gemm(100 * kUs);
  tc.remaining.duration_ns = 500 * kUs;
  const HeadView& cd = builder.AddBeHead(be, fft, 500 * kUs);
  EXPECT_FALSE(Fused(PlanOf("tacker", builder), tc, cd));
  builder.queries[0].headroom_ns = 100 * kUs + 1;
  EXPECT_TRUE(Fused(PlanOf("tacker", builder), tc, cd));
}

// The error of the curve and of the BE kernel widens what is charged: hypot(0.1 x 600, 80) = 100.
TEST_F(TackerTest, ErrorBarsWidenWhatIsCharged) {
  builder.Fuse(gemm, fft, 1, 1.2).curve.error = 0.1;
  HeadView& tc = Gemm(200 * kUs);
  tc.remaining.duration_ns = 500 * kUs;
  HeadView& cd = builder.AddBeHead(be, fft, 500 * kUs);
  cd.remaining.error_ns = 80 * kUs;
  EXPECT_FALSE(Fused(PlanOf("tacker", builder), tc, cd));
  builder.queries[0].headroom_ns = 200 * kUs + 1;
  EXPECT_TRUE(Fused(PlanOf("tacker", builder), tc, cd));
}

// Both stages of the curve (eq. 5 and 6 as corrected): at half the opportune ratio the pair takes
// 110 us and gains 40, at twice the ratio 220 us and gains 80, as at the ratio itself.
TEST_F(TackerTest, ThePartnerIsTheOneWithTheLargestGain) {
  builder.Fuse(gemm, fft, 1, 1.2);
  builder.Fuse(gemm, sgemm, 1, 1.5);
  const HeadView& tc = Gemm(5 * kMs);
  builder.AddBeHead(be, fft, 50 * kUs);     // gains 40
  builder.AddBeHead(be, sgemm, 100 * kUs);  // gains 50
  EXPECT_TRUE(Fused(PlanOf("tacker", builder), tc, builder.head(2)));
  builder.heads[1].remaining.duration_ns = 65 * kUs;  // gains 52
  EXPECT_TRUE(Fused(PlanOf("tacker", builder), tc, builder.head(1)));
  builder.heads[1].remaining.duration_ns = 200 * kUs;  // gains 80
  EXPECT_TRUE(Fused(PlanOf("tacker", builder), tc, builder.head(1)));
  // Beyond the ratio the gain stays: equal gains go to the first in order.
  builder.Fuse(gemm, fft, 1, 1.2);
  builder.AddBeHead(be, fft, 300 * kUs);
  EXPECT_TRUE(Fused(PlanOf("tacker", builder), tc, builder.head(1)));
}

// At half the load of the GEMM the second variant takes 105 us and the first 110; at twice its load
// 255 and 220 us. A variant that never gains hides no other.
TEST_F(TackerTest, TheVariantOfAPairIsTheOneWithTheLargestGain) {
  const FusedView& even = builder.Fuse(gemm, fft, 1, 1.2);
  const KernelId one_to_one = even.kernel->id;
  const KernelId one_to_two = builder.Fuse(gemm, fft, 0.5, 1.05).kernel->id;
  ASSERT_NE(one_to_one, one_to_two);
  const HeadView& tc = Gemm(5 * kMs);
  HeadView& cd = builder.AddBeHead(be, fft, 50 * kUs);
  EXPECT_EQ(FindLaunch(PlanOf("tacker", builder), tc)->fused_kernel, one_to_two);
  cd.remaining.duration_ns = 200 * kUs;
  EXPECT_EQ(FindLaunch(PlanOf("tacker", builder), tc)->fused_kernel, one_to_one);
  builder.fused[0].curve = {1, 1, 0, 1, 0, true};
  EXPECT_TRUE(Fused(PlanOf("tacker", builder), tc, cd));
  EXPECT_EQ(FindLaunch(PlanOf("tacker", builder), tc)->fused_kernel, one_to_two);
}

TEST_F(TackerTest, TheChoiceHasTheSecondGainOfAnotherTask) {
  builder.Fuse(gemm, fft, 1, 1.2);
  builder.Fuse(gemm, sgemm, 1, 1.5);
  const HeadView& tc = Gemm(5 * kMs);
  const HeadView& second = builder.AddBeHead(be, fft, 50 * kUs);    // gains 40
  const HeadView& first = builder.AddBeHead(be, sgemm, 100 * kUs);  // gains 50
  const Plan plan = PlanOf("tacker", builder);
  EXPECT_EQ(plan.choice.kind, ChoiceKind::kOverlap);
  EXPECT_EQ(plan.choice.tasks, (std::array<TicketId, 2>{tc.task, first.task}));
  EXPECT_EQ(plan.choice.chosen, static_cast<int64_t>(first.task.value));
  EXPECT_EQ(plan.choice.runner_up, static_cast<int64_t>(second.task.value));
  EXPECT_EQ(plan.choice.value, 50 * kUs);
  EXPECT_EQ(plan.choice.runner_up_value, 40 * kUs);
  builder.heads[2].remaining.duration_ns = 1;  // fft alone is left, in any order
  EXPECT_EQ(PlanOf("tacker", builder).choice.chosen, static_cast<int64_t>(second.task.value));
}

// The other way round: the query's CD kernel of 100 us beside a BE TC kernel of 200 us. The load
// ratio is 0.5, and the pair takes 1.1 x 200 us.
TEST_F(TackerTest, AnLcCudaKernelFusesWithABeTensorKernel) {
  builder.Fuse(fft, gemm, 1, 1.2);  // fft as the TC part
  HeadView& cd = Gemm(121 * kUs);
  const HeadView& tc = builder.AddBeHead(be, fft, 200 * kUs);
  EXPECT_TRUE(Fused(PlanOf("tacker", builder), cd, tc));
  builder.queries[0].headroom_ns = 120 * kUs;
  EXPECT_FALSE(Fused(PlanOf("tacker", builder), cd, tc));
}

// Serial wins: the BE kernel goes into the headroom by itself, as under baymax.
TEST_F(TackerTest, WhereFusingLosesTheBeKernelIsReordered) {
  builder.Fuse(gemm, fft, 1, 2.1);
  const HeadView& tc = Gemm(5 * kMs);
  const HeadView& cd = builder.AddBeHead(be, fft, 100 * kUs);
  const Plan plan = PlanOf("tacker", builder);
  ASSERT_EQ(plan.launches.size(), 2);
  EXPECT_EQ(plan.launches[0].task, tc.task);
  EXPECT_EQ(plan.launches[0].form, Form::kOriginal);
  EXPECT_EQ(plan.launches[1].task, cd.task);
  EXPECT_EQ(plan.launches[1].form, Form::kOriginal);
}

TEST_F(TackerTest, WithNextToNoHeadroomAllKernelsOfTheQueryAreLaunched) {
  builder.Fuse(gemm, fft, 1, 1.01);
  const HeadView& tc = Gemm(kTackerHeadroomNsMin, 7);
  const HeadView& cd = builder.AddBeHead(be, fft, 100 * kUs);
  const Plan plan = PlanOf("tacker", builder);
  EXPECT_TRUE(IsLaunched(plan, tc, {.form = Form::kOriginal, .count = 7}));
  EXPECT_EQ(FindHold(plan, cd)->reason, Reason::kHoldHeadroom);
  EXPECT_EQ(plan.replan_at_ns, kNever);
}

TEST_F(TackerTest, OtherBeKernelsWaitForTheNextDecision) {
  builder.Fuse(gemm, fft, 1, 1.2);
  Gemm(5 * kMs, 3);
  const HeadView& cd = builder.AddBeHead(be, fft, 100 * kUs);
  const HeadView& other = builder.AddBeHead(be, sgemm, 1 * kMs);
  const HeadView& copy = builder.AddBeCopy(be, CopyDirection::kHostToDevice, 1 << 20, 20 * kUs);
  const Plan plan = PlanOf("tacker", builder);
  EXPECT_EQ(FindLaunch(plan, cd)->form, Form::kFused);
  EXPECT_TRUE(IsHeld(plan, other, Reason::kHoldWindow));
  EXPECT_NE(FindLaunch(plan, copy), nullptr) << "copies do not use the SMs";
  EXPECT_EQ(plan.launches[0].count, 1);
  EXPECT_EQ(plan.replan_at_ns, kNever) << "the end of this kernel asks for the next decision";
}

TEST_F(TackerTest, TheNextKernelIsADecisionOfItsOwn) {
  builder.Fuse(gemm, fft, 1, 1.2);
  builder.AddRunningBe(be, fft, 100 * kUs, {{}});
  Gemm(5 * kMs, 3);
  EXPECT_EQ(PlanOf("tacker", builder).launches[0].count, 1);
  EXPECT_EQ(PlanOf("tacker", builder).replan_at_ns, builder.snapshot.now_ns);
  // Behind a fused launch the flow may refuse this kernel: asking at once would never end.
  builder.running.back().parts[0].form = Form::kFused;
  EXPECT_EQ(PlanOf("tacker", builder).replan_at_ns, builder.snapshot.now_ns + kTackerReplanNs);
  builder.heads[0].ready_count = 1;
  EXPECT_EQ(PlanOf("tacker", builder).replan_at_ns, builder.snapshot.now_ns + 5 * kMs + 1)
      << "when the headroom is used up";
}

// T_q has the whole launch until its parts end: of 300 us, 100 have passed. A query with 100 us
// less than nothing is just in time.
TEST_F(TackerTest, AFusedPartnerLeavesWhereTheHeadroomIsUsedUp) {
  builder.Fuse(gemm, fft, 1, 1.2);
  RunningView& partner = builder.AddRunningBe(be, fft, 100 * kUs, {{kWholeDevice, Form::kFused}});
  partner.parts[0].launched_ns = builder.snapshot.now_ns - 100 * kUs;
  builder.snapshot.queued_ns = 300 * kUs;
  const auto query = static_cast<size_t>(builder.AddQuery(lc, -100 * kUs));
  Plan plan = PlanOf("tacker", builder);
  EXPECT_EQ(plan.evictions.size(), 0) << Describe(plan);
  EXPECT_EQ(plan.replan_at_ns, builder.snapshot.now_ns + 200 * kUs + 1);
  builder.queries[query].headroom_ns -= 1;
  plan = PlanOf("tacker", builder);
  EXPECT_TRUE(IsEvicted(plan, partner.task, kWholeDevice, Reason::kEvictForLc, 0));
}

// Nothing of tacker leaves for a query, so BE work is never on what is reserved.
class TackerRoomTest : public TackerTest {
 protected:
  TackerRoomTest() {
    builder.Fuse(gemm, fft, 1, 1.2);
    workers_of_sm_ = builder.AddBeHead(be, fft, 100 * kUs).kernel->resources.workers_per_sm_max;
    builder.heads.clear();
  }
  int32_t workers_of_sm_ = 1;
};

TEST_F(TackerRoomTest, AKernelRunsAsTheWorkersThatItsQuotaLeaves) {
  builder.be_apps[0].quota_capsms = 16;
  const HeadView& cd = builder.AddBeHead(be, fft, 100 * kUs);
  EXPECT_TRUE(IsLaunched(
      PlanOf("tacker", builder), cd,
      {.form = Form::kWorkers, .lane_class = LaneClass::kBe, .workers = 16 * workers_of_sm_}));
  builder.be_apps[0].used_capsms = 16;
  EXPECT_TRUE(IsHeld(PlanOf("tacker", builder), cd, Reason::kHoldCapSm));
}

TEST_F(TackerRoomTest, AReservationStaysFree) {
  builder.lc_apps[0].reserved_capsms = 100;
  const HeadView& cd = builder.AddBeHead(be, fft, 100 * kUs);
  EXPECT_TRUE(IsLaunched(PlanOf("tacker", builder), cd,
                         {.form = Form::kWorkers, .workers = 32 * workers_of_sm_}));
  const int32_t other = builder.AddBeApp();
  builder.be_apps[static_cast<size_t>(other)].used_capsms = 30;
  EXPECT_TRUE(IsLaunched(PlanOf("tacker", builder), cd, {.workers = 2 * workers_of_sm_}));
}

// What no worker form bounds: the largest BE side of at most 32 SMs has 24.
TEST_F(TackerRoomTest, OtherWorkHasItsPlace) {
  builder.lc_apps[0].reserved_capsms = 100;
  const HeadView& fixed = builder.AddBeHead(be, gemm, 100 * kUs);
  const Plan plan = PlanOf("tacker", builder);
  EXPECT_TRUE(IsLaunched(plan, fixed, {.place = builder.BePlace(108)}));
  EXPECT_NE(plan.places_wanted & (uint64_t{1} << builder.BePlace(108)), 0U);
  builder.heads[0].confinable = false;
  EXPECT_TRUE(IsLaunched(PlanOf("tacker", builder), fixed, {.place = kWholeDevice}))
      << "alone, while no query is active";
  Gemm(5 * kMs);
  EXPECT_TRUE(IsHeld(PlanOf("tacker", builder), fixed, Reason::kHoldCapSm));
}

TEST_F(TackerRoomTest, APartnerHasTheWorkersThatItsQuotaLeaves) {
  builder.be_apps[0].quota_capsms = 64 / workers_of_sm_;
  const HeadView& tc = Gemm(5 * kMs);
  const HeadView& cd = builder.AddBeHead(be, fft, 100 * kUs);
  const Plan plan = PlanOf("tacker", builder);
  ASSERT_TRUE(Fused(plan, tc, cd)) << Describe(plan);
  EXPECT_TRUE(IsEvicted(plan, cd, kWholeDevice, Reason::kEvictForQuota,
                        64 / workers_of_sm_ * workers_of_sm_));
}

TEST_F(TackerRoomTest, WithoutAQuotaAKernelIsAnOrdinaryGrid) {
  builder.be_apps[static_cast<size_t>(builder.AddBeApp())].quota_capsms = 16;
  const HeadView& cd = builder.AddBeHead(be, fft, 100 * kUs);
  EXPECT_TRUE(IsLaunched(PlanOf("tacker", builder), cd,
                         {.form = Form::kOriginal, .lane_class = LaneClass::kPlain}));
}

// VII-B2: the kernels of earlier queries go first, and BE work meets only the last query.
TEST_F(TackerTest, OnlyTheQueryThatArrivedLastGivesWay) {
  builder.Fuse(gemm, fft, 1, 1.2);
  const int32_t early = builder.AddQuery(lc, 5 * kMs);
  builder.AddLcKernelHead(early, gemm, 100 * kUs);
  const int32_t late = builder.AddQuery(lc, 4 * kMs);
  builder.AddLcKernelHead(late, gemm, 100 * kUs);
  const HeadView& cd = builder.AddBeHead(be, fft, 100 * kUs);
  const Plan plan = PlanOf("tacker", builder);
  EXPECT_EQ(plan.launches.size(), 2);
  for (int32_t i = 0; i < 2; ++i) EXPECT_EQ(plan.launches[i].form, Form::kOriginal);
  EXPECT_TRUE(IsHeld(plan, cd, Reason::kHoldLcActive));
  // Once the earlier query is on the device, its headroom does not matter.
  builder.heads.pop_front();
  builder.queries[0].headroom_ns = 1;
  const Plan next = PlanOf("tacker", builder);
  ASSERT_EQ(next.launches.size(), 1);
  EXPECT_TRUE(Fused(next, builder.head(0), builder.head(1)));
}

TEST_F(TackerTest, CoResidentWorkersAreACandidateOfTheSameKind) {
  const int32_t gemm_row = builder.AddOverlapRow(gemm);
  const int32_t fft_row = builder.AddOverlapRow(fft);
  // The row's kernel is the first: fft at 0.5 of its speed, the GEMM at 0.8.
  builder.CoSchedule(fft_row, gemm_row, 1) = {{4, 6}, {0.5F, 0.8F}, 0, 1 - 1 / 1.3F};
  HeadView& tc = Gemm(5 * kMs);
  tc.overlap_index = gemm_row;
  HeadView& cd = builder.AddBeHead(be, fft, 50 * kUs);
  cd.overlap_index = fft_row;
  Plan plan = PlanOf("tacker", builder);
  ASSERT_EQ(plan.launches.size(), 2);
  EXPECT_EQ(plan.launches[0].task, cd.task) << "the workers are there before the grid";
  EXPECT_EQ(plan.launches[0].form, Form::kWorkers);
  EXPECT_EQ(plan.launches[0].lane_class, LaneClass::kBe);
  EXPECT_EQ(plan.launches[0].workers, 4 * 132);
  EXPECT_EQ(plan.launches[1].task, tc.task);
  // 50 us at half speed: both run for 100 us, of which the GEMM loses 20. A fused kernel that takes
  // 110 us is better, one that takes 125 us is not.
  builder.Fuse(gemm, fft, 1, 1.2);
  EXPECT_TRUE(Fused(PlanOf("tacker", builder), tc, cd));
  builder.fused[0].curve = {1, 0.5, 0.5, 1, 0, true};
  EXPECT_EQ(PlanOf("tacker", builder).launches[0].form, Form::kWorkers);
  // A node of a graph is cut out for a fused kernel, not for workers.
  const std::vector<GraphPiece> pieces = {
      {.kernel = tc.kernel->id, .is_node = true, .solo_ns = 100 * kUs}};
  builder.lc_apps[static_cast<size_t>(lc)].pieces = pieces;
  EXPECT_TRUE(Fused(PlanOf("tacker", builder), tc, cd));
  builder.lc_apps[static_cast<size_t>(lc)].pieces = {};
  // Work without workers cannot share the SMs.
  builder.snapshot.eviction_available = false;
  EXPECT_TRUE(Fused(PlanOf("tacker", builder), tc, cd));
}

// VIII-I: a CD kernel that one TC kernel showed not to gain is not fused with others either, until
// somebody measures it there.
TEST_F(TackerTest, ACudaKernelThatFailedWithOneTensorKernelIsNotFusedWithOthers) {
  const int32_t conv = builder.AddKernel(kNever);
  builder.Fuse(conv, fft, 1, 2.2);
  builder.Fuse(gemm, fft, 1, 1.2).curve.trained = false;
  const HeadView& tc = Gemm(5 * kMs);
  const HeadView& cd = builder.AddBeHead(be, fft, 100 * kUs);
  EXPECT_FALSE(Fused(PlanOf("tacker", builder), tc, cd));
  builder.fused[1].curve.trained = true;
  EXPECT_TRUE(Fused(PlanOf("tacker", builder), tc, cd));
  builder.fused[1].curve.trained = false;
  builder.fused[0].curve.trained = false;
  EXPECT_TRUE(Fused(PlanOf("tacker", builder), tc, cd)) << "nobody measured a failure";
}

// Workers start at once, beside the kernels of earlier queries, which are on the device: each query
// pays for them, and so does the next one behind what is issued and waiting. A fused kernel starts
// behind the earlier kernels (OnlyTheQueryThatArrivedLastGivesWay).
TEST_F(TackerTest, WorkersAreChargedToEveryQueryAndToTheNext) {
  const int32_t gemm_row = builder.AddOverlapRow(gemm);
  const int32_t fft_row = builder.AddOverlapRow(fft);
  builder.CoSchedule(fft_row, gemm_row, 1) = {{4, 6}, {0.5F, 0.8F}, 0, 1 - 1 / 1.3F};
  builder.AddQuery(lc, 21 * kUs);  // all of its kernels are on the device
  HeadView& tc = Gemm(5 * kMs);
  tc.overlap_index = gemm_row;
  HeadView& cd = builder.AddBeHead(be, fft, 50 * kUs);
  cd.overlap_index = fft_row;
  const auto overlaps = [&] {
    const Plan plan = PlanOf("tacker", builder);
    const PlannedLaunch* launch = FindLaunch(plan, cd);
    return launch != nullptr && launch->form == Form::kWorkers;
  };
  // Both run for 100 us, in which the GEMM loses 20.
  EXPECT_TRUE(overlaps());
  builder.queries[0].headroom_ns = 20 * kUs;
  EXPECT_FALSE(overlaps());
  builder.queries[0].headroom_ns = 21 * kUs;
  // The next query has 9 ms of T_tgt - T_self. T_q and the query's kernels that wait go before it.
  builder.snapshot.queued_ns = 8 * kMs;
  builder.queries[1].solo_ns = 979 * kUs;
  EXPECT_TRUE(overlaps());
  builder.queries[1].solo_ns = 980 * kUs;
  EXPECT_FALSE(overlaps());
}

// Reordering leaves the next query its time behind the kernels that tacker itself holds back.
TEST_F(TackerTest, KernelsThatWaitForAPartnerCountAsQueued) {
  builder.AddQuery(lc, 8 * kMs);
  const HeadView& head = builder.AddBeHead(be, sgemm, 4 * kMs);
  builder.snapshot.queued_ns = 4 * kMs;
  builder.queries[0].solo_ns = 2 * kMs;
  builder.queries[0].done_ns = 1 * kMs;
  EXPECT_NE(FindLaunch(PlanOf("tacker", builder), head), nullptr);
  builder.queries[0].done_ns = 1 * kMs - 1;
  const Plan held = PlanOf("tacker", builder);
  EXPECT_TRUE(IsHeld(held, head, Reason::kHoldQueuedTime));
}

// A fused kernel ends when both parts have ended, and is charged so. The next kernel waits for that
// where it can be fused again, at most as long as it would take alone.
TEST_F(TackerTest, AKernelWaitsForTheOtherPartOfTheFusedLaunchBeforeIt) {
  builder.Fuse(gemm, fft, 1, 1.2);
  const HeadView& tc = Gemm(5 * kMs, 3);
  builder.AddRunningBe(be, fft, 100 * kUs, {{kWholeDevice, Form::kFused, false, 0}});
  builder.running.back().task.followed = true;
  EXPECT_NE(FindHold(PlanOf("tacker", builder), tc), nullptr);
  builder.running.back().task.remaining.duration_ns = 100 * kUs + 1;
  EXPECT_NE(FindLaunch(PlanOf("tacker", builder), tc), nullptr);
  builder.running.back().task.remaining.duration_ns = 100 * kUs;
  builder.running.back().parts[0].form = Form::kOriginal;
  EXPECT_NE(FindLaunch(PlanOf("tacker", builder), tc), nullptr) << "nothing charged this wait";
}

// A kernel that could be fused waits for the running partner's next task, while the device has
// work.
TEST_F(TackerTest, AKernelWaitsForAPartnerOnlyBehindOtherWorkOfItsQuery) {
  builder.Fuse(gemm, fft, 1, 1.2);
  const HeadView& tc = Gemm(5 * kMs, 3);
  builder.AddRunningBe(be, fft, 100 * kUs, {{kWholeDevice, Form::kOriginal, false, 0}});
  builder.running.back().task.followed = true;
  builder.lc_apps[0].tasks_in_flight = 2;
  builder.queries[0].issued_ns = 200 * kUs;
  const Plan waits = PlanOf("tacker", builder);
  EXPECT_TRUE(IsHeld(waits, tc, Reason::kHoldWindow));
  builder.lc_apps[0].tasks_in_flight = 1;
  EXPECT_EQ(FindLaunch(PlanOf("tacker", builder), tc)->count, 1);
  builder.lc_apps[0].tasks_in_flight = 2;
  builder.queries[0].issued_ns = kTackerAheadNs - 1;
  EXPECT_NE(FindLaunch(PlanOf("tacker", builder), tc), nullptr) << "the device could run dry";
  builder.queries[0].issued_ns = 200 * kUs;
  builder.running.back().task.followed = false;
  EXPECT_NE(FindLaunch(PlanOf("tacker", builder), tc), nullptr) << "no partner will come";
}

// Workers are no partner of a node (CoResidentWorkersAreACandidateOfTheSameKind).
TEST_F(TackerTest, ANodeOfAGraphWaitsForAFusedKernelOnly) {
  const int32_t gemm_row = builder.AddOverlapRow(gemm);
  const int32_t fft_row = builder.AddOverlapRow(fft);
  builder.CoSchedule(fft_row, gemm_row, 1) = {{4, 6}, {0.5F, 0.8F}, 0, 1 - 1 / 1.3F};
  HeadView& tc = Gemm(5 * kMs, 3);
  tc.overlap_index = gemm_row;
  builder.AddRunningBe(be, fft, 100 * kUs, {{kWholeDevice, Form::kOriginal, false, 0}});
  builder.running.back().task.overlap_index = fft_row;
  builder.running.back().task.followed = true;
  builder.lc_apps[0].tasks_in_flight = 2;
  builder.queries[0].issued_ns = 200 * kUs;
  EXPECT_TRUE(IsHeld(PlanOf("tacker", builder), tc, Reason::kHoldWindow));
  const std::vector<GraphPiece> pieces = {
      {.kernel = tc.kernel->id, .is_node = true, .solo_ns = 100 * kUs}};
  builder.lc_apps[static_cast<size_t>(lc)].pieces = pieces;
  EXPECT_NE(FindLaunch(PlanOf("tacker", builder), tc), nullptr);
  builder.Fuse(gemm, fft, 1, 1.2);
  EXPECT_TRUE(IsHeld(PlanOf("tacker", builder), tc, Reason::kHoldWindow));
}

// The fast path would launch a kernel before the scheduler sees it. It is off only where an
// overlap may gain.
TEST_F(TackerTest, TheFastPathIsOffWhereAPartnerIsThere) {
  builder.lc_apps[0].main_kernel = {static_cast<uint32_t>(gemm + 1)};
  EXPECT_TRUE(PlanOf("tacker", builder).routes[0].fast_path);
  builder.Fuse(gemm, fft, 1, 1.2);
  EXPECT_TRUE(PlanOf("tacker", builder).routes[0].fast_path) << "no BE work";
  builder.AddBeHead(be, sgemm, 100 * kUs);
  EXPECT_TRUE(PlanOf("tacker", builder).routes[0].fast_path) << "no partner";
  builder.AddRunningBe(be, fft, 100 * kUs, {{}});
  EXPECT_FALSE(PlanOf("tacker", builder).routes[0].fast_path);
  builder.fused[0].curve = {1, 1, 0, 1, 0, true};
  EXPECT_TRUE(PlanOf("tacker", builder).routes[0].fast_path) << "the pair never gains";
  const int32_t gemm_row = builder.AddOverlapRow(gemm);
  const int32_t fft_row = builder.AddOverlapRow(fft);
  builder.running.back().task.overlap_index = fft_row;
  builder.CoSchedule(fft_row, gemm_row, 0) = {{4, 6}, {0.5F, 0.8F}, 0, 1 - 1 / 1.3F};
  EXPECT_FALSE(PlanOf("tacker", builder).routes[0].fast_path);
}

// A BE kernel of 5 ms in the headroom of 4 ms, and without a query behind T_q of 5 ms: 9 ms of
// T_tgt - T_self are left.
TEST_F(TackerTest, ReorderingIsBaymaxs) {
  const HeadView& held = builder.AddBeHead(be, fft, 5 * kMs);
  builder.AddQuery(lc, 4 * kMs);
  EXPECT_EQ(FindHold(PlanOf("tacker", builder), held)->reason, Reason::kHoldHeadroom);
  builder.queries.clear();
  builder.snapshot.queued_ns = 4 * kMs;
  EXPECT_NE(FindLaunch(PlanOf("tacker", builder), held), nullptr);
  builder.snapshot.queued_ns = 4 * kMs + 1;
  EXPECT_EQ(FindHold(PlanOf("tacker", builder), held)->reason, Reason::kHoldQueuedTime);
}

// Neither a gain nor the headroom is asked for, and nothing is reordered.
TEST_F(TackerTest, DirectFusesBlindly) {
  builder.Fuse(gemm, fft, 1, 2.5);  // longer than one after the other
  const HeadView& tc = Gemm(-1 * kMs, 2);
  const HeadView& other = builder.AddBeHead(be, sgemm, 10 * kUs);
  const HeadView& cd = builder.AddBeHead(be, fft, 5 * kMs);
  EXPECT_FALSE(Fused(PlanOf("tacker", builder), tc, cd));
  const Plan plan = PlanOf("tacker:direct", builder);
  EXPECT_TRUE(Fused(plan, tc, cd));
  EXPECT_FALSE(plan.routes[0].fast_path);
  EXPECT_EQ(FindLaunch(plan, tc)->count, 1);
  EXPECT_FALSE(FindLaunch(plan, tc)->fused_kernel) << "the first registered";
  EXPECT_TRUE(IsHeld(plan, other, Reason::kHoldLcActive));
  // Without a query both run; the GEMM is not there to take one along.
  builder.queries.clear();
  builder.heads.pop_front();
  const Plan idle = PlanOf("tacker:direct", builder);
  EXPECT_NE(FindLaunch(idle, builder.head(0)), nullptr);
  EXPECT_NE(FindLaunch(idle, builder.head(1)), nullptr);
}

TEST_F(TackerTest, DirectLaunchesAKernelWithoutAFusedOneAlone) {
  builder.Fuse(gemm, fft, 1, 1.2);
  const HeadView& tc = Gemm(5 * kMs, 3);
  builder.AddBeHead(be, sgemm, 10 * kUs);
  const Plan plan = PlanOf("tacker:direct", builder);
  EXPECT_TRUE(IsLaunched(plan, tc, {.form = Form::kOriginal, .count = 3}));
  EXPECT_TRUE(plan.routes[0].fast_path);
}

// A training step of 40 ms whose eviction waits for 200 us.
class TackerSegmentsTest : public TackerTest {
 protected:
  HeadView& AddStep() { return builder.AddBeGraph(be, graph, 40 * kMs); }
  RunningView& AddRunningStep() {
    return builder.AddRunningGraph(be, graph, 40 * kMs, {kWholeDevice, Form::kSegments});
  }
  int32_t graph = builder.AddKernel(200 * kUs);
};

TEST_F(TackerSegmentsTest, AGraphStartsInSegmentsWhereItsEvictionFitsTheHeadroom) {
  builder.AddQuery(lc, 200 * kUs);
  const HeadView& step = AddStep();
  Plan plan = PlanOf("tacker", builder);
  EXPECT_TRUE(IsLaunched(plan, step, {.form = Form::kSegments, .lane_class = LaneClass::kBe}));
  builder.queries[0].headroom_ns -= 1;
  EXPECT_TRUE(IsHeld(PlanOf("tacker", builder), step, Reason::kHoldHeadroom));
}

TEST_F(TackerSegmentsTest, ARunningGraphIsEvictedWhenAHeadroomIsUsedUp) {
  const RunningView& step = AddRunningStep();
  builder.AddQuery(lc, 2 * kMs);
  Plan plan = PlanOf("tacker", builder);
  EXPECT_EQ(plan.evictions.size(), 0) << Describe(plan);
  EXPECT_EQ(plan.replan_at_ns, builder.snapshot.now_ns + 2 * kMs + 1);
  builder.queries[0].headroom_ns = -1;
  plan = PlanOf("tacker", builder);
  EXPECT_NE(FindEviction(plan, step.task, kWholeDevice), nullptr) << Describe(plan);
}

// The pair takes 20 us longer than the GEMM alone, which the earlier query does not have.
TEST_F(TackerSegmentsTest, AGraphLeavesForAnOverlapThatTakesTheRestOfAHeadroom) {
  builder.Fuse(gemm, fft, 1, 1.2);
  const RunningView& step = AddRunningStep();
  builder.AddQuery(lc, 20 * kUs);
  const HeadView& tc = Gemm(5 * kMs);
  const HeadView& cd = builder.AddBeHead(be, fft, 100 * kUs);
  Plan plan = PlanOf("tacker", builder);
  ASSERT_TRUE(Fused(plan, tc, cd));
  EXPECT_EQ(plan.evictions.size(), 0) << Describe(plan);
  builder.queries[0].headroom_ns -= 1;
  plan = PlanOf("tacker", builder);
  ASSERT_TRUE(Fused(plan, tc, cd));
  EXPECT_NE(FindEviction(plan, step.task, kWholeDevice), nullptr) << Describe(plan);
}

TEST_F(TackerSegmentsTest, UnderDirectAGraphRunsWhileNoQueryIsActive) {
  const HeadView& step = AddStep();
  EXPECT_EQ(FindLaunch(PlanOf("tacker:direct", builder), step)->form, Form::kSegments);
  builder.heads.clear();
  const RunningView& running = AddRunningStep();
  EXPECT_EQ(PlanOf("tacker:direct", builder).evictions.size(), 0);
  builder.AddQuery(lc, 9 * kMs);
  const Plan plan = PlanOf("tacker:direct", builder);
  EXPECT_NE(FindEviction(plan, running.task, kWholeDevice), nullptr) << Describe(plan);
}

// A node of 500 us. A task of 5 us saves less than a cut costs; behind it come others, of a length
// that nobody knows.
TEST_F(TackerTest, AQueryIsCutForTheTaskThatIsThere) {
  builder.Fuse(gemm, fft, 1, 1.2);
  const std::vector<GraphPiece> pieces = {{.kernel = {static_cast<uint32_t>(gemm + 1)},
                                           .is_node = true,
                                           .solo_ns = 500 * kUs,
                                           .block_tasks = 100}};
  builder.lc_apps[static_cast<size_t>(lc)].pieces = pieces;
  const auto is_cut = [this] { return PlanOf("tacker", builder).routes[0].cuts_graphs; };
  EXPECT_FALSE(is_cut());
  HeadView& cd = builder.AddBeHead(be, fft, 5 * kUs);
  EXPECT_FALSE(is_cut());
  cd.followed = true;
  EXPECT_TRUE(is_cut());
  cd.followed = false;
  cd.remaining.duration_ns = 100 * kUs;
  EXPECT_TRUE(is_cut());
  builder.snapshot.cut_node_ns = 100 * kUs;  // of another device: more than is saved
  EXPECT_FALSE(is_cut());
}

}  // namespace
}  // namespace gpushare::core::testing
