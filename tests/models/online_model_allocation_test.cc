// Memory that is exhausted at any allocation of a model's construction: bad_alloc, and nothing is
// leaked or freed twice.

#include <gtest/gtest.h>

#include <memory>
#include <new>

#include "src/core/seams/cost_model.h"
#include "src/core/seams/device_profile.h"
#include "src/models/online/online_model.h"
#include "tests/faults/failing_allocations.h"

namespace gpushare::models {
namespace {

using gpushare_test::Failing;
using gpushare_test::FailingAllocations;
using gpushare_test::LiveAllocations;

TEST(OnlineModelAllocationTest, AnyAllocationOfItsConstructionMayFail) {
  if (!gpushare_test::CanFailAllocations()) GTEST_SKIP() << "A sanitizer replaces the allocator.";
  const core::DeviceProfile device;
  constexpr int64_t kMore = 100'000;  // than a construction has
  int64_t number = 1;
  for (bool made = false; !made; ++number) {
    ASSERT_LT(number, kMore);
    const int64_t live = LiveAllocations();
    FailingAllocations failures(number, Failing::kOnce);
    try {
      const std::unique_ptr<core::CostModel> model = MakeOnlineModel(device);
      failures.Stop();
      made = failures.failed() == 0;
      EXPECT_NE(model, nullptr);
    } catch (const std::bad_alloc&) {
      failures.Stop();
      EXPECT_GT(failures.failed(), 0);
    }
    EXPECT_EQ(LiveAllocations(), live) << "allocation " << number << " failed";
  }
  EXPECT_GT(number, 5);  // some of them did fail
}

}  // namespace
}  // namespace gpushare::models
