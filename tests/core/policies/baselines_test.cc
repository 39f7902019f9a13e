// bare, fifo, priority, and quiet for every policy.

#include <gtest/gtest.h>

#include "src/core/policies/registry.h"
#include "tests/core/policies/snapshot_builder.h"

namespace gpushare::core::testing {
namespace {

TEST(FifoTest, LaunchesInOrderOfSubmissionWhateverTheClassAndTheOrderOfHeads) {
  SnapshotBuilder builder;
  const int32_t lc = builder.AddLcApp(0.3, 667 * kUs, 2'176 * kUs, 1.05);
  const int32_t be = builder.AddBeApp();
  const int32_t kernel = builder.AddKernel(40 * kUs);
  builder.AddBeHead(be, kernel, 8 * kMs).sequence = 30;
  builder.AddLcHead(lc, 3).sequence = 20;
  builder.AddBeCopy(be, CopyDirection::kHostToDevice, 1 << 20, 27 * kUs).sequence = 10;
  const Plan plan = PlanOf("fifo", builder);
  ASSERT_EQ(plan.launches.size(), 3);
  EXPECT_EQ(plan.launches[0].task, builder.head(2).task);
  EXPECT_EQ(plan.launches[0].form, Form::kMemcpy);
  EXPECT_EQ(plan.launches[1].task, builder.head(1).task);
  EXPECT_EQ(plan.launches[1].form, Form::kGraph);
  EXPECT_EQ(plan.launches[1].count, 3);
  EXPECT_EQ(plan.launches[2].task, builder.head(0).task);
  EXPECT_EQ(plan.launches[2].form, Form::kOriginal);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(plan.launches[i].lane_class, LaneClass::kPlain);
    EXPECT_EQ(plan.launches[i].reason, Reason::kBaseline);
  }
  EXPECT_FALSE(plan.routes[0].fast_path) << "a submitter that launches by itself overtakes";
  EXPECT_EQ(plan.holds.size(), 0);
}

TEST(BareTest, LaunchesEverythingOnPlainLanesAndLeavesTheFastPathOpen) {
  SnapshotBuilder builder;
  const int32_t lc = builder.AddLcApp(0.3, 667 * kUs, 2'176 * kUs, 1.05);
  const int32_t be = builder.AddBeApp();
  builder.AddBeHead(be, builder.AddKernel(40 * kUs), 8 * kMs);
  builder.AddLcHead(lc);
  builder.AddRunningBe(be, 0, 8 * kMs, {{kWholeDevice, Form::kOriginal}});
  const Plan plan = PlanOf("bare", builder);
  ASSERT_EQ(plan.launches.size(), 2);
  EXPECT_EQ(plan.launches[0].lane_class, LaneClass::kPlain);
  EXPECT_EQ(plan.launches[1].lane_class, LaneClass::kPlain);
  EXPECT_EQ(plan.evictions.size(), 0);
  EXPECT_TRUE(plan.routes[0].fast_path);
  EXPECT_FALSE(plan.routes[0].evict_overlapping);
  EXPECT_EQ(plan.routes[0].lane_class, LaneClass::kPlain);
}

TEST(BareTest, LaunchesInOrderOfSubmissionWhateverTheClassAndTheOrderOfHeads) {
  SnapshotBuilder builder;
  const int32_t lc = builder.AddLcApp(0.3, 667 * kUs, 2'176 * kUs, 1.05);
  const int32_t be = builder.AddBeApp();
  builder.AddLcHead(lc).sequence = 30;
  builder.AddBeHead(be, builder.AddKernel(40 * kUs), 8 * kMs).sequence = 20;
  builder.AddBeCopy(be, CopyDirection::kHostToDevice, 1 << 20, 27 * kUs).sequence = 10;
  const Plan plan = PlanOf("bare", builder);
  ASSERT_EQ(plan.launches.size(), 3);
  EXPECT_EQ(plan.launches[0].task, builder.head(2).task);
  EXPECT_EQ(plan.launches[1].task, builder.head(1).task);
  EXPECT_EQ(plan.launches[2].task, builder.head(0).task);
}

TEST(PriorityTest, GivesLcTheHighLaneAndBeTheLowOneAndNeverEvicts) {
  SnapshotBuilder builder;
  const int32_t lc = builder.AddLcApp(0.3, 667 * kUs, 2'176 * kUs, 1.05);
  const int32_t be = builder.AddBeApp();
  const HeadView& be_head = builder.AddBeHead(be, builder.AddKernel(40 * kUs), 8 * kMs);
  const HeadView& lc_head = builder.AddLcHead(lc);
  builder.AddRunningBe(be, 0, 8 * kMs, {{kWholeDevice, Form::kOriginal}});
  const Plan plan = PlanOf("priority", builder);
  EXPECT_TRUE(IsLaunched(plan, lc_head, {.lane_class = LaneClass::kLc}));
  EXPECT_TRUE(IsLaunched(plan, be_head, {.form = Form::kOriginal, .lane_class = LaneClass::kBe}));
  EXPECT_EQ(plan.evictions.size(), 0);
  EXPECT_FALSE(plan.routes[0].evict_overlapping);
}

TEST(QuietTest, EveryPolicyLaunchesNothingAndLetsEvictableWorkLeave) {
  for (const std::string& name : PolicyNames()) {
    SnapshotBuilder builder;
    const int32_t lc = builder.AddLcApp(0.3, 667 * kUs, 2'176 * kUs, 1.05);
    const int32_t be = builder.AddBeApp();
    builder.AddBeHead(be, builder.AddKernel(40 * kUs), 8 * kMs);
    builder.AddLcHead(lc);
    const RunningView& live = builder.AddRunningBe(be, 0, 8 * kMs, {{kWholeDevice}});
    builder.AddRunningBe(be, 0, 8 * kMs, {{kWholeDevice, Form::kOriginal}});
    builder.AddRunningBe(be, 0, 8 * kMs, {{kWholeDevice, Form::kWorkers, true}});
    builder.snapshot.quiesced = true;
    const Plan plan = PlanOf(name.c_str(), builder);
    EXPECT_EQ(plan.launches.size(), 0) << name;
    EXPECT_EQ(plan.holds.size(), 2) << name;
    EXPECT_EQ(plan.holds[0].reason, Reason::kHoldQuiesced) << name;
    EXPECT_EQ(plan.evictions.size(), 1) << name;
    EXPECT_NE(FindEviction(plan, live.task, kWholeDevice), nullptr) << name;
    EXPECT_FALSE(plan.routes[0].fast_path) << name;
  }
}

}  // namespace
}  // namespace gpushare::core::testing
