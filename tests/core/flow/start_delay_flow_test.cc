// Queries that lose more to BE work than its eviction: adaptive learns it and keeps their bound.

#include <gtest/gtest.h>

#include "tests/core/flow/open_loop.h"

namespace gpushare::core {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kUs = 1'000;
constexpr int kQueries = 6'000;

struct Outcome {
  double p99_over_alone = 0;
  double be = 0;
};

OpenLoop::Service ServiceOf(int64_t p99_alone_ns) {
  return {.load = 0.3, .solo_ns = kMs, .p99_bound = 1.05, .p99_alone_ns = p99_alone_ns};
}

int64_t P99Alone() {
  OpenLoop loop("adaptive", ServiceOf(0));
  loop.Run(kQueries);
  return loop.P99Ns();
}

Outcome Beside(int64_t cold_ns) {
  const int64_t alone_ns = P99Alone();
  OpenLoop loop("adaptive", ServiceOf(alone_ns));
  const int be = loop.AddBe({.duration_ns = 2 * kMs, .block_task_ns = 20 * kUs});
  loop.ColdAfterBe(cold_ns);
  loop.Run(kQueries);
  return {static_cast<double>(loop.P99Ns()) / static_cast<double>(alone_ns), loop.Rate(be)};
}

TEST(StartDelayFlowTest, ALossThatNoPredictionSaysIsLearned) {
  const Outcome warm = Beside(0);
  EXPECT_LE(warm.p99_over_alone, 1.05);
  const Outcome cold = Beside(250 * kUs);
  EXPECT_LE(cold.p99_over_alone, 1.055) << "1.096 if nobody learned it";
  EXPECT_LT(cold.be, warm.be - 0.05);
  EXPECT_GT(cold.be, 0.2);
}

// The bound leaves room for it, so no idle period is kept free of BE work.
TEST(StartDelayFlowTest, ALossWithinTheBudgetCostsNoBeWork) {
  const Outcome warm = Beside(0);
  const Outcome cold = Beside(40 * kUs);
  EXPECT_LE(cold.p99_over_alone, 1.05);
  EXPECT_NEAR(cold.be, warm.be, 0.03);
}

}  // namespace
}  // namespace gpushare::core
