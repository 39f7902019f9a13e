// A plan never allocates, whatever the snapshot asks of the planner.

#include <gtest/gtest.h>

#include <new>

#include "src/core/policies/registry.h"
#include "tests/core/policies/counting_allocator.h"
#include "tests/core/policies/snapshot_builder.h"

namespace gpushare::core::testing {
namespace {

TEST(AllocationTest, TheCounterCounts) {
  const int64_t before = AllocationCount();
  ::operator delete(::operator new(1));
  EXPECT_EQ(AllocationCount() - before, 1);
}

TEST(AllocationTest, MakePlanAllocatesNothingFromTheFirstPlanOn) {
  for (const std::string& name : PolicyNames()) {
    const std::unique_ptr<Policy> policy = NewPolicy(name.c_str());
    for (int step = 0; step < 20; ++step) {
      SnapshotBuilder builder;
      const int32_t lc = builder.AddLcApp(0.03 * step, 546 * kUs, 1'548 * kUs, 1.03);
      const int32_t be = builder.AddBeApp();
      for (int k = 0; k < 10; ++k) {
        const int32_t kernel = builder.AddKernel((10 + 20 * k) * kUs);
        builder.Pair(lc, kernel, 84).lc_speed = 1.0f;
        builder.AddBeHead(be, kernel, 8 * kMs);
      }
      builder.AddBeCopy(be, CopyDirection::kHostToDevice, 1 << 28, 5 * kMs);
      builder.AddRunningBe(be, 0, 8 * kMs, {{kWholeDevice}, {builder.BePlace(84)}});
      if (step % 2 == 0) builder.AddLcHead(lc);
      if (step % 3 == 0) builder.AddQuery(lc, 1 * kMs);
      for (int k = 0; k < 4; ++k) builder.Fuse(k, 9 - k, 1, 1 + 0.1 * step);
      for (int k = 0; k < 10; ++k) builder.AddOverlapRow(k);
      builder.CoSchedule(5, 2, 1) = {{2, 2}, {0.8F, 0.8F}, 0, 0.375F};
      for (HeadView& head : builder.heads) head.overlap_index = head.kernel_index;
      if (!builder.queries.empty()) builder.AddLcKernelHead(0, step % 10, 1 * kMs, 2);
      const Snapshot& snapshot = builder.Get();
      auto plan = std::make_unique<Plan>();
      plan->Clear();
      const int64_t before = AllocationCount();
      policy->MakePlan(snapshot, *plan);
      EXPECT_EQ(AllocationCount() - before, 0) << name;
    }
  }
}

}  // namespace
}  // namespace gpushare::core::testing
