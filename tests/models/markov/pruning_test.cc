// PUR and MUR of the paper's kernels, and how many of their pairs are pruned (tables 4 and 6).

#include "src/models/markov/pruning.h"

#include <array>
#include <cstddef>
#include <cstdlib>

#include "gtest/gtest.h"

namespace gpushare::models::markov {
namespace {

// Table 4, C2050.
constexpr std::array<Utilization, 8> kC2050 = {{{0.0096, 0.1404},
                                                {0.1498, 0.1120},
                                                {0.3464, 0.0030},
                                                {0.3629, 0.1156},
                                                {0.5804, 0.0161},
                                                {0.8539, 0.0002},
                                                {0.8642, 0.0604},
                                                {0.9978, 0.0196}}};

// Table 6: alpha_p is 0.1 to 1.0 over the columns, alpha_m 0.015 to 0.15 over the rows.
constexpr std::array<std::array<int, 10>, 10> kPruned = {{{0, 0, 2, 2, 3, 4, 4, 4, 4, 4},
                                                          {0, 2, 5, 6, 7, 8, 9, 9, 9, 9},
                                                          {0, 3, 7, 8, 9, 10, 11, 11, 11, 11},
                                                          {1, 4, 8, 9, 12, 13, 15, 15, 15, 15},
                                                          {1, 4, 8, 9, 12, 13, 15, 15, 15, 15},
                                                          {1, 4, 8, 9, 12, 13, 15, 15, 16, 16},
                                                          {1, 4, 9, 10, 14, 15, 18, 18, 20, 20},
                                                          {2, 6, 11, 12, 17, 18, 21, 22, 24, 24},
                                                          {2, 6, 11, 13, 17, 19, 22, 23, 25, 26},
                                                          {2, 6, 11, 13, 18, 20, 23, 24, 27, 28}}};

int CountPruned(const PruningThresholds& thresholds) {
  int pruned = 0;
  for (size_t i = 0; i < kC2050.size(); ++i) {
    for (size_t j = i + 1; j < kC2050.size(); ++j) {
      EXPECT_EQ(IsPruned(kC2050[i], kC2050[j], thresholds),
                IsPruned(kC2050[j], kC2050[i], thresholds));
      pruned += IsPruned(kC2050[i], kC2050[j], thresholds) ? 1 : 0;
    }
  }
  return pruned;
}

TEST(MarkovPruningTest, TheDefaultsPruneTenPairsOfTwentyEight) {
  EXPECT_EQ(CountPruned(PruningThresholds{}), 10);
}

TEST(MarkovPruningTest, Table6IsReproducedFromTable4) {
  int equal = 0;
  for (size_t row = 0; row < 10; ++row) {
    for (size_t column = 0; column < 10; ++column) {
      const int pruned = CountPruned(
          {0.1 * static_cast<double>(column + 1), 0.015 * static_cast<double>(row + 1)});
      equal += pruned == kPruned[row][column] ? 1 : 0;
      EXPECT_LE(std::abs(pruned - kPruned[row][column]), 3) << row << ", " << column;
    }
  }
  EXPECT_EQ(equal, 77) << "the others lie at thresholds that table 4 rounds";
}

TEST(MarkovPruningTest, LooseningLeavesAPairWhenAllWerePruned) {
  const std::array<Utilization, 3> alike = {{{0.50, 0.10}, {0.52, 0.10}, {0.50, 0.12}}};
  const PruningThresholds loose = LoosenThresholds(alike, {});
  EXPECT_LT(loose.pur, 0.4);
  EXPECT_FALSE(IsPruned(alike[0], alike[1], loose) && IsPruned(alike[0], alike[2], loose) &&
               IsPruned(alike[1], alike[2], loose));
  EXPECT_DOUBLE_EQ(LoosenThresholds(kC2050, {}).pur, 0.4) << "enough pairs are left";
  const std::array<Utilization, 2> same = {{{0.5, 0.1}, {0.5, 0.1}}};
  EXPECT_FALSE(IsPruned(same[0], same[1], LoosenThresholds(same, {})));
}

TEST(MarkovPruningTest, UtilizationIsTheShareOfThePeak) {
  const Utilization used =
      MakeUtilization({.instructions = 500, .dram_requests = 20, .cycles = 1000}, 2, 0.5);
  EXPECT_DOUBLE_EQ(used.pur, 0.25);
  EXPECT_DOUBLE_EQ(used.mur, 0.04);
  EXPECT_EQ(MakeUtilization({}, 2, 0.5).pur, 0) << "a kernel that has not run";
}

}  // namespace
}  // namespace gpushare::models::markov
