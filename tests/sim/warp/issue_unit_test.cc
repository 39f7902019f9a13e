// The issue unit against algorithms 4 and 5 written out with lists, and single rules of them.

#include "src/sim/warp/issue_unit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <tuple>
#include <vector>

#include "src/core/base/random.h"

namespace gpushare::sim::warp {
namespace {

// Algorithms 4 and 5 with sorted lists, in the thesis's words. A warp is its slot.
class Listed {
 public:
  Listed(WarpPolicy policy, IssueRules rules, std::array<int64_t, 2> priorities)
      : policy_(policy), rules_(rules), priorities_(priorities), budget_(priorities) {}

  int Issue(const Pool& pool, uint64_t ready) {
    const std::vector<int> queue = Sort(pool);
    bool nop = true;
    int issued = kNone;
    for (const int warp : queue) {
      if (((ready >> warp) & 1) != 0) {
        greedy_ = pool.id[static_cast<size_t>(warp)];
        greedy_slot_ = warp;
        greedy_group_ = GroupOf(pool, warp);
        issued = warp;
        nop = false;
        break;
      }
      if (rules_.remembers_in_loop) Remember(pool, queue);
    }
    if (!rules_.remembers_in_loop) Remember(pool, queue);
    if (nop && !rules_.keeps_greedy) greedy_ = kNone;
    return issued;
  }

 private:
  static int GroupOf(const Pool& pool, int slot) {
    return static_cast<int>((pool.group[1] >> slot) & 1);
  }

  void Remember(const Pool& pool, const std::vector<int>& queue) {
    if (queue.empty()) return;
    head_ = pool.id[static_cast<size_t>(queue.front())];
    front_ = GroupOf(pool, queue.front());
  }

  static std::vector<int> Warps(const Pool& pool, uint64_t mask) {
    std::vector<int> warps;
    for (int slot = 0; slot < 64; ++slot) {
      if (((mask >> slot) & 1) != 0) warps.push_back(slot);
    }
    std::sort(warps.begin(), warps.end(), [&pool](int a, int b) {
      return pool.id[static_cast<size_t>(a)] < pool.id[static_cast<size_t>(b)];
    });
    return warps;
  }

  std::vector<int> Gto(const Pool& pool, uint64_t mask) const {
    std::vector<int> warps = Warps(pool, mask);
    const auto greedy = std::find_if(warps.begin(), warps.end(), [&](int slot) {
      return pool.id[static_cast<size_t>(slot)] == greedy_;
    });
    if (greedy != warps.end()) std::rotate(warps.begin(), greedy, greedy + 1);
    return warps;
  }

  static std::vector<int> Joined(std::vector<int> a, const std::vector<int>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }

  std::vector<int> Sort(const Pool& pool) {
    if (policy_ == WarpPolicy::kLrr) {
      std::vector<int> warps;
      for (int i = 1; i <= 64; ++i) {
        const int slot = (greedy_slot_ + i) % 64;
        if (((pool.live >> slot) & 1) != 0) warps.push_back(slot);
      }
      return warps;
    }
    const std::array<uint64_t, 2> group = {pool.live & pool.group[0], pool.live & pool.group[1]};
    if (policy_ == WarpPolicy::kGto || group[0] == 0 || group[1] == 0) return Gto(pool, pool.live);
    const int g0 = rules_.fixed_first_group ? 0 : front_;
    const auto a = static_cast<size_t>(g0);
    if (head_ == greedy_) return Joined(Gto(pool, group[a]), Warps(pool, group[1 - a]));
    if (greedy_ != kNone && greedy_group_ == g0) --budget_[a];
    if (budget_[a] > 0) return Joined(Gto(pool, group[a]), Warps(pool, group[1 - a]));
    budget_[a] = priorities_[a];
    return Joined(Warps(pool, group[1 - a]), Warps(pool, group[a]));
  }

  WarpPolicy policy_;
  IssueRules rules_;
  std::array<int64_t, 2> priorities_;
  std::array<int64_t, 2> budget_;
  int64_t greedy_ = kNone;
  int greedy_slot_ = kNone;
  int greedy_group_ = 0;
  int64_t head_ = kNone;
  int front_ = 0;
};

// Warps come and go, and any of them are ready.
class RandomPool {
 public:
  explicit RandomPool(uint64_t seed) : random_(seed) {}
  Pool pool;

  void Change() {
    const auto slot = static_cast<int>(random_.Next() % 64);
    const uint64_t bit = uint64_t{1} << slot;
    if (random_.Next() % 8 != 0) return;
    pool.live ^= bit;
    ++pool.changes;
    pool.group[0] &= ~bit;
    pool.group[1] &= ~bit;
    if ((pool.live & bit) == 0) return;
    pool.group[random_.Next() % 2] |= bit;
    pool.id[static_cast<size_t>(slot)] = next_id_++;
  }
  uint64_t Ready() {
    const uint64_t dense = random_.Next();
    const uint64_t sparse = dense & random_.Next() & random_.Next() & random_.Next();
    return pool.live & (random_.Next() % 2 == 0 ? dense : sparse);
  }

