// tacker end to end on the simulated H200: a service of single GEMM tasks whose kernel has a fused
// kernel with the BE app's. The pair's curve is the profile's, measured on an H200.

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "tools/gpushare/colocate.h"
#include "tools/gpushare/scenario.h"

namespace gpushare::tool {
namespace {

struct Row {
  double be = 0;  // of its rate alone
  int64_t p99_ns = 0;
};

class FusedTest : public ::testing::Test {
 protected:
  static Scenario Load() {
    const char* scenarios = std::getenv("GPUSHARE_TEST_SCENARIOS");
    Scenario scenario = LoadScenario(std::string(scenarios) + "/fused.json");
    scenario.queries = 200;
    return scenario;
  }
  static Row RunCase(const Scenario& scenario, const std::string& name, const std::string& policy) {
    ColocateOptions options;
    options.device = "sim";
    options.policies = {policy};
    options.cases = {name};
    for (const RunResult& run : Colocate(scenario, options).runs) {
      if (run.policy != policy) continue;
      return {run.be.at(0).rate_of_solo, run.lc.at(0).p99_ns};
    }
    ADD_FAILURE() << "no row of " << policy;
    return {};
  }
};

// The pair saves 25 % of the serial time where both end together. Tacker's published gain over
// Baymax is 18.6 % of BE throughput on the mean of 72 pairs.
TEST_F(FusedTest, TackerGetsMoreBeWorkThanBaymaxBesideTheSameService) {
  const Scenario scenario = Load();
  for (const auto& [name, gain] : {std::pair{"cutcp-0.8", 1.08}, std::pair{"two-0.5", 1.15}}) {
    const Row baymax = RunCase(scenario, name, "baymax");
    const Row tacker = RunCase(scenario, name, "tacker");
    EXPECT_GE(tacker.be, gain * baymax.be) << name;
    EXPECT_LE(tacker.p99_ns, baymax.p99_ns) << name;
  }
}

}  // namespace
}  // namespace gpushare::tool
