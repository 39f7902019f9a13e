// Which mechanism adaptive picks for the pairs that were measured, and that the pick is a function
// of the snapshot alone.

#include <gtest/gtest.h>

#include "tests/core/policies/snapshot_builder.h"

namespace gpushare::core::testing {
namespace {

// Measured on one H200: 72-kernel GEMM chain, 667 us alone, p99 2,176 us at load 0.3, 0.82 of its
// speed on 92 SMs.
struct Chain1 : SnapshotBuilder {
  explicit Chain1(double bound = 1.05) {
    lc = AddLcApp(0.3, 667 * kUs, 2'176 * kUs, bound);
    be = AddBeApp();
  }
  void SetSpeed(int32_t kernel) {
    Pair(lc, kernel, 92).lc_speed = 0.82f;
    Pair(lc, kernel, 124).lc_speed = 0.94f;
  }
  int32_t lc, be;
};

// 16 memory-bound decode GEMMs, 546 us alone, a knee at 84 SMs.
struct Decode16 : SnapshotBuilder {
  explicit Decode16(double load = 0.3, int64_t p99_ns = 1'548 * kUs) {
    lc = AddLcApp(load, 546 * kUs, p99_ns, 1.03);
    be = AddBeApp();
  }
  void SetSpeed(int32_t kernel, float at_knee) {
    const float curve[][2] = {{68, .74f}, {84, at_knee}, {92, .7f}, {108, .86f}, {124, .8f}};
    for (const auto& point : curve) {
      PairOption& pair = Pair(lc, kernel, static_cast<int32_t>(point[0]));
      pair.lc_speed = std::min(point[1], at_knee);
      pair.lc_speed_alone = point[0] == 84 ? 1.005f : point[1];
    }
  }
  int32_t lc, be;
};

bool IsWholeWithEviction(const Plan& plan, const HeadView& head) {
  const PlannedLaunch* launch = FindLaunch(plan, head);
  return launch != nullptr && launch->place == kWholeDevice && launch->form == Form::kWorkers &&
         plan.routes[0].place == kWholeDevice && plan.routes[0].evict_overlapping;
}

TEST(AdaptiveLayoutTest, ChainThatNeedsItsSmsSharesByTime) {
  Chain1 builder;
  const int32_t sincos = builder.AddKernel(40 * kUs);
  builder.SetSpeed(sincos);
  const HeadView& head = builder.AddBeHead(builder.be, sincos, 8 * kMs);
  const Plan plan = PlanOf("adaptive", builder);
  EXPECT_TRUE(IsWholeWithEviction(plan, head)) << Describe(plan);
  EXPECT_EQ(FindLaunch(plan, head)->reason, Reason::kFitsBlockingBudget);
}

TEST(AdaptiveLayoutTest, DecodeAtItsKneeSharesElastically) {
  const struct {
    double load;
    int64_t p99_ns;
  } measured[] = {{0.3, 1'548 * kUs}, {0.5, 2'386 * kUs}, {0.7, 4'130 * kUs}};
  for (const auto& row : measured) {
    Decode16 builder(row.load, row.p99_ns);
    const int32_t sincos = builder.AddKernel(40 * kUs);
    builder.SetSpeed(sincos, 1.005f);
    const HeadView& head = builder.AddBeHead(builder.be, sincos, 8 * kMs);
    const Plan plan = PlanOf("adaptive", builder);
    EXPECT_NE(FindLaunch(plan, head, builder.BePlace(84)), nullptr) << Describe(plan);
    EXPECT_NE(FindLaunch(plan, head, builder.LcPlace(84)), nullptr) << Describe(plan);
    EXPECT_EQ(plan.launches.size(), 2);
    EXPECT_EQ(plan.routes[0].place, builder.LcPlace(84));
    EXPECT_TRUE(plan.routes[0].evict_overlapping);
  }
}

TEST(AdaptiveLayoutTest, TheChoiceHasTheSecondBestLayout) {
  Decode16 builder(0.3, 1'548 * kUs);
  const int32_t sincos = builder.AddKernel(40 * kUs);
  builder.SetSpeed(sincos, 1.005f);
  builder.AddBeHead(builder.be, sincos, 8 * kMs);
  const Plan plan = PlanOf("adaptive", builder);
  EXPECT_EQ(plan.choice.kind, ChoiceKind::kLayout);
  EXPECT_EQ(plan.choice.chosen, 84);
  EXPECT_EQ(plan.choice.runner_up, 132) << "the whole device, shared by time";
  EXPECT_GT(plan.choice.value, plan.choice.runner_up_value);
  EXPECT_NEAR(1e-6 * static_cast<double>(plan.choice.runner_up_value), 0.7, 0.05) << "1 - load";
  // The split makes queries slower by what the queue there is longer. On the whole device they wait
  // for the eviction, whose time the question rounds up.
  EXPECT_GT(plan.choice.shift.shift_ns, 0);
  EXPECT_LE(plan.choice.shift.shift_ns, plan.choice.shift.limit_ns);
  EXPECT_GE(plan.choice.runner_up_shift.shift_ns, 40 * kUs);
  EXPECT_LE(plan.choice.runner_up_shift.shift_ns, 45 * kUs);
  EXPECT_EQ(plan.choice.runner_up_shift.limit_ns, plan.choice.shift.limit_ns);
  EXPECT_EQ(PlanOf("adaptive:evict", builder).choice.kind, ChoiceKind::kNone)
      << "nothing to choose";
}

// Predicted p99 over alone: 1.020 at a speed of 0.987, 1.027 at 0.983. The bound is 1.03.
TEST(AdaptiveLayoutTest, ASplitMayUseAShareOfTheSlackOfABound) {
  for (const float speed : {0.987f, 0.983f}) {
    Decode16 builder(0.3, 1'548 * kUs);
    const int32_t sincos = builder.AddKernel(kUs);
    builder.SetSpeed(sincos, speed);
    builder.AddBeHead(builder.be, sincos, 8 * kMs);
    const Plan plan = PlanOf("adaptive", builder);
    EXPECT_EQ(plan.routes[0].place, speed == 0.987f ? builder.LcPlace(84) : kWholeDevice)
        << Describe(plan);
  }
}

TEST(AdaptiveLayoutTest, ANeighbourThatFightsForMemorySharesByTime) {
  Decode16 builder(0.5, 2'386 * kUs);
  const int32_t streaming = builder.AddKernel(58 * kUs);
  builder.SetSpeed(streaming, 0.5f);
  const HeadView& head = builder.AddBeHead(builder.be, streaming, 8 * kMs);
  const Plan plan = PlanOf("adaptive", builder);
  EXPECT_TRUE(IsWholeWithEviction(plan, head)) << Describe(plan);
}

// The BERT-base service of docs/results/training-steps.md, which hardly needs more than 64 SMs,
// beside a training step. After each busy period the step's segments end at the speed of the BE
// side, so the split of 108 and 24 SMs pays for workers and not for segments. That of 68 and 64
// pays for both.
TEST(AdaptiveLayoutTest, AGraphInSegmentsLeavesASmallBeSideTooSlowly) {
  for (const int32_t lc_sms : {108, 68}) {
    for (const bool segments : {true, false}) {
      SCOPED_TRACE(::testing::Message() << lc_sms << " SMs" << (segments ? ", segments" : ""));
      SnapshotBuilder builder({lc_sms});
      const int32_t lc = builder.AddLcApp(0.5, 680 * kUs, 2'700 * kUs, 1.5);
      const int32_t step = builder.AddKernel(40 * kUs);
      builder.Pair(lc, step, lc_sms).lc_speed = 1;
      HeadView& head = builder.AddBeHead(builder.AddBeApp(), step, 8 * kMs);
      if (segments) head.kind = TaskKind::kGraph;
      const Plan plan = PlanOf("adaptive", builder);
      const bool whole = segments && lc_sms == 108;
      EXPECT_EQ(plan.routes[0].place, whole ? kWholeDevice : builder.LcPlace(lc_sms))
          << Describe(plan);
    }
  }
}

// An app that has never sent a query has no kernel to judge a split by.
TEST(AdaptiveLayoutTest, ASilentAppKeepsNoLayoutFromBeingChosen) {
  Decode16 builder;
  const int32_t sincos = builder.AddKernel(40 * kUs);
  builder.SetSpeed(sincos, 1.005f);
  const int32_t silent = builder.AddLcApp(0, 0, 0, 1.05);
  for (const int32_t lc_sms : {68, 84, 92, 108, 124}) {
    builder.Pair(silent, sincos, lc_sms) = PairOption();
  }
  builder.AddBeHead(builder.be, sincos, 8 * kMs);
  const Plan plan = PlanOf("adaptive", builder);
  EXPECT_EQ(plan.routes[0].place, builder.LcPlace(84)) << Describe(plan);
}

// By time both kernels run while no query is active; on a split only one of them does.
TEST(AdaptiveLayoutTest, EveryKernelThatFitsCountsForSharingByTime) {
  Decode16 builder;
  const int32_t sincos = builder.AddKernel(40 * kUs);
  builder.SetSpeed(sincos, 1.005f);
  const int32_t streaming = builder.AddKernel(40 * kUs);
  builder.SetSpeed(streaming, 0.5f);
  builder.AddBeHead(builder.be, sincos, 8 * kMs);
  builder.AddBeHead(builder.AddBeApp(), streaming, 8 * kMs);
  const Plan plan = PlanOf("adaptive", builder);
  EXPECT_EQ(plan.routes[0].place, kWholeDevice) << Describe(plan);
}

TEST(AdaptiveLayoutTest, ANeighbourThatFitsNoMechanismIsHeldWithItsBlockingTime) {
  Decode16 builder;  // budget 46 us
  const int32_t streaming = builder.AddKernel(58 * kUs);
  builder.SetSpeed(streaming, 0.5f);
  const HeadView& head = builder.AddBeHead(builder.be, streaming, 8 * kMs);
  EXPECT_TRUE(IsHeld(PlanOf("adaptive", builder), head, Reason::kHoldBlocking, 58 * kUs,
                     builder.lc_apps[0].blocking_budget_ns));
}

TEST(AdaptiveLayoutTest, LongBlockTasksWithoutYieldPointsGetAPartitionOfTheirOwn) {
  for (const int64_t eviction_ns : {int64_t{2'550} * kUs, kNever}) {
    Decode16 builder;
    const int32_t sincos = builder.AddKernel(eviction_ns);
    builder.SetSpeed(sincos, 1.005f);
    const HeadView& head = builder.AddBeHead(builder.be, sincos, 80 * kMs);
    const Plan plan = PlanOf("adaptive", builder);
    ASSERT_NE(FindLaunch(plan, head), nullptr) << Describe(plan);
    EXPECT_EQ(plan.launches.size(), 1) << Describe(plan);
    EXPECT_TRUE(
        IsLaunched(plan, head, {.place = builder.BePlace(84), .reason = Reason::kBesidePartition}));
    EXPECT_EQ(plan.routes[0].place, builder.LcPlace(84));
  }
}

TEST(AdaptiveLayoutTest, LongBlockTasksWithYieldPointsShareByTime) {
  Chain1 builder(1.10);
  const int32_t sincos = builder.AddKernel(154 * kUs);
  builder.SetSpeed(sincos);
  const HeadView& head = builder.AddBeHead(builder.be, sincos, 80 * kMs);
  const Plan plan = PlanOf("adaptive", builder);
  EXPECT_TRUE(IsWholeWithEviction(plan, head)) << Describe(plan);
}

TEST(AdaptiveLayoutTest, OneLayoutServesAllLcAppsAndOnlyIfEachKeepsItsBound) {
  for (const float second_speed : {1.0f, 0.8f}) {
    Decode16 builder(0.2);
    const int32_t other = builder.AddLcApp(0.1, 546 * kUs, 1'548 * kUs, 1.03);
    const int32_t sincos = builder.AddKernel(20 * kUs);
    builder.SetSpeed(sincos, 1.005f);
    builder.Pair(other, sincos, 84).lc_speed = second_speed;
    builder.AddBeHead(builder.be, sincos, 8 * kMs);
    const Plan plan = PlanOf("adaptive", builder);
    const PlaceIndex expected = second_speed == 1.0f ? builder.LcPlace(84) : kWholeDevice;
    EXPECT_EQ(plan.routes[0].place, expected) << Describe(plan);
    EXPECT_EQ(plan.routes[1].place, expected) << Describe(plan);
  }
}

// A side has one lane, where they would take turns.
TEST(AdaptiveLayoutTest, AppsThatQuotasLetRunSideBySideHaveTheWholeDevice) {
  Decode16 builder;
  const int32_t sincos = builder.AddKernel(10 * kUs);
  const int32_t other = builder.AddKernel(10 * kUs);
  builder.SetSpeed(sincos, 1.005f);
  builder.SetSpeed(other, 1.005f);
  builder.be_apps[0].quota_capsms = 12;
  const std::unique_ptr<Policy> policy = NewPolicy("adaptive");
  const auto plan_again = [&] {
    Plan plan;
    policy->MakePlan(builder.Get(), plan);
    return plan;
  };
  const HeadView& first = builder.AddBeHead(builder.be, sincos, 8 * kMs);
  for (int i = 0; i < 2; ++i) {
    builder.AddBeHead(builder.AddBeApp(), sincos, 8 * kMs);
    builder.be_apps.back().quota_capsms = 12;
  }
  Plan plan = plan_again();
  EXPECT_TRUE(IsWholeWithEviction(plan, first)) << Describe(plan);
  EXPECT_EQ(plan.launches.size(), 3) << Describe(plan);
  builder.AddBeHead(builder.AddBeApp(), other, 8 * kMs);
  EXPECT_EQ(plan_again().routes[0].place, builder.LcPlace(84)) << "the last has no quota";
  while (builder.heads.size() > 1) builder.heads.pop_back();
  plan = plan_again();
  EXPECT_NE(FindLaunch(plan, first, builder.BePlace(84)), nullptr) << Describe(plan);
}

TEST(AdaptiveLayoutTest, AKernelThatTheLayoutExcludesIsHeldWithThePredictedLatency) {
  Decode16 builder;
  const int32_t sincos = builder.AddKernel(40 * kUs);
  const int32_t streaming = builder.AddKernel(1 * kMs);
  builder.SetSpeed(sincos, 1.005f);
  builder.SetSpeed(streaming, 0.5f);
  builder.be_apps[0].weight = 9;
  const int32_t light = builder.AddBeApp(0, 1);
  const HeadView& good = builder.AddBeHead(builder.be, sincos, 8 * kMs);
  const HeadView& bad = builder.AddBeHead(light, streaming, 8 * kMs);
  const Plan plan = PlanOf("adaptive", builder);
  EXPECT_NE(FindLaunch(plan, good, builder.BePlace(84)), nullptr) << Describe(plan);
  const PlannedHold* hold = FindHold(plan, bad);
  ASSERT_NE(hold, nullptr) << Describe(plan);
  EXPECT_EQ(hold->reason, Reason::kHoldBlocking);
  // p99 x (1 / 0.5) (1 - 0.35) / (1 - 0.7), with the load rounded to 19 / 64 and 0.05 added.
  const double load = 19. / 64 + 0.05;
  EXPECT_NEAR(static_cast<double>(hold->value_ns), 1'548e3 * 2 * (1 - load) / (1 - 2 * load), 2e3);
  EXPECT_NEAR(static_cast<double>(hold->limit_ns), 1'548e3 * 1.024, 1e3);
}

TEST(AdaptiveLayoutTest, AnAbsoluteTargetBuysASlowerSplit) {
  SnapshotBuilder builder;
  builder.AddLcAppWithTarget(0.3, 1 * kMs, 10 * kMs);
  const int32_t kernel = builder.AddKernel(kNever);
  builder.Pair(0, kernel, 68).lc_speed = 0.7f;
  builder.Pair(0, kernel, 84).lc_speed = 0.8f;
  const HeadView& head = builder.AddBeHead(builder.AddBeApp(), kernel, 100 * kMs);
  // Both keep 10 ms, and the smaller LC side leaves more to BE.
  EXPECT_NE(FindLaunch(PlanOf("adaptive", builder), head, builder.BePlace(68)), nullptr);
}

TEST(AdaptiveLayoutTest, WithoutPartitionsOrEvictionWhatIsLeftIsUsed) {
  Decode16 builder;
  const int32_t sincos = builder.AddKernel(40 * kUs);
  builder.SetSpeed(sincos, 1.005f);
  const HeadView& head = builder.AddBeHead(builder.be, sincos, 8 * kMs);
  builder.snapshot.partitions_available = false;
  Plan plan = PlanOf("adaptive", builder);
  EXPECT_TRUE(IsWholeWithEviction(plan, head)) << Describe(plan);

  builder.snapshot.eviction_available = false;
  plan = PlanOf("adaptive", builder);
  ASSERT_NE(FindHold(plan, head), nullptr);
  EXPECT_EQ(FindHold(plan, head)->value_ns, 8 * kMs) << "not evictable: its whole duration blocks";
  EXPECT_FALSE(plan.routes[0].evict_overlapping);

  builder.snapshot.partitions_available = true;
  plan = PlanOf("adaptive", builder);
  EXPECT_TRUE(IsLaunched(plan, head, {.form = Form::kOriginal, .place = builder.BePlace(84)}));
  EXPECT_EQ(plan.launches.size(), 1);
}

TEST(AdaptiveLayoutTest, ANearTieKeepsTheLayoutThatIsInForce) {
  // Load 1/64: elastic gains 0.4 %, less than the hysteresis.
  for (const bool on_split : {false, true}) {
    Decode16 builder(1.0 / 64, 1'548 * kUs);
    const int32_t sincos = builder.AddKernel(40 * kUs);
    builder.SetSpeed(sincos, 1.005f);
    const PlaceIndex at = on_split ? builder.BePlace(84) : kWholeDevice;
    builder.AddRunningBe(builder.be, sincos, 8 * kMs, {{at}});
    builder.snapshot.in_force.split = on_split ? builder.Split(84) : kNoSplit;
    const Plan plan = PlanOf("adaptive", builder);
    EXPECT_EQ(plan.routes[0].place, on_split ? builder.LcPlace(84) : kWholeDevice);
    EXPECT_EQ(plan.arrangement, builder.snapshot.in_force);
    EXPECT_EQ(plan.evictions.size(), 0) << Describe(plan);
  }
}

// Wherever they are. Without one a change costs nothing, and the whole device wins near a tie.
TEST(AdaptiveLayoutTest, RunningTasksDoNotSayWhichLayoutIsInForce) {
  for (const bool on_split : {false, true}) {
    for (const PlaceIndex at : {kNoPlace, kWholeDevice, PlaceIndex{1}}) {
      Decode16 builder(1.0 / 64, 1'548 * kUs);
      const int32_t sincos = builder.AddKernel(40 * kUs);
      builder.SetSpeed(sincos, 1.005f);
      builder.AddBeHead(builder.be, sincos, 8 * kMs);
      if (at != kNoPlace) builder.AddRunningBe(builder.be, sincos, 8 * kMs, {{at}});
      builder.snapshot.in_force.split = on_split ? builder.Split(84) : kNoSplit;
      const Plan plan = PlanOf("adaptive", builder);
      const bool stays = on_split && at != kNoPlace;
      EXPECT_EQ(plan.routes[0].place, stays ? builder.LcPlace(84) : kWholeDevice) << at;
    }
  }
}

TEST(AdaptiveLayoutTest, WithoutBeWorkLcLeavesASplitThatIsInForce) {
  for (const char* const policy : {"adaptive", "adaptive:elastic"}) {
    Decode16 builder;
    builder.SetSpeed(builder.AddKernel(40 * kUs), 1.005f);
    builder.snapshot.in_force.split = builder.Split(84);
    const Plan plan = PlanOf(policy, builder);
    EXPECT_EQ(plan.routes[0].place, kWholeDevice) << policy;
    EXPECT_EQ(plan.arrangement, ArrangementInForce()) << policy;
  }
}

TEST(AdaptiveLayoutTest, ForcedMechanismsIgnoreWhatLcSuffers) {
  Decode16 builder;
  const int32_t streaming = builder.AddKernel(2'550 * kUs);
  builder.SetSpeed(streaming, 0.5f);
  const HeadView& head = builder.AddBeHead(builder.be, streaming, 80 * kMs);
  EXPECT_EQ(FindLaunch(PlanOf("adaptive", builder), head), nullptr);

  EXPECT_TRUE(IsWholeWithEviction(PlanOf("adaptive:evict", builder), head));

  // The knee of LC alone, as no split keeps the bound beside this neighbour.
  const Plan elastic = PlanOf("adaptive:elastic", builder);
  EXPECT_NE(FindLaunch(elastic, head, builder.BePlace(84)), nullptr) << Describe(elastic);
  EXPECT_NE(FindLaunch(elastic, head, builder.LcPlace(84)), nullptr) << Describe(elastic);

  const Plan partition = PlanOf("adaptive:partition", builder);
  EXPECT_NE(FindLaunch(partition, head, builder.BePlace(84)), nullptr) << Describe(partition);
  EXPECT_EQ(partition.launches.size(), 1);
  EXPECT_EQ(partition.routes[0].place, builder.LcPlace(84));
}

TEST(AdaptiveLayoutTest, ForcedElasticUsesTheSplitThatAdaptiveWould) {
  Decode16 builder;
  const int32_t sincos = builder.AddKernel(40 * kUs);
  builder.SetSpeed(sincos, 1.005f);
  builder.AddBeHead(builder.be, sincos, 8 * kMs);
  EXPECT_EQ(Describe(PlanOf("adaptive:elastic", builder)), Describe(PlanOf("adaptive", builder)));
}

TEST(AdaptiveLayoutTest, AnAbsoluteTargetStillRefusesASplitWhoseQueueGrowsTooLong) {
  SnapshotBuilder builder;
  builder.AddLcAppWithTarget(0.3, 1 * kMs, 10 * kMs);
  const int32_t kernel = builder.AddKernel(kNever);
  builder.Pair(0, kernel, 68).lc_speed = 0.33f;  // 3 (1 - 0.3) / (1 - 0.9) = 21 ms
  builder.Pair(0, kernel, 84).lc_speed = 0.8f;
  const HeadView& head = builder.AddBeHead(builder.AddBeApp(), kernel, 100 * kMs);
  const Plan plan = PlanOf("adaptive", builder);
  EXPECT_NE(FindLaunch(plan, head, builder.BePlace(84)), nullptr) << Describe(plan);
}

// One policy sees a question, one that differs in a single part and has another answer, and the
// first again.
TEST(AdaptiveLayoutTest, EveryPartOfTheQuestionCounts) {
  enum class Differs { kNothing, kLoad, kBound, kKernels, kPairs };
  const auto make = [](SnapshotBuilder& builder, Differs differs) {
    const double load = differs == Differs::kLoad ? 0.9 : 0.3;
    const double bound = differs == Differs::kBound ? 1.015 : 1.03;
    const int32_t lc = builder.AddLcApp(load, 546 * kUs, 1'548 * kUs, bound);
    builder.lc_apps[0].blocking_budget_ns = 46 * kUs;
    const int32_t sincos = builder.AddKernel(20 * kUs);
    const int32_t streaming = builder.AddKernel(20 * kUs);
    builder.Pair(lc, sincos, 84).lc_speed = differs == Differs::kPairs ? 0.7f : 0.995f;
    builder.snapshot.pairs.version = differs == Differs::kPairs ? 2 : 1;
    builder.AddBeHead(builder.AddBeApp(), differs == Differs::kKernels ? streaming : sincos,
                      8 * kMs);
  };
  for (const Differs differs :
       {Differs::kLoad, Differs::kBound, Differs::kKernels, Differs::kPairs}) {
    const std::unique_ptr<Policy> policy = NewPolicy("adaptive");
    for (const Differs now : {Differs::kNothing, differs, Differs::kNothing}) {
      SnapshotBuilder builder;
      make(builder, now);
      Plan plan;
      plan.Clear();
      policy->MakePlan(builder.Get(), plan);
      EXPECT_EQ(plan.routes[0].place, now == Differs::kNothing ? builder.LcPlace(84) : kWholeDevice)
          << static_cast<int>(differs) << "\n"
          << Describe(plan);
    }
  }
}

TEST(AdaptiveLayoutTest, AnAnswerIsNotRememberedBeyondItsQuestion) {
  const std::unique_ptr<Policy> policy = NewPolicy("adaptive");
  // More questions than are remembered, twice round, each against a fresh policy.
  for (int round = 0; round < 2; ++round) {
    for (int step = 0; step < 24; ++step) {
      Decode16 builder(0.1 + 0.03 * step, (1'000 + 200 * step) * kUs);
      const int32_t sincos = builder.AddKernel((20 + step) * kUs);
      builder.SetSpeed(sincos, step % 3 == 0 ? 0.9f : 1.005f);
      builder.snapshot.pairs.version = static_cast<uint64_t>(step % 3 == 0);
      builder.AddBeHead(builder.be, sincos, 8 * kMs);
      Plan plan;
      plan.Clear();
      policy->MakePlan(builder.Get(), plan);
      EXPECT_EQ(Describe(plan), Describe(PlanOf("adaptive", builder)));
    }
  }
}

// A chain with a target, beside a BE kernel that gains from a larger side.
struct TargetCase {
  double load = 0.3;
  int64_t solo_ns = 667 * kUs;
  int64_t target_ns = 0;
  double tail = 1;
  double peak_load = 0.3;
  int64_t p99_alone_ns = 0;  // 0: not stated
};

// SMs of its route.
int32_t SmsFor(const TargetCase& app) {
  SnapshotBuilder builder;
  builder.AddLcAppWithTarget(app.load, app.solo_ns, app.target_ns);
  LcAppView& view = builder.lc_apps[0];
  view.target_tail = app.tail;
  view.peak_load = app.peak_load;
  if (app.p99_alone_ns > 0) view.promise.p99_alone_ns = app.p99_alone_ns;
  view.blocking_budget_ns = app.target_ns / 20;
  const int32_t kernel = builder.AddKernel(40 * kUs);
  for (const SplitView& split : builder.splits) {
    builder.Pair(0, kernel, split.lc_sms).be_speed_be_side *= 1.5f;
  }
  builder.AddBeHead(builder.AddBeApp(), kernel, 8 * kMs);
  const Plan plan = PlanOf("adaptive", builder);
  return builder.places[static_cast<size_t>(plan.routes[0].place)].sms;
}

int32_t SmsForTarget(int64_t target_ns, double tail, int64_t solo_ns = 667 * kUs,
                     double peak_load = 0.3) {
  return SmsFor({.solo_ns = solo_ns, .target_ns = target_ns, .tail = tail, .peak_load = peak_load});
}

// Its p99 alone is 1.94 ms by its load, not its solo time.
TEST(AdaptiveLayoutTest, ATargetNearTheTailOfTheLoadLeavesLcTheDevice) {
  EXPECT_EQ(SmsForTarget(2 * kMs, 1), 132);
}

TEST(AdaptiveLayoutTest, ALooseTargetGivesBeASideAndLateQueriesMakeItSmaller) {
  EXPECT_EQ(SmsForTarget(10 * kMs, 1), 84);
  EXPECT_EQ(SmsForTarget(8 * kMs, 2), 108) << "92 if all of the target were planned with";
  EXPECT_EQ(SmsForTarget(10 * kMs, 4), 124);
}

// A stated p99 far below that of its queue, 1.94 ms, is of regular arrivals; one that is a little
// below is an estimate, and the queue on the side counts too.
TEST(AdaptiveLayoutTest, ATargetCountsTheQueueOfASideWhereTheStatedP99IsShort) {
  const auto sms_with = [](int64_t p99_alone_ns, double tail) {
    return SmsFor({.target_ns = 3 * kMs, .tail = tail, .p99_alone_ns = p99_alone_ns});
  };
  const int32_t queue = sms_with(1'900 * kUs, 1);
  EXPECT_EQ(sms_with(1'200 * kUs, 1), queue);
  EXPECT_LT(sms_with(800 * kUs, 1), queue) << "regular arrivals";
  EXPECT_LT(sms_with(1'200 * kUs, 0.5), queue) << "queries on time";
  EXPECT_GT(sms_with(1'200 * kUs, 1.5), queue) << "late queries";
}

// A query stays on its side while others are before it: on a side that its peak overloads the queue
// would never end.
TEST(AdaptiveLayoutTest, ALooseTargetStillLeavesLcASideThatCarriesItsPeakLoad) {
  EXPECT_EQ(SmsForTarget(1'000 * kMs, 1), 84) << "0.5 / 0.9 of the device at least";
  EXPECT_EQ(SmsForTarget(1'000 * kMs, 1, 667 * kUs, 0.7), 108);
  EXPECT_EQ(SmsForTarget(1'000 * kMs, 1, 667 * kUs, 1), 132);
}

// In a lull between queries back to back the smoothed load falls. A side that would carry it keeps
// the queries of the next burst.
TEST(AdaptiveLayoutTest, AStatedTargetIsJudgedAtTheHighestLoadOfLate) {
  const auto sms_with = [](double load, double peak_load) {
    return SmsFor(
        {.load = load, .target_ns = 5 * kMs, .peak_load = peak_load, .p99_alone_ns = 2 * kMs});
  };
  const int32_t at_half = sms_with(0.5, 0.5);
  EXPECT_LT(sms_with(0.125, 0.125), at_half);
  EXPECT_EQ(sms_with(0.125, 0.5), at_half);
  EXPECT_EQ(sms_with(0.5, 0.125), at_half) << "the load itself may be higher";
}

// The floor of a peak load, half of the device, is for apps of which only a target is known.
TEST(AdaptiveLayoutTest, AnAppWithABoundAddsItsLoadButNoPeakToTheSide) {
  SnapshotBuilder builder;
  builder.AddLcAppWithTarget(0.3, 667 * kUs, 10 * kMs);
  builder.lc_apps[0].target_tail = 1;
  builder.lc_apps[0].peak_load = 0.3;
  builder.AddLcApp(0.02, 100 * kUs, 300 * kUs, 10);
  builder.lc_apps[1].peak_load = 1;
  for (LcAppView& app : builder.lc_apps) app.blocking_budget_ns = 500 * kUs;
  const int32_t kernel = builder.AddKernel(40 * kUs);
  for (const SplitView& split : builder.splits) {
    for (const int32_t app : {0, 1}) {
      builder.Pair(app, kernel, split.lc_sms).be_speed_be_side *= 1.5f;
    }
  }
  builder.AddBeHead(builder.AddBeApp(), kernel, 8 * kMs);
  EXPECT_EQ(PlanOf("adaptive", builder).routes[0].place, builder.LcPlace(84));
}

TEST(AdaptiveLayoutTest, ATargetLeavesLcTheDeviceUntilAQueryHasShownItsDuration) {
  EXPECT_EQ(SmsForTarget(10 * kMs, 0.5, 0), 132);
}

}  // namespace
}  // namespace gpushare::core::testing
