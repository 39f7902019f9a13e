// Placement: against trying all, what a bound and memory forbid, moves, and who has no GPU.

#include "src/models/placement/placer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "src/models/placement/assign.h"
#include "src/models/placement/running.h"
#include "tests/models/placement/random_clusters.h"

namespace gpushare::models::placement {
namespace {

using testing::HasSubstr;

constexpr Algorithm kAll[] = {Algorithm::kRandom, Algorithm::kFirstFit, Algorithm::kGreedy,
                              Algorithm::kAssignment};

Placement MustPlace(const Cluster& cluster, const PlaceOptions& options = {}) {
  const PairTable table(cluster.pairs);
  auto placement = Place(cluster, table, options);
  EXPECT_TRUE(placement.ok()) << placement.status();
  return placement.ok() ? *std::move(placement) : Placement();
}

// The LC replicas of a placement, without its BE instances.
State BaseOf(const Problem& problem, const Placement& placement) {
  State state(problem);
  for (int32_t gpu = 0; gpu < problem.gpus(); ++gpu) {
    const int32_t lc = placement.gpus[static_cast<size_t>(gpu)].lc;
    if (lc != kNone) state.PutLc(gpu, lc);
  }
  return state;
}

// What must hold of any placement: each app as often as it is stated, no memory exceeded, and no
// pair that the bound forbids.
void ExpectSound(const Cluster& cluster, const PlaceOptions& options, const Placement& placement) {
  const PairTable table(cluster.pairs);
  const Problem problem(cluster, table, options.valuation);
  State state = BaseOf(problem, placement);
  std::map<std::string, int64_t> count;
  for (int32_t gpu = 0; gpu < problem.gpus(); ++gpu) {
    const GpuLoad& load = placement.gpus[static_cast<size_t>(gpu)];
    if (load.lc != kNone) ++count[cluster.lc[static_cast<size_t>(load.lc)].name];
    for (const int32_t be : load.be) {
      EXPECT_TRUE(state.Fits(gpu, be)) << problem.NameOf(gpu);
      state.Add(gpu, be);
      ++count[cluster.be[static_cast<size_t>(be)].name];
    }
    EXPECT_GE(state.MemoryLeft(gpu), 0);
  }
  for (const Unplaced& app : placement.unplaced) count[app.app] += app.count;
  for (const LcApp& app : cluster.lc) EXPECT_EQ(count[app.name], app.replicas) << app.name;
  for (const BeApp& app : cluster.be) EXPECT_EQ(count[app.name], app.instances) << app.name;
  EXPECT_NEAR(state.Value(), placement.value, 1e-9);
  EXPECT_LE(placement.value, placement.upper_bound + 1e-5);
  if (options.valuation.keep_bounds) {
    EXPECT_EQ(placement.bounds_broken, 0);
  }
}

// One LC app beside which BE app 'b' gets `rate` and costs `p99`.
Cluster OnePair(double p99, double p99_error, double rate) {
  Cluster cluster;
  cluster.gpus = {{"g", 100, 1}};
  cluster.lc = {{.name = "l", .kind = "s", .load = 0.5, .memory_bytes = 10, .p99_bound = 1.05}};
  cluster.be = {{.name = "b", .kind = "k", .memory_bytes = 10}};
  cluster.pairs = {{"s", "k", 0.5, p99, p99_error, rate, 0}};
  return cluster;
}

TEST(PlacerTest, TheAssignmentOfOneInstanceAGpuIsTheBestThereIs) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const Cluster cluster = RandomCluster({}, seed);
    const PlaceOptions options;
    const Placement placement = MustPlace(cluster, options);
    ExpectSound(cluster, options, placement);
    const PairTable table(cluster.pairs);
    const Problem problem(cluster, table, options.valuation);
    const auto best = BestOfAll(problem, BaseOf(problem, placement), {0, 1, 2, 3});
    EXPECT_EQ(placement.be_placed, best.first) << seed;
    EXPECT_NEAR(placement.value, best.second, 1e-5) << seed;
  }
}

