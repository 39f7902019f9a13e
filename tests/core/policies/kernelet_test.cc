// kernelet: pruning by PUR and MUR with the paper's kernels (table 4, C2050), the pair with the
// largest CP, the balanced ratio (eq. 8), what slices cost, and algorithm 1 from plan to plan.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <vector>

#include "src/core/base/tuning.h"
#include "src/core/policies/papers/co_schedule.h"
#include "tests/core/policies/snapshot_builder.h"

namespace gpushare::core::testing {
namespace {

// Table 4: PC, SAD, SPMV, ST, MM, MRIQ, BS, TEA.
constexpr std::array<Utilization, 8> kTable4 = {{{0.0096, 0.1404},
                                                 {0.1498, 0.1120},
                                                 {0.3464, 0.003},
                                                 {0.3629, 0.1156},
                                                 {0.5804, 0.0161},
                                                 {0.8539, 0.0002},
                                                 {0.8642, 0.0604},
                                                 {0.9978, 0.0196}}};

// Table 6: alpha_p is 0.1 to 1.0 over the columns, alpha_m 0.015 to 0.15 over the rows.
constexpr std::array<std::array<int, 10>, 10> kTable6 = {{{0, 0, 2, 2, 3, 4, 4, 4, 4, 4},
                                                          {0, 2, 5, 6, 7, 8, 9, 9, 9, 9},
                                                          {0, 3, 7, 8, 9, 10, 11, 11, 11, 11},
                                                          {1, 4, 8, 9, 12, 13, 15, 15, 15, 15},
                                                          {1, 4, 8, 9, 12, 13, 15, 15, 15, 15},
                                                          {1, 4, 8, 9, 12, 13, 15, 15, 16, 16},
                                                          {1, 4, 9, 10, 14, 15, 18, 18, 20, 20},
                                                          {2, 6, 11, 12, 17, 18, 21, 22, 24, 24},
                                                          {2, 6, 11, 13, 17, 19, 22, 23, 25, 26},
                                                          {2, 6, 11, 13, 18, 20, 23, 24, 27, 28}}};

int Pruned(const PruningThresholds& thresholds) {
  int pruned = 0;
  for (size_t i = 0; i < kTable4.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const bool is_pruned = IsPruned(kTable4[i], kTable4[j], thresholds);
      EXPECT_EQ(is_pruned, IsPruned(kTable4[j], kTable4[i], thresholds)) << i << ", " << j;
      pruned += is_pruned ? 1 : 0;
    }
  }
  return pruned;
}

TEST(KerneletPruningTest, TheDefaultsPruneTenPairsOfTwentyEight) {
  EXPECT_EQ(Pruned(PruningThresholds()), 10);
}

TEST(KerneletPruningTest, Table6IsReproducedFromTable4) {
  int equal = 0;
  for (size_t row = 0; row < 10; ++row) {
    for (size_t column = 0; column < 10; ++column) {
      const int pruned =
          Pruned({0.1 * static_cast<double>(column + 1), 0.015 * static_cast<double>(row + 1)});
      equal += pruned == kTable6[row][column] ? 1 : 0;
      EXPECT_LE(std::abs(pruned - kTable6[row][column]), 3) << row << ", " << column;
    }
  }
  EXPECT_EQ(equal, 77) << "the others lie at thresholds that table 4 rounds";
}

class KerneletTest : public ::testing::Test {
 protected:
  SnapshotBuilder builder;
  int32_t be = builder.AddBeApp();

  struct Kernel {
    int32_t kernel;
    int32_t row;
  };
  // A kernel with a row in the table of co-schedules.
  Kernel AddKernel() {
    const int32_t kernel = builder.AddKernel(40 * kUs);
    return {kernel, builder.AddOverlapRow(kernel)};
  }
  // 100,000 block tasks of 100 ns each over the whole device: 528 of them take 53 us.
  HeadView& AddHead(const Kernel& kernel, int64_t duration_ns = 10 * kMs) {
    HeadView& head = builder.AddBeHead(be, kernel.kernel, duration_ns);
    head.overlap_index = kernel.row;
    head.blocks_left = 20'000;
    return head;
  }
  HeadView& AddRunning(const Kernel& kernel, size_t slices = 1) {
    RunningView& running = builder.AddRunningBe(
        be, kernel.kernel, 10 * kMs,
        std::vector<BePart>(slices, BePart{kWholeDevice, Form::kSlice, false, 0}));
    running.task.overlap_index = kernel.row;
    running.task.blocks_left = 20'000;
    return running.task;
  }
  const Kernel a = AddKernel();
  const Kernel b = AddKernel();
  const Kernel c = AddKernel();

