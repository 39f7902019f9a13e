// Who may submit a graph, and when nobody does any more.

#include "src/core/state/launches/graph_use.h"

#include <atomic>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace gpushare::core {
namespace {

using Answer = GraphUse::Answer;

TEST(GraphUseTest, AGraphOfOneUserStaysWithTheFirst) {
  GraphUse use;
  EXPECT_EQ(use.Enter(GraphUser::kBe, true), Answer::kEntered);
  EXPECT_EQ(use.Enter(GraphUser::kLc, true), Answer::kOtherUser);
  use.Leave();
  EXPECT_EQ(use.Enter(GraphUser::kLc, true), Answer::kOtherUser);
  EXPECT_EQ(use.Enter(GraphUser::kYieldingLc, true), Answer::kOtherUser);
  EXPECT_EQ(use.Enter(GraphUser::kBe, true), Answer::kEntered);
  EXPECT_EQ(use.first_user(), GraphUser::kBe);
}

TEST(GraphUseTest, AWholeGraphIsOfAllUsers) {
  GraphUse use;
  EXPECT_EQ(use.Enter(GraphUser::kBe, false), Answer::kEntered);
  EXPECT_EQ(use.Enter(GraphUser::kLc, false), Answer::kEntered);
}

TEST(GraphUseTest, ARetiredGraphIsTakenOnceAfterItsLastTask) {
  GraphUse use;
  EXPECT_FALSE(use.TakeIdle());
  ASSERT_EQ(use.Enter(GraphUser::kBe, true), Answer::kEntered);
  use.Retire();
  EXPECT_EQ(use.Enter(GraphUser::kBe, true), Answer::kRetired);
  EXPECT_FALSE(use.TakeIdle());
  use.Leave();
  EXPECT_TRUE(use.TakeIdle());
  EXPECT_FALSE(use.TakeIdle());
}

TEST(GraphUseTest, NoTaskEntersAGraphThatIsTaken) {
  for (int round = 0; round < 200; ++round) {
    GraphUse use;
    std::atomic<int> open{0};
    std::atomic<bool> taken{false};
    std::vector<std::thread> threads;
    threads.reserve(2);
    for (int i = 0; i < 2; ++i) {
      threads.emplace_back([&] {
        while (use.Enter(GraphUser::kBe, true) == Answer::kEntered) {
          EXPECT_FALSE(taken.load());
          open.fetch_add(1);
          open.fetch_sub(1);
          use.Leave();
        }
      });
    }
    use.Retire();
    while (!use.TakeIdle()) std::this_thread::yield();
    EXPECT_EQ(open.load(), 0);
    taken.store(true);
    for (std::thread& thread : threads) thread.join();
  }
}

}  // namespace
}  // namespace gpushare::core
