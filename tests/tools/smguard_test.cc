// SMGuard's experiments on the simulated H200: rounds in which a query comes after the BE kernels,
// and kernels that would leave too late.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <string>

#include "tools/gpushare/colocate/colocate.h"
#include "tools/gpushare/scenario/scenario.h"

namespace gpushare::tool {
namespace {

constexpr int64_t kMs = 1'000'000;

struct Row {
  double be = 0;  // of its rate alone
  double p99_over_alone = 0;
  int64_t mean_ns = 0;
  size_t queries = 0;
};

class SmguardToolTest : public ::testing::Test {
 protected:
  // nn beside one BE kernel.
  static Scenario Load() {
    const char* scenarios = std::getenv("GPUSHARE_TEST_SCENARIOS");
    Scenario scenario = LoadScenario(std::string(scenarios) + "/papers_smguard.json");
    scenario.queries = 100;
    return scenario;
  }
  // Rounds of one BE kernel, which nn comes 1 ms after.
  static Scenario InRounds() {
    Scenario scenario = Load();
    scenario.queries = 10;
    for (LcApp& lc : scenario.lc) {
      lc.arrivals = ArrivalSpec();
      lc.arrivals.kind = ArrivalKind::kAfterBe;
      lc.arrivals.after_ns = kMs;
      lc.arrivals.pause_ns = 5 * kMs;
    }
    for (BeApp& be : scenario.be) be.depth = 1;
    return scenario;
  }
  static Row RunCase(const Scenario& scenario, const std::string& name, const std::string& policy) {
    ColocateOptions options;
    options.device = "sim";
    options.policies = {policy};
    options.cases = {name};
    for (const RunResult& run : Colocate(scenario, options).runs) {
      if (run.policy != policy) continue;
      const LcResult& lc = run.lc.at(0);
      return {run.be.at(0).rate_of_solo, lc.p99_over_alone, std::llround(lc.mean_ns),
              static_cast<size_t>(lc.queries)};
    }
    ADD_FAILURE() << "no row of " << policy;
    return {};
  }
};

// Without priorities nn waits for what is left of md5's 39 ms, and md5 for nothing.
TEST_F(SmguardToolTest, InARoundTheQueryWaitsForTheBeKernelThatIsThere) {
  const Row bare = RunCase(InRounds(), "single-nn-md5", "bare");
  EXPECT_EQ(bare.queries, 10u);
  EXPECT_NEAR(static_cast<double>(bare.mean_ns), 38.7 * kMs, 1.0 * kMs);
  EXPECT_NEAR(bare.be, 1, 0.02) << "its rate counts the rounds alone";
}

TEST_F(SmguardToolTest, InARoundAdaptiveEvictsTheBeKernelAndFinishesIt) {
  const Row adaptive = RunCase(InRounds(), "single-nn-md5", "adaptive");
  EXPECT_LE(adaptive.p99_over_alone, 1.05);
  EXPECT_GT(adaptive.be, 0.9);
}

// Under adaptive without fewer workers an SM they had 0.09 of their rate alone: all workers of
// lava_md take 85 us to leave, and 5 % of nn's latency are 33 us.
TEST_F(SmguardToolTest, AKernelThatLeavesTooLateRunsWithFewerWorkers) {
  for (const char* name : {"single-nn-lava_md", "single-nn-sgemm"}) {
    const Row row = RunCase(Load(), name, "adaptive");
    EXPECT_LE(row.p99_over_alone, 1.05) << name;
    EXPECT_GT(row.be, 0.7) << name;
  }
}

}  // namespace
}  // namespace gpushare::tool