// Several instances a GPU are a mean, which no flow has: the assignment is near the best.
TEST(PlacerTest, SeveralInstancesAGpuAreNearTheBest) {
  for (const Together together : {Together::kInTurns, Together::kAtOnce}) {
    double regret = 0;
    double bound = 0;
    int64_t lost = 0;
    for (uint64_t seed = 1; seed <= 60; ++seed) {
      const Cluster cluster =
          RandomCluster({.gpus = 3, .lc = 2, .be = 5, .be_per_gpu = 3, .together = together}, seed);
      const PlaceOptions options;
      const Placement placement = MustPlace(cluster, options);
      ExpectSound(cluster, options, placement);
      const PairTable table(cluster.pairs);
      const Problem problem(cluster, table, options.valuation);
      const auto best = BestOfAll(problem, BaseOf(problem, placement), {0, 1, 2, 3, 4});
      EXPECT_LE(placement.be_placed, best.first);
      lost += best.first - placement.be_placed;
      if (placement.be_placed < best.first) continue;
      EXPECT_LE(placement.value, best.second + 1e-9);
      EXPECT_LE(best.second, placement.upper_bound + 1e-5);
      regret += best.second - placement.value;
      bound += placement.upper_bound - placement.value;
    }
    RecordProperty("lost", static_cast<int>(lost));
    RecordProperty("regret", std::to_string(regret / 60));
    EXPECT_LE(lost, 6);
    EXPECT_LE(regret / 60, 0.15);
    EXPECT_GE(bound, regret);
  }
}

TEST(PlacerTest, EveryAlgorithmIsSoundAndNoneBeatsTheAssignment) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    for (const int32_t per_gpu : {1, 3}) {
      const Cluster cluster =
          RandomCluster({.gpus = 9, .lc = 6, .be = 14, .be_per_gpu = per_gpu}, seed);
      PlaceOptions options;
      options.seed = seed;
      const Placement best = MustPlace(cluster, options);
      for (const Algorithm algorithm : kAll) {
        options.algorithm = algorithm;
        const Placement placement = MustPlace(cluster, options);
        ExpectSound(cluster, options, placement);
        if (per_gpu > 1 && algorithm != Algorithm::kGreedy) continue;
        EXPECT_LE(std::pair(placement.be_placed, placement.value),
                  std::pair(best.be_placed, best.value + 1e-5));
      }
    }
  }
}

TEST(PlacerTest, TheSameSeedGivesTheSamePlacement) {
  const Cluster cluster = RandomCluster({.gpus = 9, .lc = 6, .be = 14, .be_per_gpu = 2}, 3);
  for (const Algorithm algorithm : kAll) {
    PlaceOptions options;
    options.algorithm = algorithm;
    const Placement first = MustPlace(cluster, options);
    const Placement second = MustPlace(cluster, options);
    for (size_t gpu = 0; gpu < first.gpus.size(); ++gpu) {
      EXPECT_EQ(first.gpus[gpu].be, second.gpus[gpu].be);
    }
  }
}

TEST(PlacerTest, TheErrorBarOfAP99CountsAgainstItsBound) {
  EXPECT_EQ(MustPlace(OnePair(1.04, 0.005, 0.5)).be_placed, 1);
  const Placement refused = MustPlace(OnePair(1.04, 0.02, 0.5));
  EXPECT_EQ(refused.be_placed, 0);
  ASSERT_EQ(refused.unplaced.size(), 1U);
  EXPECT_EQ(refused.unplaced[0].reason, "Of 1 GPU, 1 has an LC app whose bound would break.");
  PlaceOptions options;
  options.valuation.error_bars = 0;
  EXPECT_EQ(MustPlace(OnePair(1.04, 0.02, 0.5), options).be_placed, 1);
  options = {};
  options.valuation.keep_bounds = false;
  const Placement broken = MustPlace(OnePair(1.04, 0.02, 0.5), options);
  EXPECT_EQ(broken.be_placed, 1);
  EXPECT_EQ(broken.bounds_broken, 1);
}

