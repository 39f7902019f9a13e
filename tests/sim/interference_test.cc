// The equations of the interference model, on numbers that can be checked by hand.

#include "src/sim/physics/interference.h"

#include <gtest/gtest.h>

#include <array>

namespace gpushare::sim {
namespace {

TEST(InterferenceTest, AloneNothingSlowsDown) {
  const std::array<SmClient, 1> one = {{{1.0, 1.0, 1.0, 1.0}}};
  EXPECT_EQ(SharedSmFactor(one), 1);
  std::array<MemoryClient, 1> memory = {{{1.0, 1.0, 1.0, 132, 0}}};
  ShareMemory(absl::MakeSpan(memory));
  EXPECT_EQ(memory[0].factor, 1);
}

TEST(InterferenceTest, ComplementaryKernelsDoNotSlowEachOther) {
  const std::array<SmClient, 2> pair = {{{0.4, 1.0, 0, 1}, {0.5, 0, 0.9, 1}}};
  EXPECT_EQ(SharedSmFactor(pair), 1);
}

TEST(InterferenceTest, TheBusiestPipeLimitsAllClients) {
  const std::array<SmClient, 2> pair = {{{0.45, 1.0, 0, 1}, {0.75, 0, 0, 1}}};
  EXPECT_DOUBLE_EQ(SharedSmFactor(pair), 1 / 1.2);
}

TEST(InterferenceTest, CountedKernelsOverlapInPartWhatNoPipeLimits) {
  const std::array<SmClient, 2> pair = {{{0.4, 0, 0, 1}, {0.1, 0.2, 0, 1}}};
  EXPECT_DOUBLE_EQ(SharedSmFactor(pair), 1);
  EXPECT_DOUBLE_EQ(SharedSmFactor(pair, /*counted=*/true), 1 / 1.3);
  const std::array<SmClient, 2> half = {{{0.4, 0, 0, 1}, {0.1, 0.2, 0, 0.5}}};
  EXPECT_DOUBLE_EQ(SharedSmFactor(half, /*counted=*/true), 1 / 1.15);
  const std::array<SmClient, 2> busy = {{{0.9, 0, 0, 1}, {0.8, 0, 0, 1}}};
  EXPECT_DOUBLE_EQ(SharedSmFactor(busy, /*counted=*/true), 1 / 1.7);
}

TEST(InterferenceTest, AFullIssueRateStarvesTheOther) {
  const std::array<SmClient, 2> pair = {{{1.0, 0, 0, 1}, {0.1, 0, 0, 1}}};
  EXPECT_DOUBLE_EQ(SharedSmFactor(pair), 0.5);
}

TEST(InterferenceTest, ShortDramIsSharedByOutstandingRequests) {
  // Decode on 108 SMs with 0.35 requests an SM, beside streaming on 24 SMs.
  std::array<MemoryClient, 2> pair = {{{1.0, 0, 1, 108 * 0.35, 1}, {1.0, 0, 1, 24, 1}}};
  ShareMemory(absl::MakeSpan(pair));
  EXPECT_NEAR(pair[0].factor, 37.8 / 61.8, 1e-9);
  EXPECT_NEAR(pair[1].factor, 24 / 61.8, 1e-9);
}

TEST(InterferenceTest, AClientThatAsksForLessThanItsShareGetsAllOfIt) {
  std::array<MemoryClient, 2> pair = {{{1.0, 0, 1, 100, 1}, {0.1, 0, 0.1, 100, 1}}};
  ShareMemory(absl::MakeSpan(pair));
  EXPECT_DOUBLE_EQ(pair[1].factor, 1);
  EXPECT_NEAR(pair[0].factor, 0.9, 1e-9);
}

TEST(InterferenceTest, L2ContentionHurtsTheMemoryBound) {
  std::array<MemoryClient, 2> pair = {{{0.5, 0.2, 1.0, 80, 1}, {0.05, 0.5, 0.1, 50, 1}}};
  ShareMemory(absl::MakeSpan(pair));
  EXPECT_NEAR(pair[0].factor, 1 / (1 + 0.6 * 1.0 * 0.5), 1e-9);
  EXPECT_NEAR(pair[1].factor, 1 / (1 + 0.6 * 0.1 * 0.2), 1e-9);
}

}  // namespace
}  // namespace gpushare::sim
