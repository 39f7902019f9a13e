// Rounds: every arrival is in exactly one round, and pooling joins their measurements.

#include "tools/gpushare/colocate/rounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tools/gpushare/base/random.h"

namespace gpushare::tool {
namespace {

LcPlan PlanWith(std::vector<int64_t> arrivals_ns) {
  LcPlan plan;
  plan.arrivals_ns = std::move(arrivals_ns);
  return plan;
}

TEST(RoundsTest, EveryArrivalComesInOneRoundAndInOrder) {
  Random random(7);
  for (int rounds = 1; rounds <= 7; ++rounds) {
    std::vector<int64_t> arrivals_ns;
    int64_t time_ns = 0;
    for (int i = 0; i < 100; ++i) {
      time_ns += static_cast<int64_t>(1e6 * random.Uniform());
      arrivals_ns.push_back(time_ns);
    }
    const std::vector<LcPlan> plans = {PlanWith(arrivals_ns), PlanWith({arrivals_ns[50]})};
    size_t first = 0;
    size_t second = 0;
    for (int round = 0; round < rounds; ++round) {
      const std::vector<LcPlan> parts = RoundOf(plans, round, rounds);
      ASSERT_EQ(parts.size(), 2u);
      EXPECT_TRUE(std::is_sorted(parts[0].arrivals_ns.begin(), parts[0].arrivals_ns.end()));
      for (const int64_t arrival_ns : parts[0].arrivals_ns) {
        EXPECT_GE(arrival_ns, 0);
        EXPECT_LE(arrival_ns, arrivals_ns.back() / rounds + 1);
      }
      first += parts[0].arrivals_ns.size();
      second += parts[1].arrivals_ns.size();
    }
    EXPECT_EQ(first, arrivals_ns.size()) << rounds;
    EXPECT_EQ(second, 1u) << rounds;
  }
}

TEST(RoundsTest, AClosedLoopDividesItsQueriesAndThinksAnew) {
  LcPlan plan;
  plan.closed_queries = 10;
  plan.think_seed = 5;
  int64_t queries = 0;
  std::vector<uint64_t> seeds;
  for (int round = 0; round < 3; ++round) {
    const LcPlan part = RoundOf({plan}, round, 3)[0];
    queries += part.closed_queries;
    seeds.push_back(part.think_seed);
  }
  EXPECT_EQ(queries, 10);
  EXPECT_NE(seeds[0], seeds[1]);
  EXPECT_NE(seeds[1], seeds[2]);
}

TEST(RoundsTest, TheBeginningKeepsAtLeastOneArrival) {
  const std::vector<LcPlan> plans = {PlanWith({10, 20, 30}), PlanWith({500})};
  const std::vector<LcPlan> parts = Beginning(plans, 30, 1);
  EXPECT_EQ(parts[0].arrivals_ns, (std::vector<int64_t>{10, 20}));
  EXPECT_EQ(parts[1].arrivals_ns, (std::vector<int64_t>{500}));
}

TEST(RoundsTest, PoolingJoinsSamplesAndWeighsRatesBySpan) {
  RunOutcome one;
  one.span_ns = 100;
  one.lc = {{{5, 6}}};
  one.be = {{10.0, 3, 1}};
  one.utilisation = 0.5;
  one.realised_load = 0.2;
  one.verified = true;
  one.stats.evictions = 2;
  one.stats.eviction_latency = {2, 100, 300, 400};
  one.stats.prediction_samples = 1;
  one.stats.prediction_error = 0.1;
  one.lc[0].guarantee.tail_credit = 0.5;
  one.lc[0].guarantee.queries_late_for_be = 3;
  one.lc[0].guarantee.jobs = 10;
  one.lc[0].guarantee.deadlines_missed = 1;
  one.lc[0].guarantee.response_ns_max = 7;
  one.be[0].guarantee.held_ns[2] = 70;
  RunOutcome two = one;
  two.lc[0].guarantee.tail_credit = 0.25;
  two.span_ns = 300;
  two.lc[0].latencies_ns = {7};
  two.be[0].work_per_second = 20;
  two.be[0].tasks = 4;
  two.be[0].evictions = 2;
  two.utilisation = 0.9;
  two.stats.eviction_latency = {6, 200, 250, 260};
  two.stats.prediction_samples = 3;
  two.stats.prediction_error = 0.5;
  RunOutcome pooled;
  Pool(one, pooled);
  Pool(two, pooled);
  EXPECT_EQ(pooled.span_ns, 400);
  EXPECT_EQ(pooled.lc[0].latencies_ns, (std::vector<int64_t>{5, 6, 7}));
  EXPECT_DOUBLE_EQ(pooled.be[0].work_per_second, 17.5);
  EXPECT_EQ(pooled.be[0].tasks, 7);
  EXPECT_EQ(pooled.be[0].evictions, 3);
  EXPECT_DOUBLE_EQ(pooled.utilisation, 0.8);
  EXPECT_DOUBLE_EQ(pooled.realised_load, 0.2);
  EXPECT_EQ(pooled.stats.evictions, 4);
  EXPECT_EQ(pooled.stats.eviction_latency.count, 8);
  EXPECT_EQ(pooled.stats.eviction_latency.p50_ns, 175);
  EXPECT_EQ(pooled.stats.eviction_latency.p99_ns, 300);
  EXPECT_DOUBLE_EQ(pooled.stats.prediction_error, 0.4);
  EXPECT_EQ(pooled.lc[0].guarantee.tail_credit, 0.25) << "each round has an account of its own";
  EXPECT_EQ(pooled.lc[0].guarantee.queries_late_for_be, 6);
  EXPECT_EQ(pooled.lc[0].guarantee.jobs, 20);
  EXPECT_EQ(pooled.lc[0].guarantee.deadlines_missed, 2);
  EXPECT_EQ(pooled.lc[0].guarantee.response_ns_max, 7);
  EXPECT_EQ(pooled.be[0].guarantee.held_ns[2], 140);
  EXPECT_TRUE(pooled.verified);
  two.verified = false;
  Pool(two, pooled);
  EXPECT_FALSE(pooled.verified);
}

}  // namespace
}  // namespace gpushare::tool