TEST(PlacerTest, ATargetIsARatioOfTheP99Alone) {
  Cluster cluster = OnePair(1.4, 0, 0.5);
  cluster.lc[0].p99_bound = 0;
  cluster.lc[0].p99_alone_ns = 1000;
  cluster.lc[0].target_ns = 1500;
  EXPECT_EQ(MustPlace(cluster).be_placed, 1);
  cluster.lc[0].target_ns = 1399;
  EXPECT_EQ(MustPlace(cluster).be_placed, 0);
  // Lost alone: the replica still has its GPU, and no BE beside it.
  cluster.lc[0].target_ns = 900;
  const Placement lost = MustPlace(cluster);
  EXPECT_EQ(lost.lc_placed, 1);
  EXPECT_EQ(lost.be_placed, 0);
  EXPECT_EQ(lost.bounds_broken, 0);
}

TEST(PlacerTest, APairThatNobodyPredictsIsNotAllowed) {
  Cluster cluster = OnePair(1, 0, 0.5);
  cluster.lc[0].load = 0.6;  // above the largest row
  const Placement placement = MustPlace(cluster);
  ASSERT_EQ(placement.unplaced.size(), 1U);
  EXPECT_EQ(placement.unplaced[0].reason,
            "Of 1 GPU, 1 has an LC app beside which it is not predicted.");
}

TEST(PlacerTest, TheRiskPrefersTheSurerPair) {
  Cluster cluster = OnePair(1, 0, 0.50);
  cluster.gpus = {{"g", 100, 2}};
  cluster.lc.push_back({.name = "m", .kind = "t", .load = 0.5, .memory_bytes = 10});
  cluster.pairs = {{"s", "k", 0.5, 1, 0, 0.60, 0.30}, {"t", "k", 0.5, 1, 0, 0.50, 0.01}};
  const auto kind_of = [&](double risk) {
    PlaceOptions options;
    options.valuation.risk = risk;
    const Placement placement = MustPlace(cluster, options);
    for (const GpuLoad& load : placement.gpus) {
      if (!load.be.empty()) return cluster.lc[static_cast<size_t>(load.lc)].kind;
    }
    return std::string();
  };
  EXPECT_EQ(kind_of(0), "s");
  EXPECT_EQ(kind_of(1), "t");
}

TEST(PlacerTest, InTurnsIsTheMeanAndTheWorstP99) {
  Cluster cluster = OnePair(1.02, 0.01, 0.4);
  cluster.be_per_gpu = 2;
  cluster.be.push_back({.name = "c", .kind = "k2", .memory_bytes = 10, .weight = 3});
  cluster.pairs.push_back({"s", "k2", 0.5, 1.03, 0.015, 0.8, 0});
  const Placement turns = MustPlace(cluster);
  EXPECT_EQ(turns.be_placed, 2);
  EXPECT_NEAR(turns.effects[0].be_rate, 0.6, 1e-12);
  EXPECT_NEAR(turns.effects[0].p99, 1.045, 1e-12);
  // At once both p99s add up, to 1.075, which is more than the bound.
  cluster.together = Together::kAtOnce;
  EXPECT_EQ(MustPlace(cluster).be_placed, 1);
  cluster.lc[0].p99_bound = 1.08;
  const Placement once = MustPlace(cluster);
  EXPECT_EQ(once.be_placed, 2);
  EXPECT_NEAR(once.effects[0].be_rate, (0.4 + 3 * 0.8) / 4, 1e-12);
  EXPECT_NEAR(once.effects[0].p99, 1.075, 1e-12);
}

TEST(PlacerTest, FreeGpusAreKeptWhereTheyAreWorthMore) {
  Cluster cluster = OnePair(1, 0, 0.5);
  cluster.gpus = {{"g", 100, 5}};
  cluster.be[0].instances = 5;
  cluster.be_per_gpu = 4;
  PlaceOptions options;
  options.valuation.free_gpu = 0;
  EXPECT_EQ(MustPlace(cluster, options).free_gpus, 0);
  options.valuation.free_gpu = 2;
  const Placement packed = MustPlace(cluster, options);
  EXPECT_EQ(packed.be_placed, 5);
  EXPECT_EQ(packed.free_gpus, 3);
}

