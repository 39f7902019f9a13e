// How long a launch can keep an LC kernel waiting: what remains of it, or its eviction.

#include "src/core/policies/parts/blocking.h"

#include "gtest/gtest.h"
#include "tests/core/policies/snapshot_builder.h"

namespace gpushare::core::testing {
namespace {

class BlockingTest : public ::testing::Test {
 protected:
  // A head of which `remaining_ns` is left, give or take `error_ns`.
  HeadView& Task(int64_t eviction_ns, int64_t remaining_ns, int64_t error_ns = 0) {
    HeadView& head = builder_.AddBeHead(be_, builder_.AddKernel(eviction_ns), 10 * kMs);
    head.remaining.duration_ns = remaining_ns;
    head.remaining.error_ns = error_ns;
    return head;
  }
  int64_t On(PlaceIndex place, const HeadView& head) {
    return BlockingOn(builder_.Get(), head, place);
  }

  SnapshotBuilder builder_;
  const int32_t be_ = builder_.AddBeApp();
};

TEST_F(BlockingTest, ALongTaskBlocksForItsEviction) {
  EXPECT_EQ(On(kWholeDevice, Task(30 * kUs, 10 * kMs)), 30 * kUs);
}

TEST_F(BlockingTest, ATaskThatIsNearlyDoneBlocksOnlyForWhatRemains) {
  EXPECT_EQ(On(kWholeDevice, Task(30 * kUs, 5 * kUs)), 5 * kUs);
  EXPECT_EQ(On(kWholeDevice, Task(30 * kUs, 0)), 0);
}

TEST_F(BlockingTest, WithoutEvictionATaskBlocksForWhatRemainsAndItsError) {
  EXPECT_EQ(On(kWholeDevice, Task(kNever, 10 * kMs, 2 * kMs)), 12 * kMs);
}

TEST_F(BlockingTest, APlaceStretchesWhatRemainsButNotTheEviction) {
  const PlaceIndex half = builder_.LcPlace(68);
  EXPECT_EQ(On(half, Task(kNever, 68 * kUs)), 132 * kUs);
  EXPECT_EQ(On(half, Task(30 * kUs, 10 * kMs)), 30 * kUs);
}

// 1 of 8 workers has half the speed, and its block tasks take a quarter of the time: an eviction of
// 84 us takes 24, of which 4 are the write's.
TEST_F(BlockingTest, FewerWorkersStretchWhatRemainsAndShortenTheEviction) {
  const int32_t kernel = builder_.AddKernel(84 * kUs);
  builder_.Simulation(kernel).saturating_occupancy = 0.25;
  HeadView& head = builder_.AddBeHead(be_, kernel, 10 * kMs);
  const Width one = WidthOf(*head.kernel, 1);
  const auto blocking_ns = [&](int64_t remaining_ns) {
    head.remaining.duration_ns = remaining_ns;
    return BlockingOn(builder_.Get(), head, kWholeDevice, one);
  };
  EXPECT_EQ(blocking_ns(10 * kMs), 24 * kUs);
  EXPECT_EQ(blocking_ns(14 * kUs), 24 * kUs) << "28 us at that speed";
  EXPECT_EQ(blocking_ns(8 * kUs), 16 * kUs);
  EXPECT_EQ(LeavesWithin(builder_.Get(), head, kWholeDevice, one), 16 * kUs);
}

TEST_F(BlockingTest, AbsurdPredictionsStayWithinTheClock) {
  const HeadView& endless = Task(kNever, kMaxDurationNs, kMaxDurationNs);
  EXPECT_GE(On(builder_.LcPlace(68), endless), kMaxDurationNs);
  EXPECT_LT(On(builder_.LcPlace(68), endless), kNever);
  EXPECT_LT(BlockingOn(builder_.Get(), endless, builder_.LcPlace(68),
                       {.workers_per_sm = 1, .speed = 0.01}),
            kNever);
}

}  // namespace
}  // namespace gpushare::core::testing
