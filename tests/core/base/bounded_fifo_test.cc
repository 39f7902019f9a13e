// The reserved queue: order, batches, and no allocation after it was made.

#include "src/core/base/containers/bounded_fifo.h"

#include <gtest/gtest.h>

namespace gpushare::core {
namespace {

TEST(BoundedFifoTest, ElementsLeaveInOrderAndInBatches) {
  BoundedFifo<int> fifo(8);
  BoundedList<int, 3> batch;
  for (int i = 0; i < 5; ++i) fifo.Push(i);
  fifo.Take(5, batch);
  ASSERT_EQ(batch.size(), 3);
  EXPECT_EQ(batch[0], 0);
  EXPECT_EQ(batch[2], 2);
  EXPECT_EQ(fifo.size(), 2u);
  fifo.Take(1, batch);
  ASSERT_EQ(batch.size(), 1);
  EXPECT_EQ(batch[0], 3);
  fifo.Take(9, batch);
  ASSERT_EQ(batch.size(), 1);
  EXPECT_EQ(batch[0], 4);
  EXPECT_TRUE(fifo.empty());
  fifo.Take(9, batch);
  EXPECT_TRUE(batch.empty());
}

// A queue that is never quite empty must not lose the room of what was taken.
TEST(BoundedFifoTest, RoomOfTakenElementsIsUsedAgain) {
  constexpr int kCapacity = 4;
  BoundedFifo<int> fifo(kCapacity);
  BoundedList<int, 1> batch;
  int next = 0;
  int taken = 0;
  for (int i = 0; i < kCapacity; ++i) fifo.Push(next++);
  for (int i = 0; i < 100; ++i) {
    fifo.Take(1, batch);
    ASSERT_EQ(batch[0], taken++);
    fifo.Push(next++);
    ASSERT_EQ(fifo.size(), static_cast<size_t>(kCapacity));
  }
}

}  // namespace
}  // namespace gpushare::core