  // Both kernels at this speed, in each ratio.
  void Pair(const Kernel& one, const Kernel& other, float speed) {
    for (int32_t ratio = 0; ratio < kCoScheduleRatios; ++ratio) {
      builder.CoSchedule(std::max(one.row, other.row), std::min(one.row, other.row), ratio) = {
          {4, 4}, {speed, speed}, 0, 1 - 1 / (2 * speed)};
    }
  }
  void Speeds(float a_and_b, float a_and_c, float b_and_c) {
    Pair(a, b, a_and_b);
    Pair(a, c, a_and_c);
    Pair(b, c, b_and_c);
  }
};

int LaunchesOf(const Plan& plan, const HeadView& head) {
  return static_cast<int>(
      std::count_if(plan.launches.begin(), plan.launches.end(),
                    [&](const PlannedLaunch& launch) { return launch.task == head.task; }));
}

TEST_F(KerneletTest, QueuesTwoWavesOfEachKernelOfThePairWithTheLargestProfit) {
  Speeds(0.6F, 0.8F, 0.7F);
  const HeadView& of_a = AddHead(a);
  const HeadView& of_b = AddHead(b);
  const HeadView& of_c = AddHead(c);
  const Plan plan = PlanOf("kernelet", builder);
  ASSERT_EQ(plan.launches.size(), 4);
  for (const HeadView* head : {&of_a, &of_c}) {
    EXPECT_TRUE(IsLaunched(plan, *head, {.form = Form::kSlice, .blocks_max = 4 * 132}));
    EXPECT_EQ(LaunchesOf(plan, *head), kSlicesAhead);
  }
  EXPECT_TRUE(IsHeld(plan, of_b, Reason::kHoldWindow));
}

// Nothing of the pair is a head any more, and the lanes must not run empty.
TEST_F(KerneletTest, ASliceThatEndedIsReplacedWhileTheOneBehindItRuns) {
  Speeds(0.8F, 0.6F, 0.6F);
  const HeadView& of_a = AddRunning(a, 1);
  const HeadView& of_b = AddRunning(b, 2);
  const Plan plan = PlanOf("kernelet", builder);
  ASSERT_EQ(plan.launches.size(), 1);
  EXPECT_TRUE(IsLaunched(plan, of_a, {.form = Form::kSlice, .blocks_max = 4 * 132}));
  EXPECT_EQ(LaunchesOf(plan, of_b), 0);
}

TEST_F(KerneletTest, BesideAnLcAppOneSliceOfAKernelIsOnTheDevice) {
  builder.AddLcApp(0.3, 500 * kUs, 1 * kMs, 1.05);
  Speeds(0.9F, 0.6F, 0.6F);
  const HeadView& of_b = AddHead(b);
  const HeadView& of_a = AddRunning(a);
  const Plan plan = PlanOf("kernelet", builder);
  EXPECT_EQ(LaunchesOf(plan, of_a), 0);
  EXPECT_EQ(LaunchesOf(plan, of_b), 1);
}

TEST_F(KerneletTest, TheChoiceHasTheNextPairThatGains) {
  Speeds(0.9F, 0.8F, 0.4F);
  const HeadView& of_a = AddHead(a);
  const HeadView& of_b = AddHead(b);
  AddHead(c);
  const auto pair_of = [](const HeadView& one, const HeadView& other) {
    return PlannedChoice::PairOf(one.kernel->id, other.kernel->id);
  };
  const Plan plan = PlanOf("kernelet", builder);
  EXPECT_EQ(plan.choice.kind, ChoiceKind::kCoSchedule);
  EXPECT_EQ(plan.choice.tasks, (std::array<TicketId, 2>{of_b.task, of_a.task}));
  EXPECT_EQ(plan.choice.chosen, pair_of(of_b, of_a));
  EXPECT_EQ(plan.choice.runner_up, pair_of(builder.head(2), of_a));
  EXPECT_GT(plan.choice.value, plan.choice.runner_up_value);
  EXPECT_GT(plan.choice.runner_up_value, 0);
  Pair(a, c, 0.95F);  // a better one that is looked at later
  EXPECT_EQ(PlanOf("kernelet", builder).choice.chosen, pair_of(builder.head(2), of_a));
  EXPECT_EQ(PlanOf("kernelet", builder).choice.runner_up, pair_of(of_b, of_a));
  Pair(a, c, 0.4F);
  EXPECT_EQ(PlanOf("kernelet", builder).choice.runner_up, PlannedChoice::kNoRunnerUp);
  Pair(a, b, 0.4F);
  EXPECT_EQ(PlanOf("kernelet", builder).choice.kind, ChoiceKind::kNone) << "no pair gains";
}

// Eq. 8: a block task of b takes twice as long as one of a, so that 6 of a and 3 of b end together.
TEST_F(KerneletTest, TheRatioIsTheOneWhoseSlicesEndTogether) {
  Pair(a, b, 0.8F);
  builder.CoSchedule(b.row, a.row, 0).workers_per_sm = {6, 2};  // b first
  builder.CoSchedule(b.row, a.row, 1).workers_per_sm = {4, 4};
  builder.CoSchedule(b.row, a.row, 2).workers_per_sm = {3, 6};
  const HeadView& of_a = AddHead(a, 10 * kMs);
  const HeadView& of_b = AddHead(b, 20 * kMs);
  const Plan plan = PlanOf("kernelet", builder);
  EXPECT_TRUE(IsLaunched(plan, of_a, {.blocks_max = 6 * 132}));
  EXPECT_EQ(FindLaunch(plan, of_b)->blocks_max, 3 * 132);
}

// What nobody measured.
void Predict(CoScheduleOption& option) { option.speed_error = 0.2F; }

TEST_F(KerneletTest, KernelsThatAreAlikeArePairedOnlyWhereNoOthersAre) {
  Speeds(0.9F, 0.7F, 0.6F);
  for (int32_t ratio = 0; ratio < kCoScheduleRatios; ++ratio) {
    Predict(builder.CoSchedule(b.row, a.row, ratio));
    Predict(builder.CoSchedule(c.row, a.row, ratio));
    Predict(builder.CoSchedule(c.row, b.row, ratio));
  }
  const HeadView& of_a = AddHead(a);
  const HeadView& of_b = AddHead(b);
  builder.Counters(a.kernel) = {.instructions = 1, .issue = 0.9, .dram = 0.1};
  builder.Counters(b.kernel) = {.instructions = 1, .issue = 0.7, .dram = 0.15};
  builder.Counters(c.kernel) = {.instructions = 1, .issue = 0.2, .dram = 0.8};
  EXPECT_NE(FindLaunch(PlanOf("kernelet", builder), of_b), nullptr) << "all would be pruned";
  const HeadView& of_c = AddHead(c);
  const Plan plan = PlanOf("kernelet", builder);
  EXPECT_NE(FindLaunch(plan, of_a), nullptr);
  EXPECT_NE(FindLaunch(plan, of_c), nullptr);
  EXPECT_EQ(FindLaunch(plan, of_b), nullptr) << "a and b are alike";
  builder.CoSchedule(b.row, a.row, 0).speed_error = 0.03F;
  EXPECT_NE(FindLaunch(PlanOf("kernelet", builder), of_b), nullptr) << "measured to gain";
}

// b and c are alike too, and were measured to gain: on this GPU likeness says less.
TEST_F(KerneletTest, ThresholdsFitTheMeasuredPairsOfTheGpu) {
  Speeds(0.9F, 0.7F, 0.6F);
  Predict(builder.CoSchedule(b.row, a.row, 0));
  builder.Counters(a.kernel) = {.instructions = 1, .issue = 0.9, .dram = 0.1};
  builder.Counters(b.kernel) = {.instructions = 1, .issue = 0.7, .dram = 0.15};
  builder.Counters(c.kernel) = {.instructions = 1, .issue = 0.58, .dram = 0.17};
  const PruningThresholds fitted = ThresholdsFor(builder.Get().co_schedules);
  EXPECT_DOUBLE_EQ(fitted.pur, 0.1);
  EXPECT_DOUBLE_EQ(fitted.mur, 0.025);
  Pair(b, c, 0.45F);
  Pair(a, b, 0.45F);
  Pair(a, c, 0.45F);
  EXPECT_DOUBLE_EQ(ThresholdsFor(builder.Get().co_schedules).pur, PruningThresholds().pur);
}

TEST_F(KerneletTest, TheSameCoScheduleGoesOnUntilABetterOneArrives) {
  Speeds(0.7F, 0.6F, 0.9F);
  AddRunning(a);
  const HeadView& of_b = AddHead(b);
  Plan plan = PlanOf("kernelet", builder);
  ASSERT_EQ(plan.launches.size(), 3);
  EXPECT_EQ(LaunchesOf(plan, of_b), 2);
  EXPECT_TRUE(IsLaunched(plan, of_b, {.form = Form::kSlice, .blocks_max = 4 * 132}));
  // b and c are better. They start when only the last slice of a is left, which they overlap with.
  const HeadView& of_c = AddHead(c);
  EXPECT_EQ(PlanOf("kernelet", builder).launches.size(), 4);
  builder.running.clear();
  AddRunning(a, 2);
  EXPECT_EQ(PlanOf("kernelet", builder).launches.size(), 0);
  // A kernel that is of both pairs goes on meanwhile.
  const HeadView& running_c = AddRunning(c);
  plan = PlanOf("kernelet", builder);
  EXPECT_EQ(LaunchesOf(plan, running_c), 1);
  EXPECT_EQ(LaunchesOf(plan, of_b) + LaunchesOf(plan, of_c), 0);
  builder.running.clear();
  EXPECT_EQ(PlanOf("kernelet", builder).launches.size(), 4);
}

// 2 % of overhead: a gap of 1.5 us is that share of 75 us, two waves of 1,056 block tasks.
TEST_F(KerneletTest, KernelsThatGainBesideNoneTakeTurnsInLongSlices) {
  Pair(a, b, 0.45F);
  const HeadView& of_a = AddHead(a, 1 * kMs);  // a wave of 52.8 us
  const HeadView& of_b = AddHead(b);
  const HeadView& of_c = AddHead(c);
  const Plan plan = PlanOf("kernelet", builder);
  ASSERT_EQ(plan.launches.size(), 4);
  EXPECT_EQ(LaunchesOf(plan, of_a), 2);
  EXPECT_EQ(LaunchesOf(plan, of_b), 2);
  EXPECT_TRUE(IsHeld(plan, of_c, Reason::kHoldWindow));
  EXPECT_EQ(plan.launches[0].form, Form::kSlice);
  EXPECT_EQ(plan.launches[0].blocks_max, 2 * 8 * 132);
  // Measured, a slice costs 5 us: 250 us.
  builder.Slices(a.kernel) = {.block_tasks = 5000, .overhead = 0.02};
  EXPECT_EQ(PlanOf("kernelet", builder).launches[0].blocks_max, 5 * 8 * 132);
  // They go on while no other one is overdue.
  builder.heads.pop_front();
  const HeadView& running = AddRunning(a, 1);
  EXPECT_EQ(LaunchesOf(PlanOf("kernelet", builder), running), 1);
  builder.snapshot.now_ns = 2 * kBeWaitNsMax;
  EXPECT_EQ(LaunchesOf(PlanOf("kernelet", builder), running), 0);
}

// Slices of 26 us that cost 10 us lose more than a CP of 0.17 gains.
TEST_F(KerneletTest, ShortSlicesLoseToTheirGapsRampsAndTails) {
  Pair(a, b, 0.6F);
  const HeadView& of_a = AddHead(a, 600 * kUs);
  const HeadView& of_b = AddHead(b, 600 * kUs);
  EXPECT_EQ(PlanOf("kernelet", builder).launches.size(), 4) << "a gap of 1.5 us";
  builder.Slices(a.kernel) = builder.Slices(b.kernel) = {.block_tasks = 16'700, .overhead = 0.02};
  const Plan plan = PlanOf("kernelet", builder);
  EXPECT_EQ(plan.choice.kind, ChoiceKind::kNone);
  for (const HeadView* head : {&of_a, &of_b}) {
    EXPECT_GT(FindLaunch(plan, *head)->blocks_max, 4 * 132) << "in turns";
  }
}

// What only a model knows counts with one error bar more, until it has run.
TEST_F(KerneletTest, APairThatMayGainIsTried) {
  Pair(a, b, 0.48F);
  AddHead(a);
  AddHead(b);
  EXPECT_EQ(PlanOf("kernelet", builder).choice.kind, ChoiceKind::kNone);
  for (int32_t ratio = 0; ratio < kCoScheduleRatios; ++ratio) {
    Predict(builder.CoSchedule(b.row, a.row, ratio));
  }
  EXPECT_EQ(PlanOf("kernelet", builder).choice.kind, ChoiceKind::kCoSchedule);
  for (int32_t ratio = 0; ratio < kCoScheduleRatios; ++ratio) {
    builder.Sliced(b.row, a.row, ratio) = {{0.48F, 0.48F}, {kSliceRunsMin, kSliceRunsMin}};
  }
  EXPECT_EQ(PlanOf("kernelet", builder).choice.kind, ChoiceKind::kNone);
}

TEST_F(KerneletTest, WhatSlicesDidCountsMoreThanWhatThePairPromised) {
  Speeds(0.9F, 0.7F, 0.4F);
  AddHead(a);
  const HeadView& of_b = AddHead(b);
  const HeadView& of_c = AddHead(c);
  for (int32_t ratio = 0; ratio < kCoScheduleRatios; ++ratio) {
    builder.Sliced(b.row, a.row, ratio) = {{0.6F, 0.6F}, {kSliceRunsMin, kSliceRunsMin - 1}};
  }
  EXPECT_EQ(LaunchesOf(PlanOf("kernelet", builder), of_b), 2) << "one slice is missing";
  for (int32_t ratio = 0; ratio < kCoScheduleRatios; ++ratio) {
    builder.Sliced(b.row, a.row, ratio).runs[1] = kSliceRunsMin;
  }
  const Plan plan = PlanOf("kernelet", builder);
  EXPECT_EQ(LaunchesOf(plan, of_b), 0);
  EXPECT_EQ(LaunchesOf(plan, of_c), 2);
}

// The running time of its slice may exceed the prediction of all that is left.
TEST_F(KerneletTest, ATaskBehindItsPredictionStillHasItsProfit) {
  Speeds(0.6F, 0.9F, 0.55F);
  for (const Kernel& row : {b, c}) {
    for (int32_t ratio = 0; ratio < kCoScheduleRatios; ++ratio) {
      const float speed = row.row == b.row ? 0.6F : 0.9F;
      builder.Sliced(row.row, a.row, ratio) = {{speed, speed}, {kSliceRunsMin, kSliceRunsMin}};
    }
  }
  const HeadView& of_a = AddRunning(a);
  builder.running.back().task.block_ns = 500;
  builder.running.back().task.remaining.duration_ns = 0;
  const HeadView& of_c = AddHead(c);
  const HeadView& of_b = AddHead(b);
  const Plan plan = PlanOf("kernelet", builder);
  EXPECT_EQ(plan.choice.kind, ChoiceKind::kCoSchedule);
  EXPECT_NEAR(static_cast<double>(plan.choice.value), 1e6 * (1 - 1 / 1.8), 10);
  EXPECT_EQ(LaunchesOf(plan, of_a), 1);
  EXPECT_EQ(LaunchesOf(plan, of_c), 2);
  EXPECT_EQ(LaunchesOf(plan, of_b), 0);
}

TEST_F(KerneletTest, ATaskWithoutAPredictionIsInNoPair) {
  Speeds(0.9F, 0.6F, 0.6F);
  for (int32_t ratio = 0; ratio < kCoScheduleRatios; ++ratio) {
    builder.Sliced(b.row, a.row, ratio) = {{0.9F, 0.9F}, {kSliceRunsMin, kSliceRunsMin}};
  }
  AddHead(a, 0);
  AddHead(b, 0);
  EXPECT_EQ(PlanOf("kernelet", builder).choice.kind, ChoiceKind::kNone);
}

// After a switch of policies a task may run as workers, to which the flow adds no slice.
TEST_F(KerneletTest, ATaskThatRunsInAnotherFormGetsNoSlice) {
  Pair(a, b, 0.9F);
  const HeadView& of_a = AddRunning(a);
  builder.running.back().parts[0].form = Form::kWorkers;
  Plan plan = PlanOf("kernelet", builder);
  EXPECT_EQ(LaunchesOf(plan, of_a), 0) << "alone";
  AddHead(b);
  plan = PlanOf("kernelet", builder);
  EXPECT_EQ(plan.choice.kind, ChoiceKind::kCoSchedule);
  EXPECT_EQ(LaunchesOf(plan, of_a), 0) << "in a pair";
}

TEST_F(KerneletTest, QueriesComeFirst) {
  const int32_t lc = builder.AddLcApp(0.3, 500 * kUs, 1 * kMs, 1.05);
  AddHead(a);
  const HeadView& query = builder.AddLcHead(lc);
  const Plan plan = PlanOf("kernelet", builder);
  ASSERT_EQ(plan.launches.size(), 1);
  EXPECT_EQ(plan.launches[0].task, query.task);
  EXPECT_EQ(plan.holds[0].reason, Reason::kHoldLcActive);
}

// A stream runs in order: behind slices an LC task would wait for them.
TEST_F(KerneletTest, NoLcAppHasTheStreamsOfSlices) {
  const int32_t first = builder.AddLcApp(0.3, kMs, 2 * kMs, 1.05);
  const int32_t second = builder.AddLcApp(0.3, kMs, 2 * kMs, 1.05);
  builder.lc_apps[static_cast<size_t>(first)].priority = 1;
  const HeadView& of_a = AddHead(a);
  const Plan plan = PlanOf("kernelet", builder);
  ASSERT_NE(FindLaunch(plan, of_a), nullptr);
  for (const int32_t app : {first, second}) {
    EXPECT_NE(plan.routes[static_cast<size_t>(app)].lane_class, FindLaunch(plan, of_a)->lane_class);
  }
}

TEST_F(KerneletTest, AHeadThatWaitedTooLongGetsTheNextPair) {
  Speeds(0.9F, 0.6F, 0.55F);
  builder.snapshot.now_ns = 2 * kBeWaitNsMax;
  const HeadView& of_c = AddHead(c);
  const HeadView& of_a = AddHead(a);
  AddHead(b);
  const Plan plan = PlanOf("kernelet", builder);
  EXPECT_NE(FindLaunch(plan, of_c), nullptr);
  EXPECT_NE(FindLaunch(plan, of_a), nullptr);
}

TEST_F(KerneletTest, BaseRunsWholeKernelsInOrder) {
  Pair(a, b, 0.9F);
  const HeadView& first = AddHead(a);
  const HeadView& second = AddHead(b);
  const HeadView& third = AddHead(b);
  const Plan plan = PlanOf("kernelet:base", builder);
  ASSERT_EQ(plan.launches.size(), 2);
  for (const HeadView* head : {&first, &second}) {
    EXPECT_TRUE(IsLaunched(plan, *head, {.form = Form::kOriginal, .blocks_max = 0}));
  }
  EXPECT_EQ(FindHold(plan, third)->reason, Reason::kHoldWindow);
}

}  // namespace
}  // namespace gpushare::core::testing
