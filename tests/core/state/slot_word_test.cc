// The word of a task slot: its last holder moves the generation on, and no field runs into another.

#include "src/core/state/shared/slot_word.h"

#include <thread>

#include "gtest/gtest.h"
#include "src/core/state/tables.h"

namespace gpushare::core {
namespace {

TEST(SlotWordTest, OnlyTheLastHolderMovesTheGenerationOn) {
  const uint64_t word = FreeWord(7) | kHeldByCaller | kHeldByFlow | 2 * kHeldByWaiter;
  EXPECT_EQ(GenerationOf(word), 7u);
  EXPECT_EQ(WaitersOf(word), 2u);
  uint64_t left = WithoutHolders(word, kHeldByFlow);
  EXPECT_EQ(left, FreeWord(7) | kHeldByCaller | 2 * kHeldByWaiter);
  left = WithoutHolders(left, kHeldByWaiter);
  left = WithoutHolders(left, kHeldByCaller);
  EXPECT_EQ(left, FreeWord(7) | kHeldByWaiter);
  EXPECT_EQ(WithoutHolders(left, kHeldByWaiter), FreeWord(8));
}

TEST(SlotWordTest, ATicketIsValidUntilItsReleaseAndADetachedOneUntilItsEnd) {
  EXPECT_TRUE(IsTicketValid(FreeWord(7) | kHeldByCaller));
  EXPECT_TRUE(IsTicketValid(FreeWord(7) | kDetached | kHeldByFlow));
  EXPECT_FALSE(IsTicketValid(FreeWord(7) | kHeldByFlow | kHeldByWaiter));
  EXPECT_FALSE(IsTicketValid(FreeWord(7)));
}

TEST(SlotWordTest, TheGenerationWrapsAndTheMostWaitersFit) {
  const uint64_t last = FreeWord(kGenerationMask) | kHeldByFlow;
  EXPECT_EQ(WithoutHolders(last, kHeldByFlow), FreeWord(0));
  const uint64_t most = uint64_t{kMaxTasks} * kMaxWaitsPerTask;
  const uint64_t word = (FreeWord(7) | kHeldByCaller | kHeldByFlow) + most * kHeldByWaiter;
  EXPECT_EQ(GenerationOf(word), 7u);
  EXPECT_EQ(WaitersOf(word), most);
}

class HoldersTest : public ::testing::Test {
 protected:
  void SetUp() override { app_ = *tables_.CreateApp({.name = "app", .tasks_max = 1}); }
  // A task in the app's only slot.
  TicketId Accept(uint64_t holders) {
    Task* task = tables_.AllocateTask(*app_);
    if (task == nullptr) return TicketId{};
    task->slot_word.fetch_or(holders);
    return Tables::TicketOf(*task);
  }

  Tables tables_;
  App* app_ = nullptr;
};

TEST_F(HoldersTest, AWaiterKeepsTheSlotOfAReleasedAndFinishedTask) {
  const TicketId ticket = Accept(kHeldByCaller | kHeldByFlow);
  ASSERT_TRUE(tables_.HoldForWaiter(ticket));
  EXPECT_TRUE(tables_.ReleaseTicket(ticket));
  EXPECT_EQ(tables_.FindTicket(ticket), nullptr);
  EXPECT_FALSE(tables_.ReleaseTicket(ticket)) << "released twice";
  EXPECT_FALSE(tables_.HoldForWaiter(ticket)) << "stale";
  Task* task = tables_.FindTask(ticket);
  ASSERT_NE(task, nullptr);
  tables_.DropFinished(*task);
  EXPECT_EQ(tables_.FindTask(ticket), task);
  EXPECT_EQ(tables_.SlotsAwaited(*app_), 1);
  EXPECT_FALSE(Accept(kHeldByFlow)) << "the slot is reused while a task waits for it";
  tables_.DropWaiter(ticket);
  EXPECT_EQ(tables_.FindTask(ticket), nullptr);
  EXPECT_FALSE(Tables::IsSlotOf(*task, ticket));
  EXPECT_EQ(tables_.SlotsAwaited(*app_), 0);
  const TicketId next = Accept(kHeldByFlow | kDetached);
  EXPECT_TRUE(next);
  EXPECT_FALSE(tables_.HoldForWaiter(ticket)) << "the ticket of an earlier task";
  EXPECT_TRUE(tables_.HoldForWaiter(next)) << "a detached task that is not complete";
  tables_.DropFinished(*tables_.FindTask(next));
  EXPECT_FALSE(tables_.HoldForWaiter(next));
}

TEST_F(HoldersTest, NoHoldIsTakenWhileTheAppIsClosed) {
  const TicketId ticket = Accept(kHeldByCaller);
  ASSERT_TRUE(tables_.CloseApp(*app_).ok());
  EXPECT_FALSE(tables_.HoldForWaiter(ticket));
  tables_.ReopenApp(*app_);
  EXPECT_TRUE(tables_.HoldForWaiter(ticket));
}

// Two threads hold and drop while a third one ends the task: the slot is freed once.
TEST_F(HoldersTest, HoldsOfSeveralThreadsFreeTheSlotOnce) {
  for (int i = 0; i < 300; ++i) {
    const TicketId ticket = Accept(kHeldByCaller | kHeldByFlow);
    ASSERT_TRUE(ticket);
    const auto wait = [&] {
      if (tables_.HoldForWaiter(ticket)) tables_.DropWaiter(ticket);
    };
    std::thread first(wait);
    std::thread second(wait);
    tables_.DropFinished(*tables_.FindTask(ticket));
    EXPECT_TRUE(tables_.ReleaseTicket(ticket));
    first.join();
    second.join();
    EXPECT_EQ(tables_.FindTask(ticket), nullptr);
  }
}

}  // namespace
}  // namespace gpushare::core