TEST(PlacerTest, LcReplicasTakeTheSmallestGpusThatHoldThem) {
  Cluster cluster;
  cluster.gpus = {{"large", 100, 1}, {"small", 50, 1}};
  cluster.lc = {{.name = "a", .kind = "s", .load = 0.5, .memory_bytes = 40},
                {.name = "b", .kind = "s", .load = 0.5, .memory_bytes = 80, .replicas = 2},
                {.name = "c", .kind = "s", .load = 0.5, .memory_bytes = 200}};
  const Placement placement = MustPlace(cluster);
  EXPECT_EQ(placement.gpus[0].lc, 1);
  EXPECT_EQ(placement.gpus[1].lc, 0);
  ASSERT_EQ(placement.unplaced.size(), 2U);
  EXPECT_EQ(placement.unplaced[0].reason,
            "Each of the GPUs with 80 bytes has an LC replica already.");
  EXPECT_EQ(placement.unplaced[1].reason,
            "A replica needs 200 bytes, and the largest GPU has 100.");
}

// A cluster whose placement was the best, and in which LC loads and so all values have changed.
Cluster Changed(const Cluster& cluster, const Placement& placement, uint64_t seed) {
  const PairTable table(cluster.pairs);
  const Problem problem(cluster, table, {});
  Cluster after = cluster;
  for (int32_t gpu = 0; gpu < problem.gpus(); ++gpu) {
    const GpuLoad& load = placement.gpus[static_cast<size_t>(gpu)];
    if (load.lc != kNone) {
      after.running.push_back({problem.NameOf(gpu), cluster.lc[static_cast<size_t>(load.lc)].name});
    }
    for (const int32_t be : load.be) {
      after.running.push_back({problem.NameOf(gpu), cluster.be[static_cast<size_t>(be)].name});
    }
  }
  core::Random random(seed);
  for (PairRow& row : after.pairs) row.be_rate = random.Uniform(0.1, 0.9);
  return after;
}

TEST(PlacerTest, MovesAreBoundedAndMoreOfThemAreNeverWorse) {
  int64_t moved = 0;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    for (const int32_t per_gpu : {1, 2}) {
      Cluster cluster = RandomCluster({.gpus = 8, .lc = 6, .be = 8, .be_per_gpu = per_gpu}, seed);
      cluster.be[7].instances = 0;
      Cluster after = Changed(cluster, MustPlace(cluster), seed + 1000);
      after.be[7].instances = 1;  // arrives
      after.be[0].instances = 0;  // leaves
      double value = -1;
      int64_t placed = -1;
      for (const int64_t moves : {0, 1, 2, 4, 100}) {
        PlaceOptions options;
        options.moves_max = moves;
        const Placement placement = MustPlace(after, options);
        ExpectSound(after, options, placement);
        EXPECT_LE(placement.moved, moves) << seed;
        EXPECT_GE(placement.be_placed, placed);
        if (placement.be_placed == placed) {
          EXPECT_GE(placement.value, value - 1e-5) << seed;
        }
        value = placement.value;
        placed = placement.be_placed;
        moved += placement.moved;
      }
    }
  }
  EXPECT_GT(moved, 50);
}

TEST(PlacerTest, NothingMovesWhereNothingChanged) {
  const Cluster cluster = RandomCluster({.gpus = 8, .lc = 6, .be = 12, .be_per_gpu = 2}, 5);
  Cluster after = Changed(cluster, MustPlace(cluster), 1);
  after.pairs = cluster.pairs;
  PlaceOptions options;
  options.moves_max = 100;
  const Placement placement = MustPlace(after, options);
  EXPECT_EQ(placement.moved, 0);
}

