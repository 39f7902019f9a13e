// adaptive: two BE kernels that share SMs, from plan to plan.

#include <gtest/gtest.h>

#include <algorithm>

#include "src/core/base/tuning.h"
#include "src/core/policies/adaptive/arrangement/tuning.h"
#include "tests/core/policies/snapshot_builder.h"

namespace gpushare::core::testing {
namespace {

constexpr int32_t kSms = 132;

class BePairsTest : public ::testing::Test {
 protected:
  struct Kernel {
    int32_t kernel;
    int32_t row;
  };
  // A kernel with workers, eight on an SM, and a row in the table of co-schedules.
  Kernel AddKernel(int64_t eviction_ns = 40 * kUs) {
    const int32_t kernel = builder.AddKernel(eviction_ns);
    return {kernel, builder.AddOverlapRow(kernel)};
  }
  HeadView& AddHead(int32_t app, const Kernel& kernel, int64_t duration_ns = 10 * kMs) {
    HeadView& head = builder.AddBeHead(app, kernel.kernel, duration_ns);
    head.overlap_index = kernel.row;
    head.blocks_left = 200'000;
    return head;
  }
  RunningView& AddRunning(int32_t app, const Kernel& kernel, int32_t workers_per_sm) {
    RunningView& running =
        builder.AddRunningBe(app, kernel.kernel, 10 * kMs,
                             {{kWholeDevice, Form::kWorkers, false, workers_per_sm * kSms}});
    running.task.overlap_index = kernel.row;
    running.task.blocks_left = 200'000;
    return running;
  }
  // Workers of two kernels on each SM, and their speeds there.
  void Pair(const Kernel& first, const Kernel& second, int32_t ratio, int32_t first_workers,
            int32_t second_workers, float first_speed, float second_speed, float error = 0) {
    CoScheduleOption& option =
        builder.CoSchedule(std::max(first.row, second.row), std::min(first.row, second.row), ratio);
    option = {{first_workers, second_workers},
              {first_speed, second_speed},
              error,
              1 - 1 / (first_speed + second_speed)};
    if (first.row < second.row) {
      std::swap(option.workers_per_sm[0], option.workers_per_sm[1]);
      std::swap(option.speed[0], option.speed[1]);
    }
  }

