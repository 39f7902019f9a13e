// What a GPU measured stands beside the run's own figures in the table and the report, and nowhere
// else.

#include "tools/gpushare/report/measured.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/report/report_html.h"
#include "tools/gpushare/report/table.h"
#include "tools/gpushare/scenario/scenario.h"

namespace gpushare::tool {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kFirst = R"({"schema_version": 1, "gpu": "GPU A", "driver": "1.2",
  "queries": 3000, "rows": [
    {"case": "c", "policy": "lc_alone", "p50_ns": 500, "p99_over_alone": 1, "be": 0},
    {"case": "c", "policy": "adaptive", "p50_ns": 550, "p99_over_alone": 1.0089, "be": 0.8988},
    {"case": "d", "policy": "adaptive", "p50_ns": 550, "p99_over_alone": 1.2, "be": 0.5}]})";
constexpr const char* kSecond = R"({"schema_version": 1, "gpu": "GPU A", "queries": 1000, "rows": [
    {"case": "c", "policy": "fifo", "p50_over_alone": 420.4, "p99_over_alone": 651.2605,
     "be": 0.9961},
    {"case": "c", "policy": "adaptive", "p99_over_alone": 9, "be": 0.1}]})";

MeasuredResults Both() {
  MeasuredResults results;
  AddMeasured(kFirst, "first.json", results);
  AddMeasured(kSecond, "second.json", results);
  return results;
}

RunResult MakeRun(const std::string& case_name, const std::string& policy, double ratio,
                  double be) {
  RunResult run;
  run.case_name = case_name;
  run.policy = policy;
  run.realised_load = 0.3;
  LcResult app;
  app.app = "lc";
  app.p50_over_alone = ratio - 0.01;
  app.p99_over_alone = ratio;
  app.p99_bound = 1.05;
  app.qos_ns = 1000;
  app.qos_met = ratio <= 1.05;
  run.lc.push_back(app);
  run.be.push_back({"be", be, 1, 1, 0});
  run.be_rate_of_solo = be;
  return run;
}

ColocateResult MakeResult() {
  ColocateResult result;
  result.device.simulated = true;
  result.policies = {"fifo", "adaptive"};
  result.runs = {MakeRun("c", "fifo", 3659, 1), MakeRun("c", "adaptive", 1.012, 0.91),
                 MakeRun("e", "adaptive", 1.5, 0.7)};
  return result;
}

TEST(MeasuredTest, TheFirstFileWins) {
  const MeasuredResults results = Both();
  ASSERT_NE(results.Find("c", "adaptive"), nullptr);
  EXPECT_EQ(results.Find("c", "adaptive")->p99_over_alone, 1.0089);
  EXPECT_EQ(results.Find("c", "adaptive")->queries, 3000);
  ASSERT_NE(results.Find("c", "fifo"), nullptr);
  EXPECT_EQ(results.Find("c", "fifo")->queries, 1000);
  EXPECT_EQ(results.Find("d", "fifo"), nullptr);
}

TEST(MeasuredTest, AMedianOverAloneIsReadOrComesFromTheP50OfLcAlone) {
  const MeasuredResults results = Both();
  EXPECT_EQ(results.Find("c", "fifo")->p50_over_alone, 420.4);
  EXPECT_EQ(results.Find("c", "adaptive")->p50_over_alone, 1.1);
  EXPECT_EQ(results.Find("d", "adaptive")->p50_over_alone, 0) << "no row of LC alone";
}

TEST(MeasuredTest, SaysWhereTheRowsComeFrom) {
  EXPECT_EQ(MeasuredOrigin(Both(), {"fifo", "adaptive"}),
            "Lines 'GPU A' were measured on that GPU, driver 1.2; 3000 queries a row under "
            "adaptive; 1000 queries a row under fifo.");
}

TEST(MeasuredTest, RefusesWhatIsNoResult) {
  MeasuredResults results;
  EXPECT_THROW(AddMeasured("{", "f", results), InputError);
  EXPECT_THROW(AddMeasured(R"({"schema_version": 2})", "f", results), InputError);
  EXPECT_THROW(AddMeasured(R"({"schema_version": 1, "gpu": "A", "queries": 1})", "f", results),
               InputError);
  EXPECT_THROW(AddMeasured(R"({"schema_version": 1, "gpu": "A", "queries": 1, "rows": [
                             {"case": "c", "policy": "fifo", "be": 1}]})",
                           "f", results),
               InputError);
  AddMeasured(kFirst, "f", results);
  EXPECT_THROW(
      AddMeasured(R"({"schema_version": 1, "gpu": "B", "queries": 1, "rows": []})", "f", results),
      InputError);
}

TEST(MeasuredTest, StandsBelowItsCaseInTheTable) {
  const std::string table = FormatTable(Scenario(), MakeResult(), Both());
  EXPECT_THAT(table, HasSubstr("3659    3659! 1.00  1.002   1.012  0.91\n  GPU A "));
  EXPECT_THAT(table, HasSubstr("420     651! 1.00  1.100   1.009  0.90\n"));
  // The GPU did not run case e, and the run has no case d.
  EXPECT_THAT(table, HasSubstr("-  1.490   1.500! 0.70\n\n"));
  EXPECT_THAT(table, Not(HasSubstr("1.200")));
  EXPECT_THAT(FormatTable(Scenario(), MakeResult()), Not(HasSubstr("GPU A")));
}