TEST(PlacerTest, AnInstanceThatLostItsPlaceMovesOrIsNamed) {
  Cluster cluster = OnePair(1, 0, 0.5);
  cluster.gpus = {{"g", 100, 2}};
  cluster.running = {{"g:0", "l"}, {"g:0", "b"}};
  EXPECT_EQ(MustPlace(cluster).moved, 0);
  cluster.pairs[0].p99_ratio = 2;
  const Placement stuck = MustPlace(cluster);
  ASSERT_EQ(stuck.unplaced.size(), 1U);
  EXPECT_THAT(stuck.unplaced[0].reason, HasSubstr("It no longer fits where it runs"));
  PlaceOptions options;
  options.moves_max = 1;
  const Placement moved = MustPlace(cluster, options);
  EXPECT_EQ(moved.moved, 1);
  EXPECT_EQ(moved.gpus[1].be, std::vector<int32_t>{0});
}

// Four of app 'b' no longer fit beside 'l', and one arrives; each of five other GPUs has room.
TEST(PlacerTest, AnArrivingInstanceIsNoMove) {
  for (const int64_t moves : {0, 3}) {
    Cluster cluster = OnePair(2, 0, 0.5);
    cluster.gpus = {{"g", 100, 6}};
    cluster.be[0].instances = 5;
    cluster.be_per_gpu = 4;
    cluster.running = {{"g:0", "l"}, {"g:0", "b", 4}};
    PlaceOptions options;
    options.moves_max = moves;
    for (const Algorithm algorithm : kAll) {
      options.algorithm = algorithm;
      const Placement placement = MustPlace(cluster, options);
      ExpectSound(cluster, options, placement);
      EXPECT_EQ(placement.be_placed, moves + 1);
      EXPECT_EQ(placement.moved, moves);
    }
  }
}

// Rows break bounds now, and each app has one instance more.
TEST(PlacerTest, WhoHasNoGpuIsNamedWhereInstancesStopMoveAndArrive) {
  int64_t moved = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Cluster cluster = RandomCluster({.gpus = 8, .lc = 6, .be = 8, .be_per_gpu = 2}, seed);
    Cluster after = Changed(cluster, MustPlace(cluster), seed + 1000);
    for (size_t i = 0; i < after.pairs.size(); i += 2) after.pairs[i].p99_ratio = 2;
    for (BeApp& app : after.be) ++app.instances;
    for (const Algorithm algorithm : kAll) {
      for (const int64_t moves : {0, 1, 2, 100}) {
        PlaceOptions options;
        options.algorithm = algorithm;
        options.moves_max = moves;
        const Placement placement = MustPlace(after, options);
        ExpectSound(after, options, placement);
        EXPECT_LE(placement.moved, moves);
        moved += placement.moved;
        options.explain = false;
        const Placement silent = MustPlace(after, options);
        EXPECT_TRUE(silent.unplaced.empty());
        EXPECT_EQ(silent.value, placement.value);
      }
    }
  }
  EXPECT_GT(moved, 50);
}

// Two of app 'b' run on GPU 0, where none fits any more, and one on GPU 3, where it does. Two are
// new.
TEST(PlacerTest, RunningInstancesTakePlacesBeforeNewOnes) {
  const RunningNow before = {
      .gpus = {{kNone, {0, 0}}, {}, {}, {kNone, {0}}, {}}, .lc_arriving = {}, .be_arriving = {2}};
  const std::vector<std::vector<int32_t>> fits = {{}, {}, {}, {0}, {}};
  const auto moves = [&](const std::vector<GpuLoad>& after, int64_t moves_max) {
    std::vector<std::pair<int32_t, int32_t>> out;
    for (const Move& move : MovesOf(before, ChangesOf(before, fits, after), moves_max)) {
      out.emplace_back(move.from, move.to);
    }
    return out;
  };
  using Pairs = std::vector<std::pair<int32_t, int32_t>>;
  const GpuLoad one = {kNone, {0}};
  EXPECT_EQ(moves({one, one, one, {}, {}}, 0), Pairs());
  // The one that fits where it runs before those that do not.
  EXPECT_EQ(moves({one, one, one, {}, {}}, 1), (Pairs{{3, 1}}));
  EXPECT_EQ(moves({one, one, one, {}, {}}, 9), (Pairs{{3, 1}, {0, 2}}));
  EXPECT_EQ(moves({one, {}, {}, one, one}, 1), (Pairs{{0, 4}}));
  EXPECT_EQ(moves({{kNone, {0, 0}}, one, {}, one, {}}, 9), Pairs());
}

