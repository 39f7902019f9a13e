// Sizes that the GPU benchmarks choose: slices, blocks beside others in an SM, pairs.

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "benchmarks/gpu/overlap/beside.h"
#include "benchmarks/gpu/overlap/overlap_pairs.h"
#include "benchmarks/gpu/slice_sizes.h"

namespace gpushare::benchmarks {
namespace {

TEST(SliceSizesTest, SizesAscendUpToTheTask) {
  for (const uint32_t blocks_per_sm : {1U, 3U, 8U}) {
    for (const uint32_t block_tasks : {1U, 132U, 133U, 1056U, 1057U, 2113U, 100'000U}) {
      const SliceSizes sizes = {132, blocks_per_sm, block_tasks};
      uint32_t last = 0;
      for (uint32_t number = 1; number <= sizes.Count(); ++number) {
        EXPECT_GT(sizes.BlockTasks(number), last);
        EXPECT_LT(sizes.BlockTasks(number), block_tasks);
        EXPECT_EQ(sizes.BlockTasks(number) % 132, 0U);
        last = sizes.BlockTasks(number);
      }
      // The next one would be the whole task.
      EXPECT_EQ(sizes.BlockTasks(sizes.Count() + 1), block_tasks) << blocks_per_sm;
    }
  }
}

TEST(SliceSizesTest, RoundsAreWholeOnceAnSmIsFull) {
  const SliceSizes sizes = {132, 8, 1'000'000};
  EXPECT_EQ(sizes.BlocksPerSm(1), 1U);
  EXPECT_EQ(sizes.BlocksPerSm(8), 8U);
  EXPECT_EQ(sizes.BlocksPerSm(9), 16U);
  EXPECT_EQ(sizes.BlocksPerSm(10), 24U);
}

TEST(BesideTest, RoomyProductLeavesRoomForFourWorkers) {
  // MEASURED: 288 threads at 96 registers and 129 KB leave 4 workers of 256 threads at 32.
  const BlockNeeds roomy = {288, 96, 129 * 1024};
  const BlockNeeds worker = {256, 32, 1024};
  EXPECT_EQ(BlocksBeside(roomy, 1, worker, SmHas()), 4U);
  EXPECT_EQ(BlocksBeside(roomy, 0, worker, SmHas()), 8U);
}

TEST(BesideTest, EachResourceMayBeTheOneThatEnds) {
  const SmHas sm;
  // cuBLASLt's form: 384 threads at 168 registers.
  EXPECT_EQ(BlocksBeside({384, 168, 200 * 1024}, 1, {256, 32, 0}, sm), 0U);
  EXPECT_EQ(BlocksBeside({1024, 16, 0}, 1, {1024, 16, 0}, sm), 1U);  // threads
  EXPECT_EQ(BlocksBeside({32, 16, 0}, 30, {32, 16, 0}, sm), 2U);     // blocks
  EXPECT_EQ(BlocksBeside({256, 16, 0}, 1, {256, 64, 0}, sm), 3U);    // registers
  EXPECT_EQ(BlocksBeside({256, 16, 100 * 1024}, 1, {256, 16, 62 * 1024}, sm), 2U);
  EXPECT_EQ(BlocksBeside({256, 16, 100 * 1024}, 3, {256, 16, 0}, sm), 0U);
}

TEST(OverlapPairsTest, DefaultsCoverTheFiveBottlenecksOften) {
  std::map<std::string, int> kinds;
  std::set<std::string> names;
  std::string last;
  std::set<std::string> tensors;
  for (const Pair& pair : DefaultPairs()) {
    ++kinds[BottleneckOf(pair.cuda)];
    EXPECT_TRUE(names.insert(pair.tensor + "+" + pair.cuda).second) << pair.cuda;
    EXPECT_GT(ShapeOf(pair.tensor).m, 0) << pair.tensor;
    // Grouped, so that each product is made once.
    if (pair.tensor != last) {
      EXPECT_TRUE(tensors.insert(pair.tensor).second) << pair.tensor;
    }
    last = pair.tensor;
  }
  EXPECT_GE(names.size(), 24U);
  EXPECT_EQ(kinds.size(), 5U);
  EXPECT_EQ(kinds.count("other"), 0U);
  EXPECT_EQ(CurvePairs().size(), 8U);
}

TEST(OverlapPairsTest, WorkingSetsAreBeyondL2) {
  constexpr double kL2Bytes = 60e6;
  for (const Pair& pair : DefaultPairs()) {
    const ProductShape shape = ShapeOf(pair.tensor);
    EXPECT_GT(2.0 * shape.k * (shape.m + shape.n), 2 * kL2Bytes) << pair.tensor;
  }
}

TEST(OverlapPairsTest, TextIsParsed) {
  std::vector<Pair> pairs;
  ASSERT_TRUE(ParsePairs("a+b,,c+d", &pairs));
  ASSERT_EQ(pairs.size(), 2U);
  EXPECT_EQ(pairs[1].tensor, "c");
  EXPECT_EQ(pairs[1].cuda, "d");
  for (const char* wrong : {"", ",", "a", "a+", "+b", "a+b,c"}) {
    EXPECT_FALSE(ParsePairs(wrong, &pairs)) << wrong;
  }
}

}  // namespace
}  // namespace gpushare::benchmarks