  SnapshotBuilder builder;
  int32_t one = builder.AddBeApp();
  int32_t other = builder.AddBeApp();
  Kernel a = AddKernel();
  Kernel b = AddKernel();
};

TEST_F(BePairsTest, TwoKernelsThatGainStartTogetherAtTheirBestRatio) {
  Pair(a, b, 0, 6, 2, 0.8F, 0.3F);
  Pair(a, b, 1, 4, 3, 0.7F, 0.6F);
  Pair(a, b, 2, 2, 6, 0.3F, 0.8F);
  const HeadView& of_a = AddHead(one, a);
  const HeadView& of_b = AddHead(other, b);
  const Plan plan = PlanOf("adaptive", builder);
  ASSERT_EQ(plan.launches.size(), 2) << Describe(plan);
  EXPECT_EQ(FindLaunch(plan, of_a)->workers, 4 * kSms);
  EXPECT_EQ(FindLaunch(plan, of_b)->workers, 3 * kSms);
  for (const PlannedLaunch& launch : plan.launches) {
    EXPECT_EQ(launch.form, Form::kWorkers);
    EXPECT_EQ(launch.reason, Reason::kCoResident);
  }
}

TEST_F(BePairsTest, TheChoiceHasTheGainAndTheNextPartner) {
  const Kernel c = AddKernel();
  Pair(a, b, 1, 4, 4, 0.6F, 0.6F);
  Pair(a, c, 1, 4, 4, 0.8F, 0.8F);
  const HeadView& of_a = AddHead(one, a);
  const HeadView& of_b = AddHead(other, b);
  const HeadView& of_c = AddHead(builder.AddBeApp(), c);
  const Plan plan = PlanOf("adaptive", builder);
  const auto pair_of = [](const HeadView& x, const HeadView& y) {
    return PlannedChoice::PairOf(x.kernel->id, y.kernel->id);
  };
  EXPECT_EQ(plan.choice.kind, ChoiceKind::kCoSchedule);
  EXPECT_EQ(plan.choice.chosen, pair_of(of_a, of_c));
  EXPECT_EQ(plan.choice.runner_up, pair_of(of_a, of_b));
  // CP of speeds that sum to 1.6 less the gap of 10 us: 12.5 ms become 12.51.
  EXPECT_NEAR(static_cast<double>(plan.choice.value), 0.375e6, 1e3);
  EXPECT_EQ(FindLaunch(plan, of_b), nullptr);
}

TEST_F(BePairsTest, AGainWithinTheErrorBarIsNone) {
  const HeadView& of_a = AddHead(one, a);
  AddHead(other, b);
  Pair(a, b, 1, 4, 4, 0.6F, 0.6F, 0.15F);
  EXPECT_TRUE(IsLaunched(PlanOf("adaptive", builder), of_a, {.workers = 0})) << "all";
  Pair(a, b, 1, 4, 4, 0.6F, 0.6F, 0.1F);
  EXPECT_EQ(FindLaunch(PlanOf("adaptive", builder), of_a)->workers, 4 * kSms);
}

// 30 us at 0.6 take 50, and a gap of 10 us: 0.5 each.
TEST_F(BePairsTest, ShortTasksLoseToTheGapsBetweenThem) {
  Pair(a, b, 1, 4, 4, 0.6F, 0.6F);
  const HeadView& of_a = AddHead(one, a, 30 * kUs);
  AddHead(other, b, 30 * kUs);
  EXPECT_EQ(FindLaunch(PlanOf("adaptive", builder), of_a)->workers, 0);
}

TEST_F(BePairsTest, TheRoomOfOneThatEndedGoesToATaskThatPairsAtTheOthersWidth) {
  Pair(a, b, 0, 6, 2, 0.9F, 0.4F);
  Pair(a, b, 1, 4, 4, 0.6F, 0.6F);
  AddRunning(one, a, 4);
  const HeadView& of_b = AddHead(other, b);
  const Plan plan = PlanOf("adaptive", builder);
  ASSERT_EQ(plan.launches.size(), 1) << Describe(plan);
  EXPECT_EQ(plan.launches[0].task, of_b.task);
  EXPECT_EQ(plan.launches[0].workers, 4 * kSms);
}

TEST_F(BePairsTest, ATaskWhosePartnersAreGoneTakesAllOfTheSms) {
  Pair(a, b, 1, 3, 4, 0.6F, 0.6F);
  RunningView& of_a = AddRunning(one, a, 3);
  Plan plan = PlanOf("adaptive", builder);
  ASSERT_EQ(plan.launches.size(), 1) << Describe(plan);
  EXPECT_EQ(plan.launches[0].task, of_a.task.task);
  EXPECT_EQ(plan.launches[0].workers, 5 * kSms);
  // Not for a few microseconds, and not where it has no block tasks for them.
  of_a.task.remaining.duration_ns = kElasticPartNsMin - 1;
  EXPECT_EQ(PlanOf("adaptive", builder).launches.size(), 0);
  of_a.task.remaining.duration_ns = 10 * kMs;
  of_a.task.blocks_left = 3 * kSms;
  EXPECT_EQ(PlanOf("adaptive", builder).launches.size(), 0);
}

TEST_F(BePairsTest, BehindATaskThatHasAllSmsNothingQueuesWhereTheNextTwoPair) {
  Pair(a, b, 1, 4, 4, 0.6F, 0.6F);
  RunningView& of_a = AddRunning(one, a, 8);
  of_a.task.followed = true;
  const HeadView& of_b = AddHead(other, b);
  Plan plan = PlanOf("adaptive", builder);
  EXPECT_EQ(plan.launches.size(), 0) << Describe(plan);
  EXPECT_TRUE(IsHeld(plan, of_b, Reason::kHoldWindow, {}, 1));
  of_a.task.followed = false;  // nothing comes after it
  plan = PlanOf("adaptive", builder);
  ASSERT_EQ(plan.launches.size(), 1) << Describe(plan);
  EXPECT_EQ(plan.launches[0].workers, 0);
}

// The head that is next by weight is one of the two, and none goes before it that got more.
TEST_F(BePairsTest, AnAppThatGotMoreThanItsShareIsNoPartner) {
  Pair(a, b, 1, 4, 4, 0.6F, 0.6F);
  builder.be_apps[static_cast<size_t>(other)].attained_ns[kSmTime] = 10e6;
  const HeadView& of_a = AddHead(one, a);
  const HeadView& of_b = AddHead(other, b);
  Plan plan = PlanOf("adaptive", builder);
  EXPECT_EQ(FindLaunch(plan, of_a)->workers, 0) << Describe(plan);
  builder.be_apps[static_cast<size_t>(other)].attained_ns[kSmTime] = 0.5e6;
  plan = PlanOf("adaptive", builder);
  EXPECT_EQ(FindLaunch(plan, of_b)->workers, 4 * kSms) << Describe(plan);
}

TEST_F(BePairsTest, AHeadThatPairsWithNoneIsNotLeftOutForLong) {
  const Kernel alone = AddKernel();
  Pair(a, b, 1, 4, 4, 0.6F, 0.6F);
  const int32_t third = builder.AddBeApp();
  const RunningView& of_a = AddRunning(one, a, 4);
  const HeadView& of_b = AddHead(other, b);
  const HeadView& waits = AddHead(third, alone);
  builder.be_apps[static_cast<size_t>(other)].attained_ns[kSmTime] = 10e6;
  const Plan plan = PlanOf("adaptive", builder);
  EXPECT_EQ(FindLaunch(plan, of_b), nullptr) << Describe(plan);
  EXPECT_NE(FindLaunch(plan, of_a.task), nullptr) << "it ends sooner with all SMs";
  EXPECT_NE(FindHold(plan, waits), nullptr);
}

// Of one app too, whose order is that of submission.
TEST_F(BePairsTest, AHeadThatWaitedIsPassedOverNoLonger) {
  const Kernel alone = AddKernel();
  Pair(a, b, 1, 4, 4, 0.6F, 0.6F);
  builder.snapshot.now_ns = 1'000 * kMs;
  const RunningView& of_a = AddRunning(one, a, 4);
  HeadView& waits = AddHead(one, alone);
  const HeadView& of_b = AddHead(one, b);
  waits.ready_ns = builder.snapshot.now_ns - kBePassedNsMax;
  EXPECT_NE(FindLaunch(PlanOf("adaptive", builder), of_b), nullptr);
  waits.ready_ns -= 1;
  const Plan plan = PlanOf("adaptive", builder);
  EXPECT_EQ(FindLaunch(plan, of_b), nullptr) << Describe(plan);
  EXPECT_NE(FindLaunch(plan, of_a.task), nullptr) << "it ends sooner with all SMs";
}

TEST_F(BePairsTest, ATaskNearItsEndKeepsItsPartner) {
  Pair(a, b, 1, 4, 4, 0.6F, 0.6F);
  AddRunning(one, a, 4).task.remaining.duration_ns = 0;
  const HeadView& of_b = AddHead(other, b);
  EXPECT_TRUE(IsLaunched(PlanOf("adaptive", builder), of_b, {.workers = 4 * kSms}));
}

TEST_F(BePairsTest, AQuotaAndWorkWithoutWorkersKeepAKernelOutOfPairs) {
  Pair(a, b, 1, 4, 4, 0.6F, 0.6F);
  const HeadView& of_a = AddHead(one, a);
  HeadView& of_b = AddHead(other, b);
  builder.be_apps[static_cast<size_t>(other)].quota_capsms = 66;
  EXPECT_NE(FindLaunch(PlanOf("adaptive", builder), of_a)->workers, 4 * kSms);
  builder.be_apps[static_cast<size_t>(other)].quota_capsms = 0;
  of_b.evictable = false;
  EXPECT_EQ(FindLaunch(PlanOf("adaptive", builder), of_a)->workers, 0);
}

// Beside each other block tasks take 4 / 8 / 0.25 = 2 times as long, and so does the eviction.
TEST_F(BePairsTest, APairWhoseBlockTasksTakeLongerThanABudgetDoesNotStart) {
  const Kernel long_a = AddKernel(60 * kUs);
  Pair(long_a, b, 1, 4, 4, 0.25F, 0.95F);
  const int32_t lc = builder.AddLcApp(0.01, 546 * kUs, 1'548 * kUs, 1.05);
  const HeadView& of_a = AddHead(one, long_a);
  AddHead(other, b);
  builder.lc_apps[static_cast<size_t>(lc)].blocking_budget_ns = 100 * kUs;
  Plan plan = PlanOf("adaptive", builder);
  ASSERT_TRUE(IsLaunched(plan, of_a, {.workers = 0}, kWholeDevice));
  builder.lc_apps[static_cast<size_t>(lc)].blocking_budget_ns = 130 * kUs;
  plan = PlanOf("adaptive", builder);
  EXPECT_EQ(FindLaunch(plan, of_a, kWholeDevice)->workers, 4 * kSms) << Describe(plan);
}

}  // namespace
}  // namespace gpushare::core::testing
