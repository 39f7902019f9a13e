// The search for the smallest value within an overhead, and the claim batches that it chooses.

#include "src/core/checks/claim_batch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>

#include "src/core/base/overhead_search.h"

namespace gpushare::core {
namespace {

TEST(OverheadSearchTest, FindsTheSmallestOfAFallingOverhead) {
  for (uint32_t most : {1U, 2U, 3U, 7U, 64U, 1000U}) {
    for (uint32_t wanted = 1; wanted <= most; ++wanted) {
      std::set<uint32_t> asked;
      const OverheadChoice choice = FindSmallestWithin(1, most, 0.02, 0, [&](uint32_t value) {
        EXPECT_GE(value, 1U);
        EXPECT_LE(value, most);
        EXPECT_TRUE(asked.insert(value).second) << value << " is measured twice";
        return value >= wanted ? 0.02 : 0.03;
      });
      EXPECT_TRUE(choice.met);
      ASSERT_EQ(choice.value, wanted) << "of " << most;
      EXPECT_EQ(choice.tried, static_cast<int>(asked.size()));
      EXPECT_LE(choice.tried, 21);
    }
  }
}

TEST(OverheadSearchTest, BeginsAtTheLeast) {
  const OverheadChoice choice =
      FindSmallestWithin(5, 40, 0.02, 0, [](uint32_t value) { return 0.5 / value; });
  EXPECT_EQ(choice.value, 25U);
  const OverheadChoice first =
      FindSmallestWithin(5, 40, 0.02, 0, [](uint32_t /*value*/) { return 0; });
  EXPECT_EQ(first.value, 5U);
  EXPECT_EQ(first.tried, 1);
}

TEST(OverheadSearchTest, OutOfReachIsTheSmallestOfThoseThatAreAlike) {
  // 1 of 16 costs 10 %, 4 costs 5.1 %, 8 and 16 cost 5 %.
  const OverheadChoice choice = FindSmallestWithin(1, 16, 0.02, 0.002, [](uint32_t value) {
    return value < 4 ? 0.1 : (value == 4 ? 0.051 : 0.05);
  });
  EXPECT_FALSE(choice.met);
  EXPECT_EQ(choice.value, 4U);
  EXPECT_DOUBLE_EQ(choice.overhead, 0.051);
}

TEST(OverheadSearchTest, LargestRangeEnds) {
  const OverheadChoice choice =
      FindSmallestWithin(1, UINT32_MAX, 0.02, 0, [](uint32_t /*value*/) { return 1.0; });
  EXPECT_FALSE(choice.met);
  EXPECT_EQ(choice.value, 1U);
}

TEST(ClaimBatchTest, ClaimsLastFiveMicrosecondsAndNoLongerThanTheCap) {
  EXPECT_EQ(PredictClaimBatch(0), 1U);
  EXPECT_EQ(PredictClaimBatch(30'000), 1U);
  EXPECT_EQ(PredictClaimBatch(5'000), 1U);
  EXPECT_EQ(PredictClaimBatch(4'999), 2U);
  EXPECT_EQ(PredictClaimBatch(1'000), 5U);
  EXPECT_EQ(PredictClaimBatch(700), 8U);
  // Alike under the slack: 64 claims of 50 ns cost 3.1 %, none within 0.2 % is smaller.
  EXPECT_EQ(PredictClaimBatch(50), kClaimBatchMax);
  for (double ns = 40; ns < 200'000; ns *= 1.07) {
    const double claim = PredictClaimBatch(ns) * ns;
    EXPECT_LE(claim, std::max(kClaimCapNs, ns)) << ns;
    if (ns > 100) {
      EXPECT_GE(claim, 5'000) << ns;
    }
  }
}

TEST(ClaimBatchTest, CapLeavesLongBlockTasksAlone) {
  EXPECT_EQ(ClaimBatchUnderCap(25'001), 1U);
  EXPECT_EQ(ClaimBatchUnderCap(25'000), 2U);
  EXPECT_EQ(ClaimBatchUnderCap(500'000), 1U);
  EXPECT_EQ(ClaimBatchUnderCap(10), kClaimBatchMax);
  // A kernel whose overhead has other reasons does not lose its evictions for it.
  const OverheadChoice choice =
      ChooseClaimBatch(12'000, [](uint32_t batch) { return 0.035 - 0.0005 * batch; });
  EXPECT_FALSE(choice.met);
  EXPECT_EQ(choice.value, 1U);
  const OverheadChoice helped =
      ChooseClaimBatch(12'000, [](uint32_t batch) { return 0.05 / batch; });
  EXPECT_TRUE(helped.met);
  EXPECT_EQ(helped.value, 3U);
}

TEST(ClaimBatchTest, SmallTaskIsSharedByItsWorkers) {
  EXPECT_EQ(ClaimBatchOfLaunch(8, 1055, 1055), 1U);
  EXPECT_EQ(ClaimBatchOfLaunch(8, 8 * 1055 * 3, 1055), 3U);
  EXPECT_EQ(ClaimBatchOfLaunch(8, 1'000'000, 1055), 8U);
  EXPECT_EQ(ClaimBatchOfLaunch(0, 1'000'000, 1055), 1U);
  EXPECT_EQ(ClaimBatchOfLaunch(4, 100, 0), 4U);
  EXPECT_EQ(ClaimBatchOfLaunch(4, 0, 7), 1U);
}

}  // namespace
}  // namespace gpushare::core
