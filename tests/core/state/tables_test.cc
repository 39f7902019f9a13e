// Slots of apps that come and go while other threads release tickets.

#include "src/core/state/tables.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <set>
#include <thread>

#include "gtest/gtest.h"
#include "src/core/base/ids.h"

namespace gpushare::core {
namespace {

constexpr int kTasks = 4;
constexpr int kRounds = 50;

AppOptions Options() {
  AppOptions options = {.name = "app", .tasks_max = kTasks};
  return options;
}

// The free slots of the app, each once.
std::multiset<uint32_t> FreeSlots(Tables& tables, App& app) {
  std::multiset<uint32_t> slots;
  while (const Task* task = tables.AllocateTask(app)) slots.insert(task->slot);
  return slots;
}

// In each round one thread drops the last hold of a slot. As soon as the hold is gone, another
// thread releases the slot's app and creates the next one. The thread sanitizer sees the race;
// without it the threads must meet within nanoseconds.
template <class Drop>
void ExpectEachSlotFreeOnce(uint64_t holder, const Drop& drop) {
  Tables tables;
  App* app = *tables.CreateApp(Options());
  for (int round = 0; round < kRounds; ++round) {
    Task& task = *tables.AllocateTask(*app);
    task.slot_word.fetch_add(holder);
    const TicketId ticket = Tables::TicketOf(task);
    std::thread dropper([&] { drop(tables, ticket); });
    while (HoldersOf(task.slot_word.load(std::memory_order_relaxed)) != 0) {
    }
    ASSERT_TRUE(tables.CloseApp(*app).ok());
    tables.FreeApp(*app);
    app = *tables.CreateApp(Options());
    const std::multiset<uint32_t> slots = FreeSlots(tables, *app);
    dropper.join();
    ASSERT_EQ(slots, (std::multiset<uint32_t>{0, 1, 2, 3})) << "round " << round;
    ASSERT_EQ(tables.AllocateTask(*app), nullptr) << "round " << round << ": a slot came twice";
    ASSERT_TRUE(tables.CloseApp(*app).ok());
    tables.FreeApp(*app);
    app = *tables.CreateApp(Options());
  }
}

TEST(TablesThreadsTest, AReleasedTicketDoesNotFreeTheSlotOfTheNextApp) {
  ExpectEachSlotFreeOnce(kHeldByCaller, [](Tables& tables, TicketId ticket) {
    EXPECT_TRUE(tables.ReleaseTicket(ticket));
  });
}

TEST(TablesThreadsTest, ADroppedWaitDoesNotFreeTheSlotOfTheNextApp) {
  ExpectEachSlotFreeOnce(kHeldByWaiter,
                         [](Tables& tables, TicketId ticket) { tables.DropWaiter(ticket); });
}

// The thread sanitizer sees the race; without it a look-up reads an array by another one's size.
TEST(TablesThreadsTest, AStaleTicketIsLookedUpWhileLargerAppsAreMadeOnItsSlot) {
  Tables tables;
  AppOptions options = Options();
  App* app = *tables.CreateApp(options);
  const TicketId stale{PackSlot({app->slot, kTasks * kRounds - 1, kGenerationMask})};
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    while (!stop.load()) EXPECT_EQ(tables.FindTicket(stale), nullptr);
  });
  for (int round = 0; round < kRounds; ++round) {
    ASSERT_TRUE(tables.CloseApp(*app).ok());
    tables.FreeApp(*app);
    options.tasks_max += kTasks;
    app = *tables.CreateApp(options);
  }
  stop.store(true);
  reader.join();
}

// As a thread between its drop and the return of the slot.
TEST(TablesThreadsTest, AnAppIsFreedWhenNoThreadIsInside) {
  Tables tables;
  App& app = **tables.CreateApp(Options());
  ASSERT_TRUE(tables.CloseApp(app).ok());
  app.submitters.fetch_add(1);
  std::atomic<bool> freed{false};
  std::thread releaser([&] {
    tables.FreeApp(app);
    freed.store(true);
  });
  while (app.id.load() != 0) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(freed.load());
  app.submitters.fetch_sub(1);
  releaser.join();
}

}  // namespace
}  // namespace gpushare::core