TEST(PlacerTest, AGpuIsFoundByItsName) {
  Cluster cluster;
  cluster.gpus = {{"a", 1, 2}, {"b:1", 1, 3}};
  const PairTable table({});
  const Problem problem(cluster, table, {});
  for (int32_t gpu = 0; gpu < 5; ++gpu) EXPECT_EQ(problem.GpuOf(problem.NameOf(gpu)), gpu);
  for (const char* name : {"", ":", "a", "a:", "a:2", "a:-1", "b:1", "b:1:3", "c:0"}) {
    EXPECT_EQ(problem.GpuOf(name), kNone) << name;
  }
}

TEST(PlacerTest, WhatCannotRunIsAnError) {
  const PairTable table({});
  const auto refused = [&](const Cluster& cluster, const std::string& part) {
    const auto placement = Place(cluster, table, {});
    ASSERT_FALSE(placement.ok()) << part;
    EXPECT_THAT(placement.status().message(), HasSubstr(part));
    EXPECT_EQ(placement.status().message().back(), '.');
  };
  Cluster cluster = OnePair(1, 0, 0.5);
  cluster.running = {{"g:1", "b"}};
  refused(cluster, "there is no such GPU");
  cluster.running = {{"g:0", "nobody"}};
  refused(cluster, "the cluster has no such app; one that leaves has 0 instances.");
  cluster.lc[0].replicas = 2;
  cluster.running = {{"g:0", "l"}, {"g:0", "l"}};
  refused(cluster, "a GPU has one LC replica at most.");
  cluster.lc[0].memory_bytes = 101;
  cluster.running = {{"g:0", "l"}};
  refused(cluster, "it needs 101 bytes there, and 100 are left.");
  refused({}, "The cluster has no GPU");
  const auto options = [&](const PlaceOptions& stated, const std::string& part) {
    const auto placement = Place(OnePair(1, 0, 0.5), table, stated);
    ASSERT_FALSE(placement.ok()) << part;
    EXPECT_THAT(placement.status().message(), HasSubstr(part));
  };
  PlaceOptions bad;
  bad.valuation.risk = -1;
  options(bad, "The risk is -1");
  bad = {};
  bad.moves_max = -1;
  options(bad, "The number of moves is -1");
}

// 20,000 apps of which no two are alike: cut into blocks, within seconds.
// benchmarks/host/placement_benchmark.cc has a million instances of few kinds.
TEST(PlacerTest, ManyAppsThatAreAllDifferentEndSoon) {
  Cluster cluster;
  cluster.gpus = {{"g", 1'000'000, 10'000}};
  for (int i = 0; i < 10'000; ++i) {
    cluster.lc.push_back({.name = "l" + std::to_string(i),
                          .kind = "s" + std::to_string(i % 8),
                          .load = 0.1 + 5e-5 * i,
                          .memory_bytes = 100'000 + 5 * i});
    cluster.be.push_back({.name = "b" + std::to_string(i),
                          .kind = "k" + std::to_string(i % 16),
                          .memory_bytes = 900'000 - 10 * i});
  }
  core::Random random(1);
  for (int s = 0; s < 8; ++s) {
    for (int k = 0; k < 16; ++k) {
      for (const double load : {0.1, 0.7}) {
        cluster.pairs.push_back({"s" + std::to_string(s), "k" + std::to_string(k), load,
                                 random.Uniform(1, 1.06), 0, random.Uniform(0.2, 0.9) - load / 8,
                                 0});
      }
    }
  }
  for (const Algorithm algorithm : kAll) {
    const auto start = std::chrono::steady_clock::now();
    PlaceOptions options;
    options.algorithm = algorithm;
    const Placement placement = MustPlace(cluster, options);
    EXPECT_GT(placement.be_placed, 8'000);
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    RecordProperty("seconds_" + std::to_string(static_cast<int>(algorithm)),
                   std::to_string(seconds));
    EXPECT_LT(seconds, 120);
  }
}

}  // namespace
}  // namespace gpushare::models::placement
