// Latencies, bandwidths and bounds of an access's way through L1, L2 and DRAM.

#include "src/sim/warp/memory.h"

#include <gtest/gtest.h>

namespace gpushare::sim::warp {
namespace {

constexpr AccessShape kLine = {};
constexpr uint64_t kAddress = uint64_t{1} << 46;

Machine Plain() {
  Machine machine = TitanV();
  machine.l1_latency = 30;
  machine.l2_latency = 200;
  machine.dram_latency = 400;
  machine.l2_bytes_per_cycle = 32;
  machine.dram_bytes_per_cycle = 8;
  machine.outstanding_lines = 64;
  return machine;
}

TEST(MemoryTest, EachLevelAnswersAfterItsOwnLatency) {
  Memory memory(Plain(), 32 << 10);
  // 128 bytes take 4 cycles of L2 and 16 of DRAM.
  const int64_t first = memory.Load(0, kAddress, kLine);
  EXPECT_EQ(first, 4 + 16 + 400);
  EXPECT_EQ(memory.Load(1000, kAddress, kLine), 1030);
  // 64 KB of other lines push it out of L1; L2 has 57 KB, so of both.
  for (int i = 1; i <= 300; ++i) {
    ASSERT_TRUE(memory.CanTake(2000 + 100 * i, 1));
    memory.Load(2000 + 100 * i, kAddress + 128u * static_cast<uint64_t>(i), kLine);
  }
  EXPECT_EQ(memory.Load(100'000, kAddress, kLine), 100'000 + 4 + 200);
  EXPECT_EQ(memory.counts().l1_hits, 1);
}

TEST(MemoryTest, ASecondAccessWaitsForTheLineInFlightAndMovesNoBytes) {
  Memory memory(Plain(), 32 << 10);
  const int64_t first = memory.Load(0, kAddress, kLine);
  const int64_t sectors = memory.counts().dram_sectors;
  EXPECT_EQ(memory.Load(5, kAddress, kLine), first);
  EXPECT_EQ(memory.counts().dram_sectors, sectors);
}

TEST(MemoryTest, ASectorThatTheLineDoesNotHaveIsFetched) {
  Memory memory(Plain(), 32 << 10);
  const AccessShape sector = {.lines = 1, .sectors = 1};
  memory.Load(0, kAddress, sector);
  EXPECT_EQ(memory.counts().dram_sectors, 1);
  EXPECT_EQ(memory.Load(1000, kAddress, sector), 1030);
  EXPECT_GT(memory.Load(1000, kAddress + 32, sector), 1400);
  EXPECT_EQ(memory.counts().dram_sectors, 2);
}

TEST(MemoryTest, AStreamRunsAtTheBandwidthOfDram) {
  Memory memory(Plain(), 32 << 10);
  int64_t cycle = 0;
  int64_t last = 0;
  constexpr int kLines = 2000;
  for (int i = 0; i < kLines; ++i) {
    while (!memory.CanTake(cycle, 1)) cycle = memory.NextRoom(cycle, 1);
    last = memory.Load(cycle, kAddress + 128u * static_cast<uint64_t>(i), kLine);
  }
  EXPECT_NEAR(static_cast<double>(last), kLines * 16.0 + 400, 50);
}

TEST(MemoryTest, NoMoreLinesAreInFlightThanTheMachineHas) {
  Memory memory(Plain(), 32 << 10);
  int64_t cycle = 0;
  int taken = 0;
  for (; memory.CanTake(cycle, 1) && taken < 1000; ++taken) {
    memory.Load(cycle, kAddress + 128u * static_cast<uint64_t>(taken), kLine);
    cycle += 1;
  }
  EXPECT_EQ(taken, 64);
  EXPECT_EQ(memory.NextRoom(cycle, 1), 420);           // the first line's arrival
  EXPECT_EQ(memory.NextRoom(cycle, 3), 420 + 2 * 16);  // the third one's
  EXPECT_TRUE(memory.CanTake(420, 1));
}

TEST(MemoryTest, ScatteredLinesPassTheLoadStoreUnitOneACycle) {
  Memory memory(Plain(), 32 << 10);
  memory.Load(0, kAddress, {.lines = 32, .sectors = 1, .line_stride = 4096});
  EXPECT_FALSE(memory.CanTakeShared(0));
  EXPECT_EQ(memory.NextRoom(0, 1), 32 - 8 + 1);
  EXPECT_TRUE(memory.CanTakeShared(25));
}

TEST(MemoryTest, BankConflictsPassOneAfterTheOther) {
  Memory memory(Plain(), 32 << 10);
  EXPECT_EQ(memory.Shared(10, 1, 20), 30);
  EXPECT_EQ(memory.Shared(10, 4, 20), 11 + 3 + 20);
}

TEST(MemoryTest, AStoreWritesALineToDramOnce) {
  Memory memory(Plain(), 32 << 10);
  memory.Store(0, kAddress, kLine);
  memory.Store(10, kAddress, kLine);
  EXPECT_EQ(memory.counts().dram_sectors, 4);
  EXPECT_EQ(memory.counts().l2_sectors, 8);
}

}  // namespace
}  // namespace gpushare::sim::warp
