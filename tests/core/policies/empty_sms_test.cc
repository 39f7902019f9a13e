// adaptive: after which evictions an LC grid waits for empty SMs.

#include "src/core/policies/adaptive/carry_out/empty_sms.h"

#include <gtest/gtest.h>

#include "src/core/policies/adaptive/arrangement/tuning.h"
#include "tests/core/policies/snapshot_builder.h"

namespace gpushare::core::testing {
namespace {

// A service of long queries with a bound, and a BE kernel whose workers take the largest shared
// memory and leave within 40 us.
class EmptySmsTest : public ::testing::Test {
 protected:
  EmptySmsTest() { builder.lc_apps[0].blocking_budget_ns = 100 * kUs; }
  bool Waits() { return PlanOf("adaptive", builder).routes[0].waits_for_empty_sms; }
  RunningView& AddRunning(const BePart& part = {}) {
    return builder.AddRunningBe(be, kernel, kMs, {part});
  }

  SnapshotBuilder builder{{68}};
  int32_t lc = builder.AddLcApp(0.3, kEmptySmsQueryNs, 3 * kEmptySmsQueryNs, 1.05);
  int32_t be = builder.AddBeApp();
  int32_t kernel = builder.AddKernel(40 * kUs);
};

// As the last step of a plan that has this route.
bool WaitsOn(SnapshotBuilder& builder, PlaceIndex place, bool evicts = true) {
  Plan plan;
  plan.Clear();
  plan.routes[0].place = place;
  plan.routes[0].evict_overlapping = evicts;
  LetGridsWait(builder.Get(), plan);
  return plan.routes[0].waits_for_empty_sms;
}

TEST_F(EmptySmsTest, ALongQueryWaitsForWorkersThatTakeL1) {
  AddRunning();
  EXPECT_TRUE(Waits());
  builder.lc_apps[0].solo_ns = kEmptySmsQueryNs - 1;
  EXPECT_FALSE(Waits());
}

TEST_F(EmptySmsTest, WorkersThatThisPlanLaunchesCount) {
  const HeadView& head = builder.AddBeHead(be, kernel, kMs);
  const Plan plan = PlanOf("adaptive", builder);
  ASSERT_NE(FindLaunch(plan, head), nullptr) << Describe(plan);
  EXPECT_TRUE(plan.routes[0].waits_for_empty_sms);
}

TEST_F(EmptySmsTest, WorkThatWaitsCountsForNothing) {
  builder.KeepL1(kernel);
  AddRunning();
  AddRunning();
  builder.AddBeHead(be, builder.AddKernel(40 * kUs), kMs);
  builder.AddBeTask(be, TaskKind::kOpaque, 10 * kMs);
  EXPECT_FALSE(Waits()) << "the workers on the device keep L1";
  builder.AddRunningBe(be, builder.AddKernel(40 * kUs), kMs, {{}});
  EXPECT_TRUE(Waits());
}

TEST_F(EmptySmsTest, NothingWaitsForAGridOfAKernelThatHasWorkersToo) {
  AddRunning();
  AddRunning({kWholeDevice, Form::kOriginal});
  EXPECT_FALSE(Waits());
}

TEST_F(EmptySmsTest, NothingWaitsForWorkThatNobodyEvicts) {
  AddRunning();
  EXPECT_TRUE(WaitsOn(builder, kWholeDevice));
  AddRunning({kWholeDevice, Form::kOpaque});
  EXPECT_FALSE(WaitsOn(builder, kWholeDevice));
}

TEST_F(EmptySmsTest, OnASplitTheWorkOnTheOtherSideDoesNotMatter) {
  AddRunning({builder.BePlace(68), Form::kOpaque});
  EXPECT_FALSE(WaitsOn(builder, builder.LcPlace(68))) << "no workers there";
  AddRunning({builder.LcPlace(68), Form::kWorkers});
  EXPECT_TRUE(WaitsOn(builder, builder.LcPlace(68)));
  EXPECT_FALSE(WaitsOn(builder, kWholeDevice)) << "the other side is a part of it";
}

TEST_F(EmptySmsTest, NothingWaitsForWorkersThatTakeLongToLeave) {
  RunningView& running = AddRunning();
  const int64_t longest_ns =
      static_cast<int64_t>(kEmptySmsWaitMax * static_cast<double>(kEmptySmsQueryNs));
  running.task.eviction_p99_ns = longest_ns;
  EXPECT_TRUE(WaitsOn(builder, kWholeDevice));
  running.task.eviction_p99_ns = longest_ns + 1;
  EXPECT_FALSE(WaitsOn(builder, kWholeDevice));
}

// It counts as leaving at once, and may take milliseconds.
TEST_F(EmptySmsTest, NothingWaitsForWorkersOfAnUnknownKernel) {
  AddRunning().task.eviction_known = false;
  EXPECT_FALSE(WaitsOn(builder, kWholeDevice));
}

TEST_F(EmptySmsTest, NothingWaitsWithoutAnEviction) {
  EXPECT_FALSE(WaitsOn(builder, kWholeDevice));
  AddRunning();
  EXPECT_FALSE(WaitsOn(builder, kWholeDevice, false));
}

TEST_F(EmptySmsTest, SegmentsLeaveAndCountAsTakingNoL1) {
  const int32_t graph = builder.AddKernel(100 * kUs);
  builder.AddRunningGraph(be, graph, 10 * kMs, {kWholeDevice, Form::kSegments});
  EXPECT_FALSE(WaitsOn(builder, kWholeDevice));
  AddRunning();
  EXPECT_TRUE(WaitsOn(builder, kWholeDevice));
}

TEST_F(EmptySmsTest, NoQueryWaitsForThoseOfAnotherApp) {
  AddRunning();
  const int32_t other = builder.AddLcApp(0.1, kMs, 3 * kMs, 1.05);
  builder.lc_apps[static_cast<size_t>(other)].blocking_budget_ns = 100 * kUs;
  EXPECT_FALSE(Waits());
}

// Where an app's only promise is a target, BE grids fill what LC kernels leave of an SM.
TEST_F(EmptySmsTest, NothingWaitsWhereGridsRunBesideQueries) {
  builder.AddBeHead(be, kernel, kMs);
  LcAppView& app = builder.lc_apps[0];
  app.promise.p99_bound = 0;
  app.promise.target_ns = 30 * kMs;
  app.load = 0.5;
  app.blocking_budget_ns = 20 * kMs;
  EXPECT_TRUE(PlanOf("adaptive", builder).routes[0].evict_overlapping);
  EXPECT_FALSE(Waits());
}

}  // namespace
}  // namespace gpushare::core::testing
