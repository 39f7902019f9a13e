// The part of an SM's memory that blocks need as shared memory.

#include <gpushare/device/shared_memory_split.h>

#include "gtest/gtest.h"

namespace gpushare::device {
namespace {

constexpr size_t kSmBytes = 228 * 1024;  // H100 and H200
constexpr size_t kReservedBytes = 1024;

int Percent(int blocks, size_t block_bytes) {
  return SharedMemorySplitPercent(blocks, block_bytes, kReservedBytes, kSmBytes);
}

TEST(SharedMemorySplit, RoomForEveryBlockAndWhatIsReservedWithIt) {
  EXPECT_EQ(Percent(8, 8240), 32);  // 74,112 bytes are 31.7 %
  EXPECT_EQ(Percent(4, 48), 2);     // 4,288 bytes are 1.8 %
  for (int blocks = 1; blocks <= 32; ++blocks) {
    for (size_t bytes : {size_t{0}, size_t{48}, size_t{4096}, size_t{6000}}) {
      const size_t needed = static_cast<size_t>(blocks) * (bytes + kReservedBytes);
      const auto percent = static_cast<size_t>(Percent(blocks, bytes));
      EXPECT_GE(percent * kSmBytes, 100 * needed) << blocks << " blocks of " << bytes;
      EXPECT_LT((percent - 1) * kSmBytes, 100 * needed) << blocks << " blocks of " << bytes;
    }
  }
}

TEST(SharedMemorySplit, IsAPercentageWhateverIsAsked) {
  EXPECT_EQ(Percent(1, 227 * 1024), 100);
  EXPECT_EQ(Percent(64, 100 * 1024), 100);
  EXPECT_EQ(SharedMemorySplitPercent(1, 0, 0, kSmBytes), 1);
  // Nothing is known: as much as there is.
  EXPECT_EQ(Percent(0, 48), 100);
  EXPECT_EQ(Percent(-1, 48), 100);
  EXPECT_EQ(SharedMemorySplitPercent(8, 48, kReservedBytes, 0), 100);
}

}  // namespace
}  // namespace gpushare::device
