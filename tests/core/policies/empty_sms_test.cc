// adaptive: after which evictions an LC grid waits for empty SMs.

#include "src/core/policies/adaptive/empty_sms.h"

#include <gtest/gtest.h>

#include "src/core/base/tuning.h"
#include "tests/core/policies/snapshot_builder.h"

namespace gpushare::core::testing {
namespace {

// A service of long queries with a bound, and a BE kernel whose workers take the largest shared
// memory and leave within 40 us.
class EmptySmsTest : public ::testing::Test {
 protected:
  EmptySmsTest() {
    builder.AddBeHead(be, kernel, kMs);
    builder.lc_apps[0].blocking_budget_ns = 100 * kUs;
  }
  bool Waits(const char* policy = "adaptive") {
    return PlanOf(policy, builder).routes[0].waits_for_empty_sms;
  }

  SnapshotBuilder builder{{}};  // without splits
  int32_t lc = builder.AddLcApp(0.3, kEmptySmsQueryNs, 3 * kEmptySmsQueryNs, 1.05);
  int32_t be = builder.AddBeApp();
  int32_t kernel = builder.AddKernel(40 * kUs);
};

TEST_F(EmptySmsTest, ALongQueryWaitsUntilWorkersThatTakeL1HaveLeft) {
  EXPECT_TRUE(Waits());
  EXPECT_FALSE(Waits("smguard")) << "workers stay on the SMs";
  builder.lc_apps[0].solo_ns = kEmptySmsQueryNs - 1;
  EXPECT_FALSE(Waits());
}

TEST_F(EmptySmsTest, WorkersThatKeepL1AreNotWaitedFor) {
  builder.KeepL1(kernel);
  EXPECT_FALSE(Waits());
  builder.AddBeHead(be, builder.AddKernel(40 * kUs), kMs);
  EXPECT_TRUE(Waits()) << "of another kernel";
}

TEST_F(EmptySmsTest, NothingWaitsForWorkThatNobodyEvicts) {
  builder.AddBeTask(be, TaskKind::kOpaque, 10 * kUs);
  EXPECT_FALSE(Waits());
}

TEST_F(EmptySmsTest, NothingWaitsForAGridOfAKernelThatHasWorkersToo) {
  builder.AddRunningBe(be, kernel, kMs, {{kWholeDevice, Form::kWorkers}});
  EXPECT_TRUE(Waits());
  builder.AddRunningBe(be, kernel, kMs, {{kWholeDevice, Form::kOriginal}});
  EXPECT_FALSE(Waits());
}

TEST_F(EmptySmsTest, NothingWaitsWithoutBeWork) {
  builder.heads.clear();
  EXPECT_FALSE(Waits());
}

TEST_F(EmptySmsTest, NoQueryWaitsForThoseOfAnotherApp) {
  const int32_t other = builder.AddLcApp(0.1, kMs, 3 * kMs, 1.05);
  builder.lc_apps[static_cast<size_t>(other)].blocking_budget_ns = 100 * kUs;
  EXPECT_FALSE(Waits());
}

// Where an app's only promise is a target, BE grids fill what LC kernels leave of an SM.
TEST_F(EmptySmsTest, NothingWaitsWhereGridsRunBesideQueries) {
  LcAppView& app = builder.lc_apps[0];
  app.p99_bound = 0;
  app.target_ns = 30 * kMs;
  app.load = 0.5;
  app.blocking_budget_ns = 20 * kMs;
  EXPECT_TRUE(PlanOf("adaptive", builder).routes[0].evict_overlapping);
  EXPECT_FALSE(Waits());
  EXPECT_TRUE(Waits("adaptive:apart"));
}

}  // namespace
}  // namespace gpushare::core::testing