 private:
  core::Random random_;
  int64_t next_id_ = 0;
};

class AgainstLists : public testing::TestWithParam<std::tuple<WarpPolicy, int>> {};

TEST_P(AgainstLists, EveryCycleIssuesTheSameWarp) {
  const auto [policy, bits] = GetParam();
  const IssueRules rules = {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0};
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    const std::array<int64_t, 2> priorities = {1, static_cast<int64_t>(seed % 9)};
    IssueUnit unit(policy, rules, priorities);
    Listed listed(policy, rules, priorities);
    RandomPool warps(seed);
    for (int cycle = 0; cycle < 3000; ++cycle) {
      warps.Change();
      const uint64_t ready = warps.Ready();
      ASSERT_EQ(unit.Issue(warps.pool, ready), listed.Issue(warps.pool, ready))
          << "seed " << seed << ", cycle " << cycle;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, AgainstLists,
                         testing::Combine(testing::Values(WarpPolicy::kLrr, WarpPolicy::kGto,
                                                          WarpPolicy::kRtPaws),
                                          testing::Range(0, 8)));

// Idle cycles change budgets, so skipping them must leave what stepping leaves.
TEST(IssueUnitTest, SkippedCyclesLeaveTheSameStateAsCyclesWithoutAReadyWarp) {
  for (const IssueRules rules : {IssueRules::Printed(), IssueRules::Corrected()}) {
    for (uint64_t seed = 1; seed <= 30; ++seed) {
      IssueUnit skips(WarpPolicy::kRtPaws, rules, {1, 4});
      IssueUnit steps(WarpPolicy::kRtPaws, rules, {1, 4});
      RandomPool warps(seed);
      for (int round = 0; round < 300; ++round) {
        for (int i = 0; i < 16; ++i) warps.Change();
        const auto idle = static_cast<int64_t>((seed * 31 + static_cast<uint64_t>(round)) % 13);
        skips.Idle(warps.pool, idle);
        for (int64_t i = 0; i < idle; ++i) steps.Issue(warps.pool, 0);
        const uint64_t ready = warps.Ready();
        ASSERT_EQ(skips.Issue(warps.pool, ready), steps.Issue(warps.pool, ready));
      }
    }
  }
}

Pool TwoGroups() {
  Pool pool;
  pool.live = 0b1111;
  pool.group = {0b0011, 0b1100};
  for (int i = 0; i < 4; ++i) pool.id[static_cast<size_t>(i)] = i;
  return pool;
}

TEST(IssueUnitTest, RtPawsWithOnePriorityIsGto) {
  Pool pool = TwoGroups();
  pool.group = {0b1111, 0};
  IssueUnit paws(WarpPolicy::kRtPaws, IssueRules::Corrected(), {3, 3});
  EXPECT_EQ(paws.Issue(pool, 0b1100), 2);
  EXPECT_EQ(paws.Issue(pool, 0b1111), 2);  // greedy
  EXPECT_EQ(paws.Issue(pool, 0b1011), 0);  // then the oldest
}

// Corrected: K1's budget of 1 is spent when another of its warps issues for its stalled head.
TEST(IssueUnitTest, ASpentBudgetHandsTheFrontToTheOtherGroup) {
  const Pool pool = TwoGroups();
  IssueUnit paws(WarpPolicy::kRtPaws, IssueRules::Corrected(), {1, 2});
  EXPECT_EQ(paws.Issue(pool, 0b1111), 0);
  EXPECT_EQ(paws.Issue(pool, 0b1110), 1);  // the head stalled
  EXPECT_EQ(paws.Issue(pool, 0b1111), 2);  // K2 stands first
  EXPECT_EQ(paws.Issue(pool, 0b1111), 2);
  EXPECT_EQ(paws.Issue(pool, 0b1011), 3);  // K2's first stall: one of its two is left
  EXPECT_EQ(paws.Issue(pool, 0b1111), 3);
  EXPECT_EQ(paws.Issue(pool, 0b0111), 2);  // its second
  EXPECT_EQ(paws.Issue(pool, 0b1111), 0);
}

TEST(IssueUnitTest, AWarpInTheSlotOfAnEndedOneIsNotGreedy) {
  Pool pool = TwoGroups();
  IssueUnit gto(WarpPolicy::kGto, IssueRules::Corrected(), {1, 1});
  EXPECT_EQ(gto.Issue(pool, 0b1000), 3);
  pool.id[3] = 9;  // another block's warp
  ++pool.changes;
  EXPECT_EQ(gto.Issue(pool, 0b1111), 0);
}

}  // namespace
}  // namespace gpushare::sim::warp
