// Kernelet's comparison (benchmarks/kernelet) with a few instances: what OPT knows, what a random
// schedule may do, and that equal seeds give equal times.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <vector>

#include "benchmarks/kernelet/mixes.h"
#include "benchmarks/kernelet/oracle.h"
#include "benchmarks/kernelet/pair_rig.h"
#include "benchmarks/kernelet/random_pairs.h"
#include "benchmarks/kernelet/schedules.h"
#include "src/core/base/tuning.h"

namespace gpushare::kernelet {
namespace {

const Mix kMix = {"two", {"spmv", "tea"}};
constexpr Load kLoad = {4, 4'000'000, 8, 1};

int64_t RandomNs(uint64_t seed) {
  RandomPairs random(seed);
  return TotalNs(kMix, kLoad, random.Policy(), {});
}

TEST(KerneletComparisonTest, ArrivalsAscendAndEachKernelHasItsInstances) {
  for (const Mix& mix : PaperMixes()) {
    const std::vector<Arrival> arrivals = ArrivalsOf(mix, {50, 4'000'000, 2, 7});
    ASSERT_EQ(arrivals.size(), 50 * mix.kernels.size()) << mix.name;
    std::vector<int> count(mix.kernels.size());
    for (size_t i = 0; i < arrivals.size(); ++i) {
      ++count[arrivals[i].kernel];
      EXPECT_LE(arrivals[i > 0 ? i - 1 : 0].at_ns, arrivals[i].at_ns);
    }
    for (const int of_kernel : count) EXPECT_EQ(of_kernel, 50);
    // Twice what the device can do: half of the work's time alone. Four deviations of the sum.
    const double work_ns = 4e6 * 50 * static_cast<double>(mix.kernels.size());
    EXPECT_NEAR(static_cast<double>(arrivals.back().at_ns) / work_ns, 0.5, 0.3) << mix.name;
  }
}

// sgemm computes and stencil streams; spmv waits for the same bandwidth as stencil.
TEST(KerneletComparisonTest, TheOracleKnowsWhichPairsGain) {
  static_assert(Oracle::kGapNs == core::kSliceGapNs);
  const Oracle oracle({"spmv", "stencil", "sgemm"}, {});
  const auto best = [&](const std::set<std::string>& kernels) {
    double sum = 0;
    for (const auto& [pair, speed] : oracle.speeds()) {
      const std::set<std::string> of_it = {pair.kernel[0], pair.kernel[1]};
      if (of_it == kernels) sum = std::max(sum, speed[0] + speed[1]);
    }
    return sum;
  };
  EXPECT_GT(best({"sgemm", "stencil"}), 1.05);
  EXPECT_GT(best({"sgemm", "stencil"}), best({"spmv", "stencil"}) + 0.1);
}

// A model that expects a gain of every pair runs the two side by side, to their harm.
TEST(KerneletComparisonTest, OptDecidesByTheOraclesSpeeds) {
  const auto all_gain = [](const Runtime& runtime) {
    CostModelTable table;
    table.version = GPUSHARE_COST_MODEL_VERSION;
    table.name = "all gain";
    table.predict_co_resident = [](void* /*user*/, const gpushare_co_resident_side* /*first*/,
                                   const gpushare_co_resident_side* /*second*/,
                                   gpushare_co_resident_prediction* prediction) {
      prediction->speed[0] = prediction->speed[1] = 1;
      prediction->finish[0].duration_ns = prediction->finish[1].duration_ns = 1;
      return gpushare_bool{1};
    };
    EXPECT_TRUE(runtime.SetCostModel(table).ok());
    EXPECT_TRUE(runtime.SetPolicy("kernelet").ok());
  };
  const Mix mix = {"alike", {"mriq", "black_scholes"}};
  const Oracle oracle(mix.kernels, {});
  const auto harmed_ns = static_cast<double>(TotalNs(mix, kLoad, all_gain, {}));
  EXPECT_LT(static_cast<double>(TotalNs(mix, kLoad, oracle.Opt(), {})), 0.9 * harmed_ns);
}

// Which of two kernels comes first decides with how many workers the library asks.
TEST(KerneletComparisonTest, TheOracleAnswersAlsoWhereKernelsComeInAnotherOrder) {
  const Oracle oracle({kMix.kernels[1], kMix.kernels[0]}, {});
  TotalNs(kMix, kLoad, oracle.Opt(), {});
  EXPECT_EQ(oracle.unknown(), 0);
  const Oracle smaller({kMix.kernels[1]}, {});
  TotalNs(kMix, kLoad, smaller.Opt(), {});
  EXPECT_GT(smaller.unknown(), 0);
}

TEST(KerneletComparisonTest, ARandomScheduleFollowsItsSeed) {
  const int64_t first_ns = RandomNs(1);
  EXPECT_EQ(RandomNs(1), first_ns);
  std::set<int64_t> times;
  for (uint64_t seed = 1; seed <= 6; ++seed) times.insert(RandomNs(seed));
  EXPECT_GT(times.size(), 3U) << "seeds choose other ratios";
}

TEST(KerneletComparisonTest, AComparisonIsTheSameOnAnyNumberOfThreads) {
  const Oracle oracle(kMix.kernels, {});
  const Comparison one = Compare(kMix, kLoad, {SchedulerNames(), 1, 4, 1}, &oracle, {});
  const Comparison three = Compare(kMix, kLoad, {SchedulerNames(), 1, 4, 3}, &oracle, {});
  EXPECT_EQ(one.random_ns, three.random_ns);
  EXPECT_TRUE(std::is_sorted(one.random_ns.begin(), one.random_ns.end()));
  EXPECT_EQ(one.total_ns, three.total_ns);
}

TEST(KerneletComparisonTest, EachRoundRunsAllChosenSchedulers) {
  const Comparison comparison = Compare(kMix, kLoad, {{kKernelet, kBase}, 3}, nullptr, {});
  ASSERT_EQ(comparison.total_ns.size(), 2U);
  EXPECT_FALSE(comparison.Has(kOpt));
  for (const auto& [name, total_ns] : comparison.total_ns) {
    EXPECT_EQ(total_ns, std::vector<int64_t>(3, comparison.MedianNs(name))) << name;
  }
  EXPECT_NE(comparison.MedianNs(kKernelet), comparison.MedianNs(kBase));
}

// The neighbour leaves before the next measurement begins.
TEST(KerneletComparisonTest, APairIsMeasuredAgainWithTheSameResult) {
  PairRig rig(kMix.kernels, {});
  const double first_ns = rig.BlockNs({{2, 2}});
  EXPECT_EQ(rig.runtime().Stats().value().tasks_pending, 0);
  EXPECT_GT(rig.BlockNs({{1, 3}}), 1.1 * first_ns);
  EXPECT_NEAR(rig.BlockNs({{2, 2}}), first_ns, 0.01 * first_ns);
}

}  // namespace
}  // namespace gpushare::kernelet
