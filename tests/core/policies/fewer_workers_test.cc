// adaptive: fewer workers an SM where an eviction of all of them would take too long.

#include "src/core/policies/parts/fewer_workers.h"

#include <gtest/gtest.h>

#include "src/core/seams/width.h"
#include "tests/core/policies/snapshot_builder.h"

namespace gpushare::core::testing {
namespace {

constexpr int32_t kSms = 132;
constexpr int32_t kMost = 8;  // workers that an SM holds

// The LC app's bound leaves 100 us.
class FewerWorkersTest : public ::testing::Test {
 protected:
  // Saturated at a quarter of the workers.
  int32_t AddKernel(int64_t eviction_ns, double saturated = 0.25) {
    const int32_t kernel = builder.AddKernel(eviction_ns);
    builder.Simulation(kernel).saturating_occupancy = saturated;
    return kernel;
  }
  const HeadView& AddHead(int32_t kernel) { return builder.AddBeHead(be, kernel, 8 * kMs); }

  SnapshotBuilder builder{std::vector<int32_t>{}};
  int32_t lc = builder.AddLcApp(0.1, 667 * kUs, 2'000 * kUs, 1.05);
  int32_t be = builder.AddBeApp();
};

TEST_F(FewerWorkersTest, AWidthHasTheSpeedAndTheBlockTasksOfItsShareOfTheOccupancy) {
  const HeadView& head = AddHead(AddKernel(0, 0.5));
  const Width half = WidthOf(*head.kernel, kMost / 2);
  EXPECT_EQ(half.workers_per_sm, kMost / 2);
  EXPECT_DOUBLE_EQ(half.speed, 1);
  EXPECT_DOUBLE_EQ(half.task_time, 0.5);
  const Width one = WidthOf(*head.kernel, 1);
  EXPECT_DOUBLE_EQ(one.speed, 0.25);
  EXPECT_DOUBLE_EQ(one.task_time, 0.5) << "an SM below saturation does not slow its block tasks";
  EXPECT_EQ(WidthOf(*head.kernel, kMost).workers_per_sm, 0) << "all";
  EXPECT_EQ(EvictionOf(104 * kUs, half, 4 * kUs), 54 * kUs) << "the write of 4 us takes as long";
  EXPECT_EQ(EvictionOf(3 * kUs, half, 4 * kUs), 3 * kUs);
  EXPECT_EQ(EvictionOf(104 * kUs, Width(), 4 * kUs), 104 * kUs);
  EXPECT_EQ(EvictionOf(kNever, half, 4 * kUs), kNever);
}

// 4 us and 3 / 8 of 246 us are 96 us, 4 / 8 of it 127.
TEST_F(FewerWorkersTest, AKernelThatLeavesTooLateGetsTheMostWorkersThatLeaveInTime) {
  const HeadView& head = AddHead(AddKernel(250 * kUs));
  EXPECT_TRUE(IsLaunched(PlanOf("adaptive", builder), head, {.workers = 3 * kSms}));
}

// 24 us and 3 / 8 of 226 us are 109 us, 2 / 8 of it 81.
TEST_F(FewerWorkersTest, TheWriteTakesAsLongAsTheDeviceSays) {
  builder.snapshot.eviction_write_ns = 24 * kUs;
  const HeadView& head = AddHead(AddKernel(250 * kUs));
  EXPECT_TRUE(IsLaunched(PlanOf("adaptive", builder), head, {.workers = 2 * kSms}));
}

TEST_F(FewerWorkersTest, AKernelThatLeavesInTimeHasAllWorkers) {
  const HeadView& head = AddHead(AddKernel(100 * kUs));
  EXPECT_TRUE(IsLaunched(PlanOf("adaptive", builder), head, {.workers = 0}));
}

TEST_F(FewerWorkersTest, AKernelThatLeavesTooLateWithAnyWorkersIsHeld) {
  const HeadView& head = AddHead(AddKernel(1'000 * kUs));
  EXPECT_TRUE(IsHeld(PlanOf("adaptive", builder), head, Reason::kHoldBlocking));
}

TEST_F(FewerWorkersTest, AKernelOfWhichNobodyKnowsWhatFewerWorkersDoIsHeld) {
  const HeadView& head = AddHead(AddKernel(250 * kUs, 1));
  EXPECT_TRUE(IsHeld(PlanOf("adaptive", builder), head, Reason::kHoldBlocking));
}

// The SMs have room for its workers beside the first one's, whose block tasks would take longer.
TEST_F(FewerWorkersTest, NoSecondTaskTakesTheRoomThatIsLeft) {
  const int32_t kernel = AddKernel(250 * kUs);
  const HeadView& first = AddHead(kernel);
  const HeadView& second = AddHead(kernel);
  const Plan plan = PlanOf("adaptive", builder);
  EXPECT_TRUE(IsLaunched(plan, first, {.workers = 3 * kSms}));
  EXPECT_EQ(FindLaunch(plan, second), nullptr) << Describe(plan);
}

TEST_F(FewerWorkersTest, ARunningTaskWithFewerWorkersKeepsTheRestOfTheSmsEmpty) {
  const int32_t kernel = AddKernel(250 * kUs);
  RunningView& running =
      builder.AddRunningBe(be, kernel, 8 * kMs, {{kWholeDevice, Form::kWorkers, false, 3 * kSms}});
  running.task.overlap_index = builder.AddOverlapRow(kernel);
  const HeadView& next = AddHead(kernel);
  const Plan plan = PlanOf("adaptive", builder);
  EXPECT_TRUE(plan.launches.empty()) << Describe(plan);
  EXPECT_TRUE(plan.evictions.empty()) << Describe(plan);
  EXPECT_NE(FindHold(plan, next), nullptr);
}

// Its eviction takes 96 us, as LC work tolerates, and not the 250 of all workers.
TEST_F(FewerWorkersTest, ARunningTaskDelaysAQueryByTheEvictionOfItsWorkers) {
  const int32_t kernel = AddKernel(250 * kUs);
  builder.AddRunningBe(be, kernel, 8 * kMs, {{kWholeDevice, Form::kWorkers, false, 3 * kSms}});
  const HeadView& next = AddHead(AddKernel(20 * kUs));
  EXPECT_TRUE(IsHeld(PlanOf("adaptive", builder), next, Reason::kHoldWindow))
      << "for want of room, not for the delay";
}

TEST_F(FewerWorkersTest, ARunningPartHasItsWidthWhereItIsAloneOnItsSms) {
  const int32_t kernel = AddKernel(250 * kUs);
  const int32_t unknown = AddKernel(250 * kUs, 1);
  const auto width_of = [&](const RunningView& running, size_t copies) {
    builder.running.assign(copies, running);
    const Snapshot& snapshot = builder.Get();
    const RunningView& first = snapshot.running.front();
    return WidthOfPart(snapshot, first.task, first.parts[0]).workers_per_sm;
  };
  const auto run = [&](int32_t of, Form form, int32_t workers) {
    return builder.AddRunningBe(be, of, 8 * kMs, {{kWholeDevice, form, false, workers}});
  };
  EXPECT_EQ(width_of(run(kernel, Form::kWorkers, 3 * kSms), 1), 3);
  EXPECT_EQ(width_of(run(kernel, Form::kWorkers, 2 * kSms + 1), 1), 3) << "on one SM";
  EXPECT_EQ(width_of(run(kernel, Form::kWorkers, 3 * kSms), 2), 0) << "beside another part";
  EXPECT_EQ(width_of(run(kernel, Form::kWorkers, kMost * kSms), 1), 0);
  EXPECT_EQ(width_of(run(kernel, Form::kFused, 3 * kSms), 1), 0);
  EXPECT_EQ(width_of(run(unknown, Form::kWorkers, 3 * kSms), 1), 0);
  RunningView rest = run(kernel, Form::kWorkers, 3 * kSms);
  rest.task.blocks_left = 3 * kSms;
  EXPECT_EQ(width_of(rest, 1), 0) << "its block tasks fill no more";
}

TEST_F(FewerWorkersTest, WithoutAnLcAppAKernelHasAllWorkers) {
  SnapshotBuilder alone{std::vector<int32_t>{}};
  const int32_t app = alone.AddBeApp();
  const int32_t kernel = alone.AddKernel(250 * kUs);
  alone.Simulation(kernel).saturating_occupancy = 0.25;
  const HeadView& head = alone.AddBeHead(app, kernel, 8 * kMs);
  EXPECT_TRUE(IsLaunched(PlanOf("adaptive", alone), head, {.workers = 0}));
}

// 2 of 8 workers are saturated by 0.83, and leave within 78 us. That in each idle period is better
// than all workers in half of them, and worse than these in nine tenths.
TEST_F(FewerWorkersTest, TheWidthThatGetsMostIsChosen) {
  const HeadView& head = AddHead(AddKernel(250 * kUs, 0.3));
  const auto width_or = [&](double share_of_all) {
    const auto share = [&](int64_t ns) {
      if (ns == 250 * kUs) return share_of_all;
      return ns <= 80 * kUs ? 1.0 : 0.9;
    };
    return ChooseWidth(builder.Get(), head, share).workers_per_sm;
  };
  EXPECT_EQ(width_or(0.5), 2) << "not three, which leave in time in nine of ten periods";
  EXPECT_EQ(width_or(0.9), 0);
  EXPECT_EQ(width_or(1), 0);
}

}  // namespace
}  // namespace gpushare::core::testing
