// The main job's promise where the load moves, on the simulated H200: bursts, steps, ramps,
// Markov-modulated rates, days, batches and a heavier model for a while, beside block tasks from 27
// us to 2.7 ms.
//
// The promise: p99 over p99 alone within the bound in every row, and 95 % of the rows of 2.7 ms
// block tasks, one of which lasts longer than the slack of a query. No row is far beyond its
// bound, and BE keeps its share.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "tools/gpushare/colocate/colocate.h"
#include "tools/gpushare/run/metrics.h"
#include "tools/gpushare/scenario/scenario.h"

namespace gpushare::tool {
namespace {

// Kernels whose block tasks last 2.7 ms.
constexpr char kLongBlocks[] = "sincos_2700us";
constexpr double kLongBlocksKept = 0.95;

Scenario Moving(uint64_t seed) {
  const char* scenarios = std::getenv("GPUSHARE_TEST_SCENARIOS");
  if (scenarios == nullptr) throw std::runtime_error("GPUSHARE_TEST_SCENARIOS names no folder.");
  Scenario scenario = LoadScenario(std::string(scenarios) + "/moving.json");
  scenario.seed = seed;
  return scenario;
}

// Rows of these cases under adaptive; of all of them, where there are none.
std::vector<RunResult> Rows(const Scenario& scenario, const std::vector<std::string>& cases) {
  ColocateOptions options;
  options.device = "sim";
  options.policies = {"adaptive"};
  options.cases = cases;
  ColocateResult result = Colocate(scenario, options);
  if (result.stopped) std::rethrow_exception(result.stopped);
  std::erase_if(result.runs, [](const RunResult& run) { return IsReference(run.policy); });
  return result.runs;
}

// Checks the rows and returns their mean share of BE's own rate.
double ExpectKept(const std::vector<RunResult>& rows, uint64_t seed) {
  int long_rows = 0;
  int long_misses = 0;
  double be = 0;
  for (const RunResult& run : rows) {
    SCOPED_TRACE(run.case_name + ", seed " + std::to_string(seed));
    be += run.be.at(0).rate_of_solo / static_cast<double>(rows.size());
    const LcResult& lc = run.lc.at(0);
    const double bound = lc.p99_bound;
    if (bound == 0) {  // an absolute target
      EXPECT_GT(lc.target_ns, 0);
      EXPECT_LE(lc.p99_ns, lc.target_ns);
      continue;
    }
    EXPECT_LE(lc.p99_over_alone, bound + 0.1 * (bound - 1) + 0.03);
    if (run.be.at(0).app == kLongBlocks) {
      ++long_rows;
      long_misses += lc.p99_over_alone > bound ? 1 : 0;
    } else {
      EXPECT_LE(lc.p99_over_alone, bound);
    }
  }
  EXPECT_LE(long_misses, (1 - kLongBlocksKept) * long_rows);
  return be;
}

class MovingLoads : public ::testing::TestWithParam<uint64_t> {};

TEST_P(MovingLoads, EveryRowKeepsItsBoundAndBeKeepsItsShare) {
  const std::vector<RunResult> rows = Rows(Moving(GetParam()), {});
  ASSERT_EQ(rows.size(), 53u);
  EXPECT_GE(ExpectKept(rows, GetParam()), 0.78);
}

INSTANTIATE_TEST_SUITE_P(Seeds, MovingLoads, ::testing::Values(1, 2, 3));

// What each change is tested with: rows that a rule by the mean load
// misses, and a target.
TEST(MovingLoadsSample, EachKindOfMovementKeepsItsBound) {
  const std::vector<std::string> cases = {"chain1-bursts_0.1s-sincos_27us-bound_2",
                                          "chain1-step_5-sincos_27us-bound_3",
                                          "chain1-step_3-target-sincos_27us",
                                          "chain1-swap_3-cp-bound_1.2",
                                          "chain1-step_2.3-4_queues-sincos_27us-bound_1.05",
                                          "decode12-ramp-cp-bound_2",
                                          "decode12-mmpp_4-cp-bound_1.5",
                                          "chain1-diurnal-sincos_267us-bound_3"};
  const std::vector<RunResult> rows = Rows(Moving(1), cases);
  ASSERT_EQ(rows.size(), cases.size());
  EXPECT_GE(ExpectKept(rows, 1), 0.80);
}

}  // namespace
}  // namespace gpushare::tool
