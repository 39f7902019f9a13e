// The simulated device against an H200, under the adaptive policy: rows of a scenario as measured
// (benchmarks/results) and as simulated with the profile that was calibrated on the same kind of
// GPU and fitted to its pairs (tools/fit_profile.py). One number, how much slower decode16 is on a
// partition in place than calibrated, was fitted to one row, decode16-sincos_27us-0.5 of h200_gpu;
// all others are predictions.
//
// A row that the simulator misses stands in the misses of its set with the miss as it is today. It
// must stay there: the test fails when a listed miss gets better or worse by more than
// kListedMissAgrees.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tools/gpushare/colocate/colocate.h"
#include "tools/gpushare/colocate/load_plan.h"
#include "tools/gpushare/scenario/scenario.h"

namespace gpushare::tool {
namespace {

// How close a simulated row comes to the measured one.
constexpr double kP50Share = 0.10;
constexpr double kP99OverAlone = 0.05;
constexpr double kBeRate = 0.05;
constexpr double kListedMissAgrees = 0.02;

// Simulated less measured: LC p50 as a share of the measured one, LC p99 over alone, BE of its rate
// alone.
struct Miss {
  double p50 = 0;
  double p99_over_alone = 0;
  double be = 0;
};

// Rows of one scenario, and the file with what an H200 gave.
struct RowSet {
  std::string scenario;
  std::string results;
  std::map<std::string, Miss> misses;
};

std::ostream& operator<<(std::ostream& out, const RowSet& set) { return out << set.scenario; }

std::vector<RowSet> RowSets() {
  return {
      {"h200_gpu",
       "h200_gpu_colocate",
       {
           // BE by a split of 8 SMs more or less.
           {"chain1-sincos_2700us-0.3", {-0.007, 0.000, -0.054}},
           // Near its bound of 1.03: BE comes back to the LC side more often than on the GPU.
           {"decode16-ffma-0.7", {-0.031, -0.024, 0.069}},
           // The GPU's rows are of release 0.1, which trusted a load sooner, and whose blocking
           // budget was all of what the bound leaves.
           {"decode16-sincos_27us-0.7", {-0.018, -0.019, -0.051}},
       }},
      {"h200_unmet",
       "h200_unmet_neighbours",
       {
           // The GPU's row is above its bound, and nobody knows why (docs/results/services.md).
           {"decode12-spmv-0.5", {0.009, -0.067, 0.012}},
           // The GPU's row used a split up to its whole bound; kBoundShareOfSplit refuses it now.
           {"chain1-cutcp-0.5", {-0.004, -0.014, -0.216}},
       }},
  };
}

struct MeasuredRow {
  std::string case_name;
  double p50_ns = 0;  // 0: only its ratio to alone was kept
  double p50_over_alone = 0;
  double p99_over_alone = 0;
  double be = 0;
  double realised_load = 0;  // 0: not kept
};

struct Measured {
  int64_t queries = 0;
  uint64_t seed = 0;
  std::vector<MeasuredRow> rows;
};

Measured ReadMeasured(const std::string& path) {
  Measured out;
  std::ifstream file(path);
  const nlohmann::json text = nlohmann::json::parse(file, nullptr, false);
  if (text.is_discarded()) return out;
  out.queries = text.at("queries").get<int64_t>();
  out.seed = text.at("seed").get<uint64_t>();
  for (const auto& row : text.at("rows")) {
    if (row.contains("measured")) {  // with the arms of one comparison
      const auto& arm = row.at("measured");
      out.rows.push_back({row.at("case"), 0, arm.at("p50_over_alone"), arm.at("p99_over_alone"),
                          arm.at("be_of_alone"), 0});
    } else if (row.at("policy") == "adaptive") {
      out.rows.push_back({row.at("case"), row.at("p50_ns"), 0, row.at("p99_over_alone"),
                          row.at("be"), row.at("realised_load")});
    }
  }
  return out;
}

Miss MissOf(const RunResult& run, const MeasuredRow& row) {
  const double p50 = row.p50_ns > 0 ? static_cast<double>(run.lc.at(0).p50_ns) / row.p50_ns
                                    : run.lc.at(0).p50_over_alone / row.p50_over_alone;
  return {p50 - 1, run.lc.at(0).p99_over_alone - row.p99_over_alone,
          run.be.at(0).rate_of_solo - row.be};
}

bool IsPredicted(const Miss& miss) {
  return std::abs(miss.p50) <= kP50Share && std::abs(miss.p99_over_alone) <= kP99OverAlone &&
         std::abs(miss.be) <= kBeRate;
}

class H200Gpu : public ::testing::TestWithParam<RowSet> {};

TEST_P(H200Gpu, EveryRowIsPredictedOrListedAsAMiss) {
  const char* scenarios = std::getenv("GPUSHARE_TEST_SCENARIOS");
  const char* results = std::getenv("GPUSHARE_TEST_RESULTS");
  ASSERT_NE(scenarios, nullptr) << "the test needs the folder of the scenarios";
  ASSERT_NE(results, nullptr) << "the test needs the folder of the results";
  const Measured measured = ReadMeasured(std::string(results) + "/" + GetParam().results + ".json");
  ASSERT_FALSE(measured.rows.empty()) << "the folder of the results has no rows to compare";
  Scenario scenario = LoadScenario(std::string(scenarios) + "/" + GetParam().scenario + ".json");
  scenario.queries = measured.queries;
  scenario.seed = measured.seed;
  ColocateOptions options;
  options.device = "sim";
  options.policies = {"adaptive"};
  std::map<std::string, RunResult> simulated;
  for (const RunResult& run : Colocate(scenario, options).runs) {
    if (run.policy == "adaptive") simulated[run.case_name] = run;
  }

  std::map<std::string, Miss> without_row = GetParam().misses;
  for (const MeasuredRow& row : measured.rows) {
    SCOPED_TRACE(row.case_name);
    ASSERT_EQ(simulated.count(row.case_name), 1u);
    const RunResult& run = simulated[row.case_name];
    if (row.realised_load > 0) {
      EXPECT_NEAR(run.realised_load, row.realised_load, 0.005);
    }
    const Miss miss = MissOf(run, row);
    std::printf("%-36s LC p50 %+6.1f %%, p99 over alone %.3f (%+.3f), BE %.3f (%+.3f)\n",
                row.case_name.c_str(), 100 * miss.p50, run.lc.at(0).p99_over_alone,
                miss.p99_over_alone, run.be.at(0).rate_of_solo, miss.be);
    const auto listed = GetParam().misses.find(row.case_name);
    if (listed == GetParam().misses.end()) {
      EXPECT_TRUE(IsPredicted(miss)) << "beyond the tolerances, and not listed";
      continue;
    }
    without_row.erase(row.case_name);
    EXPECT_FALSE(IsPredicted(miss)) << "within the tolerances, and must not be listed";
    EXPECT_NEAR(miss.p50, listed->second.p50, kListedMissAgrees);
    EXPECT_NEAR(miss.p99_over_alone, listed->second.p99_over_alone, kListedMissAgrees);
    EXPECT_NEAR(miss.be, listed->second.be, kListedMissAgrees);
  }
  EXPECT_TRUE(without_row.empty()) << "a listed miss has no row: " << without_row.begin()->first;
}

INSTANTIATE_TEST_SUITE_P(Rows, H200Gpu, ::testing::ValuesIn(RowSets()),
                         [](const auto& row_set) { return row_set.param.scenario; });

}  // namespace
}  // namespace gpushare::tool
