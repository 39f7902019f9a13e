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
#include "benchmarks/kernelet/pair_schedule.h"
#include "benchmarks/kernelet/ratios.h"
#include "benchmarks/kernelet/schedules.h"

namespace gpushare::kernelet {
namespace {

const Mix kMix = {"two", {"spmv", "tea"}};
constexpr Load kLoad = {4, 4'000'000, 8, 1};

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

TEST(KerneletComparisonTest, EveryRatioFitsAnSmAndNoneIsLeftOut) {
  std::set<std::array<int32_t, 2>> found;
  for (const PairRatio& ratio : RatiosOf({"b", 4}, {"a", 6})) {
    EXPECT_EQ(ratio.kernel, (std::array<std::string, 2>{"a", "b"}));
    EXPECT_LE(ratio.workers[0] / 6.0 + ratio.workers[1] / 4.0, 1.0);
    found.insert(ratio.workers);
  }
  for (int32_t of_a = 1; of_a < 6; ++of_a) {
    for (int32_t of_b = 1; of_a / 6.0 + of_b / 4.0 <= 1; ++of_b) {
      const bool is_covered = std::any_of(found.begin(), found.end(), [&](const auto& workers) {
        return workers[0] >= of_a && workers[1] >= of_b;
      });
      EXPECT_TRUE(is_covered) << of_a << ", " << of_b;
    }
  }
  EXPECT_EQ(RatiosOf({"a", 4}, {"a", 4}).size(), 2U) << "1 and 3, 2 and 2";
  EXPECT_EQ(AllRatios({{"a", 2}, {"b", 2}, {"c", 2}}).size(), 6U) << "pairs with themselves too";
}

// sad computes and stencil streams; spmv waits for the same bandwidth as stencil.
TEST(KerneletComparisonTest, TheOracleKnowsWhichPairsGain) {
  const Oracle oracle({"spmv", "stencil", "sad"}, {});
  const auto best = [&](const std::set<std::string>& kernels) {
    double sum = 0;
    for (const auto& [ratio, speed] : oracle.speeds()) {
      const std::set<std::string> of_it = {ratio.kernel[0], ratio.kernel[1]};
      if (of_it == kernels) sum = std::max(sum, speed[0] + speed[1]);
    }
    return sum;
  };
  EXPECT_GT(best({"sad", "stencil"}), 1.05);
  EXPECT_GT(best({"sad", "stencil"}), best({"spmv", "stencil"}) + 0.1);
}

// Knowledge that expects a gain of every pair runs the two side by side, to their harm.
TEST(KerneletComparisonTest, OptDecidesByWhatWasExecuted) {
  const Mix mix = {"alike", {"mriq", "black_scholes"}};
  std::vector<RatedRatio> all_gain = Unrated(SizesOf(mix.kernels, {}));
  for (RatedRatio& rated : all_gain) rated.speeds = 2;
  PairSchedule harmed(PairSchedule::Choice::kBest, all_gain);
  PairSchedule opt(PairSchedule::Choice::kBest, Oracle(mix.kernels, {}).Rated());
  const auto harmed_ns = static_cast<double>(TotalNs(mix, kLoad, harmed.For(mix.kernels), {}));
  EXPECT_LT(static_cast<double>(TotalNs(mix, kLoad, opt.For(mix.kernels), {})), 0.95 * harmed_ns);
}

TEST(KerneletComparisonTest, ARandomScheduleFollowsItsSeed) {
  const int64_t first_ns = RandomNs(kMix, kLoad, 1, {});
  EXPECT_EQ(RandomNs(kMix, kLoad, 1, {}), first_ns);
  std::set<int64_t> times;
  for (uint64_t seed = 1; seed <= 6; ++seed) times.insert(RandomNs(kMix, kLoad, seed, {}));
  EXPECT_GT(times.size(), 3U) << "seeds choose other ratios";
}

TEST(KerneletComparisonTest, AComparisonIsTheSameOnAnyNumberOfThreads) {
  const Oracle oracle(kMix.kernels, {});
  const Comparison one = Compare(kMix, kLoad, {SchedulerNames(), 1, 4, 2, 1}, &oracle, {});
  const Comparison three = Compare(kMix, kLoad, {SchedulerNames(), 1, 4, 2, 3}, &oracle, {});
  EXPECT_EQ(one.random_ns, three.random_ns);
  EXPECT_TRUE(std::is_sorted(one.random_ns.begin(), one.random_ns.end()));
  EXPECT_EQ(one.total_ns, three.total_ns);
  EXPECT_LT(one.kernelet_beside_random_ns, one.MedianNs(kKernelet)) << "fewer instances";
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
