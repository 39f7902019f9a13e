#include <algorithm>
#include <gpushare/group/gpu_load.hpp>
#include <vector>

#include "tests/group/group_fixture.h"

namespace gpushare_test {
namespace {

using gpushare::group_detail::BeLoad;
using gpushare::group_detail::Lateness;
using gpushare::group_detail::LcLoad;

TEST(LcLoadTest, WorkLeftShrinksWithTimeAndIsCorrectedAtEachEnd) {
  LcLoad load;
  EXPECT_EQ(load.LeftNs(5 * kMs), 0);
  EXPECT_EQ(load.Begin(0, 100 * kUs), 100 * kUs);
  EXPECT_EQ(load.Begin(0, 100 * kUs), 200 * kUs);
  EXPECT_EQ(load.LeftNs(50 * kUs), 150 * kUs);
  // The first one ends late: the second has not begun before.
  load.End(180 * kUs, 100 * kUs);
  EXPECT_EQ(load.LeftNs(180 * kUs), 100 * kUs);
  load.End(250 * kUs, 100 * kUs);
  EXPECT_EQ(load.LeftNs(250 * kUs), 0);
  EXPECT_EQ(load.in_hand(), 0);
}

TEST(LcLoadTest, AQueryThatIsLateIsNoNegativeWait) {
  LcLoad load;
  load.Begin(0, 100 * kUs);
  EXPECT_EQ(load.LeftNs(300 * kUs), 0);
  EXPECT_EQ(load.Begin(300 * kUs, 100 * kUs), 400 * kUs);
}

TEST(LcLoadTest, TheShareIsThatOfRecentQueries) {
  LcLoad load;
  for (int i = 0; i < 1000; ++i) {  // a load of 0.5 for a second
    load.Begin(i * kMs, 500 * kUs);
    load.End(i * kMs + 500 * kUs, 500 * kUs);
  }
  EXPECT_NEAR(load.ShareAt(1000 * kMs), 0.5, 0.02);
  EXPECT_LT(load.ShareAt(2000 * kMs), 0.01);
}

TEST(LcLoadTest, AQueryThatWasNotSentIsNoLoad) {
  LcLoad load;
  load.Begin(0, 10 * kMs);
  load.Undo(0, 10 * kMs);
  EXPECT_EQ(load.in_hand(), 0);
  EXPECT_EQ(load.LeftNs(0), 0);
  EXPECT_DOUBLE_EQ(load.ShareAt(0), 0);
}

TEST(LatenessTest, IsAMeanThatNeverShortensAWait) {
  Lateness late;
  EXPECT_EQ(late.AtNs(0), 0);
  for (int i = 0; i < 100; ++i) late.Note(kMs, 160 * kUs);
  EXPECT_NEAR(late.AtNs(kMs), 160e3, 1e3);
  for (int i = 0; i < 200; ++i) late.Note(kMs, -50 * kUs);
  EXPECT_EQ(late.AtNs(kMs), 0);
}

// Otherwise a GPU that got no query would never show that it is no longer late.
TEST(LatenessTest, FadesWhileNothingEnds) {
  Lateness late;
  late.Note(kMs, 16 * kMs);
  EXPECT_DOUBLE_EQ(late.AtNs(kMs), 1e6);
  EXPECT_LT(late.AtNs(101 * kMs), 1e4);
}

TEST(BeLoadTest, TheShareIsMeasuredAndUntilThenWhatLcLeaves) {
  BeLoad load;
  EXPECT_DOUBLE_EQ(load.ShareAt(0, 0.3), 0.7);
  EXPECT_DOUBLE_EQ(load.UntilEndNs(0, 700 * kUs, 0.3), 1e6);
  load.Begin(0, kMs, 0);
  load.Begin(0, kMs, 0);
  load.End(4 * kMs, kMs, 0, kMs);  // a quarter of the speed
  EXPECT_DOUBLE_EQ(load.ShareAt(4 * kMs, 0), 0.25);
  load.End(8 * kMs, kMs, 0, kMs);
  EXPECT_DOUBLE_EQ(load.ShareAt(8 * kMs, 0), 0.25);
}

TEST(BeLoadTest, AGpuThatStopsLosesItsShareBeforeAnythingEnds) {
  BeLoad load;
  load.Begin(0, kMs, 0);
  load.End(kMs, kMs, 0, kMs);
  load.Begin(kMs, kMs, 0);
  EXPECT_DOUBLE_EQ(load.ShareAt(2 * kMs, 0), 1);
  EXPECT_DOUBLE_EQ(load.ShareAt(11 * kMs, 0), 0.1);
  EXPECT_GT(load.ShareAt(int64_t{1} << 60, 0), 0);
}

// Otherwise a GPU that got no item after a busy time would never show that it is free.
TEST(BeLoadTest, AShareOfLongAgoGivesWayToWhatLcLeaves) {
  BeLoad load;
  load.Begin(0, kMs, 0);
  load.End(10 * kMs, kMs, 0, kMs);
  EXPECT_DOUBLE_EQ(load.ShareAt(10 * kMs, 0), 0.1);
  EXPECT_NEAR(load.ShareAt(1010 * kMs, 0), 1, 0.001);
  EXPECT_NEAR(load.ShareAt(1010 * kMs, 0.6), 0.4, 0.001);
}

// A mean would let a query pass an item that stays longer.
TEST(BeLoadTest, ItemsInHandLeaveWithinTheLongestOfTheirStays) {
  BeLoad load;
  EXPECT_EQ(load.LeavesWithinNs(), 0);
  load.Begin(0, kMs, 30 * kUs);
  load.Begin(0, kMs, kMs);
  load.Begin(0, kMs, 0);
  EXPECT_EQ(load.LeavesWithinNs(), kMs);
  load.End(kMs, kMs, kMs, kMs);
  EXPECT_EQ(load.LeavesWithinNs(), 30 * kUs);
  load.End(kMs, kMs, 30 * kUs, kMs);
  load.End(kMs, kMs, 0, kMs);
  EXPECT_EQ(load.LeavesWithinNs(), 0);
}

// The bound of items that come and go in any order is kept without a list of them.
TEST(BeLoadTest, TheBoundOnStaysIsLessThanTwiceTheLongest) {
  BeLoad load;
  std::vector<int64_t> in_hand;
  uint64_t random = 1;
  for (int i = 0; i < 20'000; ++i) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    const uint64_t draw = random >> 33;
    if (in_hand.size() < 64 && draw % 2 == 0) {
      in_hand.push_back(static_cast<int64_t>(draw % 1'000'000));
      load.Begin(i, kMs, in_hand.back());
    } else if (!in_hand.empty()) {
      const size_t index = draw % in_hand.size();
      load.End(i, kMs, in_hand[index], kMs);
      in_hand[index] = in_hand.back();
      in_hand.pop_back();
    }
    const int64_t longest = in_hand.empty() ? 0 : *std::max_element(in_hand.begin(), in_hand.end());
    ASSERT_GE(load.LeavesWithinNs(), longest) << i;
    ASSERT_LE(load.LeavesWithinNs(), 2 * longest) << i;
  }
}

TEST(BeLoadTest, WorkThatFailedIsNoProgress) {
  BeLoad load;
  load.Begin(0, kMs, 0);
  load.End(10, kMs, 0, 0);
  EXPECT_DOUBLE_EQ(load.ShareAt(10, 0.4), 0.6);
}

}  // namespace
}  // namespace gpushare_test