// A run that keeps every bound must not hide what the GPU missed.
TEST(MeasuredTest, VerdictCountsTheMissesOfBothDevices) {
  MeasuredResults measured = Both();
  measured.rows.push_back({"e", "adaptive", 1, 1.06, 0.5, 3000});
  ColocateResult result = MakeResult();
  result.runs[2] = MakeRun("e", "adaptive", 1.03, 0.7);
  const std::string table = FormatTable(Scenario(), result, measured);
  EXPECT_THAT(table, HasSubstr("QoS kept in 2 of 2 cases"));
  EXPECT_THAT(table, HasSubstr("; GPU A kept its bound in 1 of 2, worst p99 1.060\n"));
  EXPECT_THAT(FormatReport(Scenario(), result, "", measured),
              HasSubstr(" The GPU A kept its bound in <b class=\"bad\">1 of 2</b> of these cases "
                        "(worst: 1.060 x alone"));
  EXPECT_THAT(FormatTable(Scenario(), result), Not(HasSubstr("kept its bound")));
}

TEST(MeasuredTest, StandsBelowItsCaseInTheReport) {
  const std::string page = FormatReport(Scenario(), MakeResult(), "", Both());
  EXPECT_THAT(page, HasSubstr("<td data-label=\"fifo p50\">3659</td>"
                              "<td class=\"bad\" data-label=\"fifo p99\">3659</td>"
                              "<td data-label=\"fifo BE\">1.00</td>"
                              "<td data-label=\"adaptive p50\">1.002</td>"
                              "<td class=\"good\" data-label=\"adaptive p99\">1.012</td>"
                              "<td data-label=\"adaptive BE\">0.91</td>"));
  EXPECT_THAT(page,
              HasSubstr("<tr class=\"measured\"><td class=\"text\" data-label=\"case\">GPU A</td>"
                        "<td data-label=\"bound\"></td><td data-label=\"limit\"></td>"
                        "<td data-label=\"fifo p50\">420</td>"
                        "<td class=\"bad\" data-label=\"fifo p99\">651</td>"
                        "<td data-label=\"fifo BE\">1.00</td>"
                        "<td data-label=\"adaptive p50\">1.100</td>"
                        "<td class=\"good\" data-label=\"adaptive p99\">1.009</td>"
                        "<td data-label=\"adaptive BE\">0.90"));
  EXPECT_THAT(page, HasSubstr("GPU A, adaptive, c: p99 1.009 x alone, BE 0.899"));
  EXPECT_THAT(FormatReport(Scenario(), MakeResult(), ""), Not(HasSubstr("GPU A")));
}

// The demo shows the H200's figures beside its own, so it must run the H200's cases.
TEST(MeasuredTest, TheDemoRunsTheCasesThatTheH200Ran) {
  const char* folder = std::getenv("GPUSHARE_TEST_SCENARIOS");
  ASSERT_NE(folder, nullptr) << "the test needs the folder of the scenarios";
  const Scenario demo = LoadScenario(std::string(folder) + "/demo.json");
  const Scenario h200 = LoadScenario(std::string(folder) + "/h200_gpu.json");
  EXPECT_EQ(demo.profile, h200.profile);
  EXPECT_EQ(demo.seed, h200.seed);
  EXPECT_EQ(demo.queries, h200.queries);
  ASSERT_EQ(demo.cases.size(), h200.cases.size());
  const auto app_text = [](const auto& app) {
    return app.name + " " + app.tasks.at(0).kernel + " " +
           std::to_string(app.tasks.at(0).block_tasks);
  };
  for (size_t i = 0; i < demo.cases.size(); ++i) {
    const Case& one = demo.cases[i];
    const Case& other = h200.cases[i];
    EXPECT_EQ(one.name, other.name);
    EXPECT_EQ(one.load, other.load) << one.name;
    EXPECT_EQ(one.p99_bound, other.p99_bound) << one.name;
    ASSERT_EQ(one.lc.size(), 1u);
    ASSERT_EQ(one.be.size(), 1u);
    const LcApp& lc = demo.lc.at(static_cast<size_t>(one.lc[0]));
    const LcApp& other_lc = h200.lc.at(static_cast<size_t>(other.lc.at(0)));
    EXPECT_EQ(app_text(lc), app_text(other_lc)) << one.name;
    EXPECT_EQ(lc.p99_bound, other_lc.p99_bound) << one.name;
    EXPECT_EQ(app_text(demo.be.at(static_cast<size_t>(one.be[0]))),
              app_text(h200.be.at(static_cast<size_t>(other.be.at(0)))))
        << one.name;
  }
  // Adaptive gets the same hints as on the H200.
  EXPECT_FALSE(ListNamesPolicy(demo.target_policies, "adaptive"));
  EXPECT_FALSE(ListNamesPolicy(demo.reservation_policies, "adaptive"));
}

// Every case of the demo has a figure of the H200.
TEST(MeasuredTest, TheCommittedResultsHaveEveryCaseOfTheDemo) {
  const char* folder = std::getenv("GPUSHARE_TEST_SCENARIOS");
  const char* results = std::getenv("GPUSHARE_TEST_RESULTS");
  ASSERT_NE(folder, nullptr) << "the test needs the folder of the scenarios";
  ASSERT_NE(results, nullptr) << "the test needs the folder of the results";
  const MeasuredResults measured =
      LoadMeasured({std::string(results) + "/h200_gpu_colocate.json",
                    std::string(results) + "/h200_gpu_baselines.json"});
  for (const Case& one : LoadScenario(std::string(folder) + "/demo.json").cases) {
    EXPECT_NE(measured.Find(one.name, "adaptive"), nullptr) << one.name;
  }
  EXPECT_NE(measured.Find("chain1-sincos_27us-0.3", "fifo"), nullptr);
}

}  // namespace
}  // namespace gpushare::tool
