// Who may submit a graph, and when nobody does any more.

#include "src/core/state/launches/graph_use.h"

#include <atomic>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace gpushare::core {
namespace {

using Answer = GraphUse::Answer;

constexpr uint32_t kQueue = 0;
constexpr uint32_t kOther = kMaxQueues - 1;

Answer Enter(GraphUse& use, GraphUser user, bool one_user) {
  bool behind_pieces = false;
  return use.Enter(user, one_user, kQueue, behind_pieces);
}

// Whether a whole task of the queue is behind pieces of another one.
bool EnterWhole(GraphUse& use, uint32_t queue) {
  bool behind_pieces = false;
  EXPECT_EQ(use.Enter(GraphUser::kLc, false, queue, behind_pieces), Answer::kEntered);
  return behind_pieces;
}

TEST(GraphUseTest, AGraphOfOneUserStaysWithTheFirst) {
  GraphUse use;
  EXPECT_EQ(Enter(use, GraphUser::kBe, true), Answer::kEntered);
  EXPECT_EQ(Enter(use, GraphUser::kLc, true), Answer::kOtherUser);
  use.Leave();
  EXPECT_EQ(Enter(use, GraphUser::kLc, true), Answer::kOtherUser);
  EXPECT_EQ(Enter(use, GraphUser::kYieldingLc, true), Answer::kOtherUser);
  EXPECT_EQ(Enter(use, GraphUser::kBe, true), Answer::kEntered);
  EXPECT_EQ(use.first_user(), GraphUser::kBe);
}

TEST(GraphUseTest, AWholeGraphIsOfAllUsers) {
  GraphUse use;
  EXPECT_EQ(Enter(use, GraphUser::kBe, false), Answer::kEntered);
  EXPECT_EQ(Enter(use, GraphUser::kLc, false), Answer::kEntered);
}

TEST(GraphUseTest, ARetiredGraphIsTakenOnceAfterItsLastTask) {
  GraphUse use;
  EXPECT_FALSE(use.TakeIdle());
  ASSERT_EQ(Enter(use, GraphUser::kBe, true), Answer::kEntered);
  use.Retire();
  EXPECT_EQ(Enter(use, GraphUser::kBe, true), Answer::kRetired);
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
        while (Enter(use, GraphUser::kBe, true) == Answer::kEntered) {
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

TEST(GraphUseTest, PiecesAreOfOneQueueAndNoOtherHasATask) {
  GraphUse use;
  EXPECT_FALSE(EnterWhole(use, kQueue));
  EXPECT_FALSE(use.EnterInPieces(kOther));
  EXPECT_TRUE(use.EnterInPieces(kQueue)) << "its own queue orders them";
  EXPECT_TRUE(use.InPieces());
  EXPECT_FALSE(EnterWhole(use, kQueue));
  EXPECT_TRUE(EnterWhole(use, kOther));
  EXPECT_FALSE(use.MayEnterInPieces(kQueue))
      << "the other one waits for the first, and for no more";
  EXPECT_FALSE(use.EnterInPieces(kQueue));
  use.LeavePieces(false);
  EXPECT_FALSE(use.InPieces());
  EXPECT_FALSE(EnterWhole(use, kOther));
  for (int i = 0; i < 4; ++i) use.Leave();
  EXPECT_TRUE(use.IsIdle());
  EXPECT_TRUE(use.EnterInPieces(kOther));
  use.LeavePieces(false);
  EXPECT_TRUE(use.IsIdle());
}

TEST(GraphUseTest, AHungTaskStaysAndNothingIsCut) {
  for (const bool in_pieces : {false, true}) {
    GraphUse use;
    if (in_pieces) {
      ASSERT_TRUE(use.EnterInPieces(kQueue));
      use.LeavePieces(true);
    } else {
      EXPECT_FALSE(EnterWhole(use, kQueue));
      use.Hang();
    }
    EXPECT_FALSE(use.InPieces());
    EXPECT_FALSE(use.IsIdle());
    EXPECT_FALSE(use.EnterInPieces(kQueue));
    EXPECT_FALSE(EnterWhole(use, kOther)) << "it waits for nothing";
    use.Retire();
    EXPECT_FALSE(use.TakeIdle());
  }
}

TEST(GraphUseTest, ARetiredGraphTakesNoPieces) {
  GraphUse use;
  ASSERT_TRUE(use.EnterInPieces(kQueue));
  use.Retire();
  EXPECT_FALSE(use.EnterInPieces(kQueue));
  EXPECT_FALSE(use.TakeIdle());
  use.LeavePieces(false);
  EXPECT_TRUE(use.TakeIdle());
}

// Two queues at random: while one is in pieces, the other one has no task that is not behind them.
TEST(GraphUseTest, ThreadsThatCutKeepOthersBehindThem) {
  GraphUse use;
  std::atomic<int> running[2] = {};
  std::vector<std::thread> threads;
  threads.reserve(2);
  for (uint32_t queue = 0; queue < 2; ++queue) {
    threads.emplace_back([&use, &running, queue] {
      for (int i = 0; i < 20'000; ++i) {
        if (i % 2 == 0 && use.EnterInPieces(queue)) {
          running[queue].store(2);
          EXPECT_EQ(running[1 - queue].load(), 0);
          running[queue].store(0);
          use.LeavePieces(false);
          continue;
        }
        const bool behind_pieces = EnterWhole(use, queue);
        while (behind_pieces && use.InPieces()) std::this_thread::yield();
        running[queue].store(1);
        EXPECT_NE(running[1 - queue].load(), 2);
        running[queue].store(0);
        use.Leave();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(use.IsIdle());
}

}  // namespace
}  // namespace gpushare::core
