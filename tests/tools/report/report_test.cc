// The report stands alone, says that it is simulated, escapes what it shows; the table and
// result.json hold what the run yielded.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/tools/report/page_check.h"
#include "tools/gpushare/base/text.h"
#include "tools/gpushare/profile/evaluation_report.h"
#include "tools/gpushare/report/report_html.h"
#include "tools/gpushare/report/result.h"
#include "tools/gpushare/report/svg_plot.h"
#include "tools/gpushare/report/table.h"
#include "tools/gpushare/report/verdict.h"

namespace gpushare::tool {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

RunResult MakeRun(const std::string& policy, double p99_over_alone, double be_rate) {
  RunResult run;
  run.case_name = "case<1>";
  run.policy = policy;
  run.load = 0.3;
  run.realised_load = 0.31;
  std::vector<int64_t> samples;
  for (int64_t i = 1; i <= 1000; ++i) {
    samples.push_back(
        static_cast<int64_t>(static_cast<double>(600'000 + 1000 * i) * p99_over_alone));
  }
  LcResult app = SummariseLatencies("lc&app", samples);
  app.p50_over_alone = 1.5 * p99_over_alone;
  app.p99_over_alone = p99_over_alone;
  app.mean_over_alone = p99_over_alone;
  app.p99_bound = 1.05;
  app.qos_ns = 1'700'000;
  app.qos_met = p99_over_alone <= 1.05;
  run.lc.push_back(app);
  if (be_rate > 0) run.be.push_back({"be", be_rate, 1e6, 10, 3});
  FillThroughput(run);
  return run;
}

ColocateResult MakeResult() {
  ColocateResult result;
  result.device.name = "sim";
  result.device.profile = "h200";
  result.device.simulated = true;
  result.device.sm_count = 132;
  result.tier = "kernel";
  result.seed = 7;
  result.policies = {"fifo", "adaptive"};
  result.runs = {MakeRun(kLcAlone, 1, 0), MakeRun("fifo", 40, 0.99),
                 MakeRun("adaptive", 1.02, 0.68)};
  return result;
}

Scenario MakeScenario() {
  Scenario scenario;
  scenario.name = "made_up";
  scenario.description = "<script>alert('no')</script>";
  return scenario;
}

TEST(ReportTest, NeedsNoNetworkAndNoOtherFile) {
  std::string page = FormatReport(MakeScenario(), MakeResult(), "");
  EXPECT_THAT(page, Not(HasSubstr("http://")));
  EXPECT_THAT(page, Not(HasSubstr("https://")));
  EXPECT_THAT(page, Not(HasSubstr("<link")));
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(page, Not(HasSubstr(" src=")));
  EXPECT_THAT(page, Not(HasSubstr("@import")));
  EXPECT_THAT(page, Not(HasSubstr("url(")));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
}

TEST(ReportTest, SaysSimulatedAndGivesTheVerdictFirst) {
  const std::string page = FormatReport(MakeScenario(), MakeResult(), "");
  EXPECT_THAT(page, HasSubstr("SIMULATED"));
  EXPECT_LT(page.find("<h2>Verdict"), page.find("<h2>Latency against"));
  EXPECT_THAT(page, HasSubstr("Under <b>adaptive</b>"));
  EXPECT_THAT(page, HasSubstr("time sharing"));
  ColocateResult real = MakeResult();
  real.device.simulated = false;
  EXPECT_THAT(FormatReport(MakeScenario(), real, ""), Not(HasSubstr("SIMULATED")));
}

TEST(ReportTest, EscapesNamesAndText) {
  const std::string page = FormatReport(MakeScenario(), MakeResult(), "");
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(page, Not(HasSubstr("case<1>")));
  EXPECT_THAT(page, HasSubstr("case&lt;1&gt;"));
  EXPECT_THAT(page, HasSubstr("lc&amp;app"));
}

TEST(ReportTest, ANarrowScreenKnowsTheColumnOfEachCell) {
  const std::string page = FormatReport(MakeScenario(), MakeResult(), "");
  EXPECT_THAT(page, HasSubstr("data-label=\"worst p99 over alone\""));
  EXPECT_THAT(page, HasSubstr("data-label=\"adaptive p99\""));
  EXPECT_THAT(page, HasSubstr("data-label=\"eviction p99\""));
  EXPECT_THAT(page, HasSubstr(".stack td:not(:first-child)::before"));
  // Every table but the manifest, whose two columns fit, stacks.
  for (size_t at = 0; (at = page.find("<table", at)) != std::string::npos; ++at) {
    const std::string tag = page.substr(at, page.find('>', at) - at);
    EXPECT_TRUE(tag.rfind("<table class=\"stack", 0) == 0 || tag == "<table class=\"manifest\"")
        << tag;
  }
}

TEST(ReportTest, APartialSetSaysSoAndNamesWhatIsMissing) {
  ColocateResult result = MakeResult();
  result.stopped = std::make_exception_ptr(std::runtime_error("interrupted"));
  result.cases_finished = 1;
  result.missing_cases = {"second"};
  const std::string page = FormatReport(MakeScenario(), result, "");
  EXPECT_THAT(page, HasSubstr("PARTIAL"));
  EXPECT_THAT(page, HasSubstr("1 of 2 cases are finished. Missing: &#39;second&#39;"));
  EXPECT_THAT(FormatReport(MakeScenario(), MakeResult(), ""), Not(HasSubstr("PARTIAL")));
}

TEST(ReportTest, TagsAreBalanced) {
  const std::string page = FormatReport(MakeScenario(), MakeResult(), "");
  for (const char* tag : {"svg", "table", "tr", "td", "section", "div", "g", "select", "main"}) {
    size_t opened = 0;
    size_t closed = 0;
    for (size_t at = 0; (at = page.find(std::string("<") + tag, at)) != std::string::npos; ++at) {
      const char after = page[at + 1 + std::string(tag).size()];
      opened += after == '>' || after == ' ';
    }
    const std::string end = std::string("</") + tag + ">";
    for (size_t at = 0; (at = page.find(end, at)) != std::string::npos; ++at) ++closed;
    EXPECT_EQ(opened, closed) << tag;
    EXPECT_GT(opened, 0u) << tag;
  }
  EXPECT_THAT(page, Not(HasSubstr("nan")));
  EXPECT_THAT(page, Not(HasSubstr("inf\"")));
}

TEST(ReportTest, SaysForEachAppAndPolicyWhatWasPromisedAndGot) {
  ColocateResult result = MakeResult();
  LcResult& lc = result.runs[2].lc[0];
  lc.p50_bound = 1.1;
  lc.violation_share = 0.004;
  lc.tail_credit = -2.5;
  lc.queries_late_for_be = 17;
  result.runs[2].be[0].held = {{GPUSHARE_REASON_HOLD_BLOCKING, 12'000'000},
                               {GPUSHARE_REASON_HOLD_LC_ACTIVE, 3'000}};
  const std::string page = FormatReport(MakeScenario(), result, "");
  const std::string tables = page.substr(page.find("<h3>Guarantees</h3>"));
  EXPECT_THAT(tables, HasSubstr(">p99 within 1.05 x alone, median within 1.1 x alone<"));
  EXPECT_THAT(tables, HasSubstr("class=\"bad\" data-label=\"p50 over alone\">1.530<"));
  EXPECT_THAT(tables, HasSubstr("class=\"good\" data-label=\"p99 over alone\">1.020<"));
  EXPECT_THAT(tables, HasSubstr("data-label=\"beyond the bound\">0.40 %<"));
  EXPECT_THAT(tables, HasSubstr("data-label=\"tail account\">-2.50<"));
  EXPECT_THAT(tables, HasSubstr("data-label=\"late for BE\">17<"));
  EXPECT_THAT(tables, HasSubstr(">12.0 ms hold_blocking, 3.00 us hold_lc_active<"));
  EXPECT_THAT(tables, Not(HasSubstr(">lc_alone</td>"))) << "a reference is promised nothing";
}

TEST(ReportTest, ARowWithoutTheLibraryHasNoTailAccount) {
  ColocateResult result = MakeResult();
  result.runs[1].policy = "plain_streams";
  const std::string page = FormatReport(MakeScenario(), result, "");
  const std::string row = page.substr(page.find("<h3>Guarantees</h3>"));
  const size_t at = row.find("data-label=\"tail account\">");
  EXPECT_EQ(row.substr(at, 30), "data-label=\"tail account\">-</t");
}

TEST(VerdictTest, CountsCasesWhereEveryLcAppKeptItsLine) {
  const std::vector<PolicyVerdict> verdicts = JudgePolicies(MakeResult());
  ASSERT_EQ(verdicts.size(), 2u);
  EXPECT_EQ(verdicts[0].cases_met, 0);
  EXPECT_EQ(verdicts[1].cases_met, 1);
  EXPECT_EQ(verdicts[1].cases_kept, 1);
  EXPECT_NEAR(verdicts[1].gain_when_kept_mean, 0.31 + 0.68 - 1, 1e-12);
}

// A policy that breaks every bound gives BE the most, and must not look like the winner.
TEST(VerdictTest, WorkOverTimeSharingCountsOnlyWhereQosWasKept) {
  const std::vector<PolicyVerdict> verdicts = JudgePolicies(MakeResult());
  EXPECT_EQ(verdicts[0].cases_kept, 0);
  EXPECT_EQ(verdicts[0].gain_when_kept_mean, 0);
  const std::string page = FormatReport(MakeScenario(), MakeResult(), "");
  EXPECT_THAT(page, HasSubstr("data-label=\"work over time sharing, where QoS was kept\">-<"));
  EXPECT_THAT(page, HasSubstr("where QoS was kept\">-0.010<"));
}

TEST(VerdictTest, TooFewQueriesForAP99AreNamed) {
  ColocateResult result = MakeResult();
  EXPECT_EQ(FewQueriesText(result), "");
  result.runs[2].lc[0].queries = 2;
  EXPECT_THAT(FewQueriesText(result), HasSubstr("1 of 2 runs"));
  EXPECT_THAT(FewQueriesText(result), HasSubstr("fewer than 100 queries (the least: 2)"));
  EXPECT_THAT(FormatTable(MakeScenario(), result), HasSubstr("it is the slowest query"));
  EXPECT_THAT(FormatReport(MakeScenario(), result, ""), HasSubstr("it is the slowest query"));
}

// 17 of 17 of a simulated device says nothing of the GPU that missed three.
TEST(VerdictTest, BoundsKeptAreCountedOnBothDevices) {
  MeasuredResults measured;
  measured.gpu = "NVIDIA H200";
  measured.rows = {{"case<1>", "adaptive", 1.0, 1.07, 0.6, 3000}};
  const std::string page = FormatReport(MakeScenario(), MakeResult(), "", measured);
  EXPECT_THAT(page, HasSubstr("colspan=\"6\">simulated</th>"));
  EXPECT_THAT(page, HasSubstr("class=\"good\" data-label=\"simulated QoS kept\">1 of 1<"));
  EXPECT_THAT(page, HasSubstr("class=\"bad\" data-label=\"NVIDIA H200 QoS kept\">0 of 1<"));
  EXPECT_THAT(page, HasSubstr("data-label=\"NVIDIA H200 worst p99 over alone\">1.070<"));
  EXPECT_THAT(FormatTable(MakeScenario(), MakeResult(), measured),
              HasSubstr("NVIDIA H200 kept its bound in 0 of 1, worst p99 1.070"));
}

TEST(TableTest, MarksTheMissAndStampsTheSimulation) {
  const std::string table = FormatTable(MakeScenario(), MakeResult());
  EXPECT_THAT(table, HasSubstr("SIMULATED"));
  EXPECT_THAT(table, HasSubstr("40.000!"));
  EXPECT_THAT(table, HasSubstr("1.020 "));
}

// BE may keep the p99 and still move the median, so no table shows one without the other.
TEST(TableTest, EveryTableOfLatenciesHasTheMedianBesideTheP99) {
  const std::string table = FormatTable(MakeScenario(), MakeResult());
  EXPECT_THAT(table, HasSubstr("LC p50  x alone     LC p99  x alone"));
  EXPECT_THAT(table, HasSubstr("1.530    1.62 ms    1.020 ")) << "the row of the case";
  EXPECT_THAT(table, HasSubstr("1.530   1.020  0.68")) << "all cases";
  EXPECT_THAT(table, HasSubstr("worst p50 1.530 and p99 1.020 x alone")) << "over all cases";
  const std::string page = FormatReport(MakeScenario(), MakeResult(), "");
  EXPECT_THAT(page, HasSubstr("data-label=\"worst p50 over alone\">1.530<"));
  EXPECT_THAT(page, HasSubstr("data-label=\"adaptive p50\">1.530<"));
  EXPECT_THAT(page, HasSubstr("data-label=\"adaptive p99\">1.020<"));
  EXPECT_THAT(page, HasSubstr("data-label=\"adaptive BE\">0.68<"));
  EXPECT_THAT(page, HasSubstr("data-label=\"p50 over alone\">1.530<"));
}

// Three rates that sum to 193 % are no share of anything: each app is shown.
TEST(ReportTest, SeveralBeAppsAreShownEachAndNeverAsASum) {
  ColocateResult result = MakeResult();
  RunResult& run = result.runs[2];
  run.be = {{"heavy", 0.61, 1e6, 10, 3}, {"light", 0.32, 1e6, 10, 3}, {"copies", 1.0, 1e6, 10, 0}};
  FillThroughput(run);
  const std::string table = FormatTable(MakeScenario(), result);
  EXPECT_THAT(table, HasSubstr("   0.643"));
  for (const char* const text : {"heavy", "0.610", "light", "0.320", "copies", "1.000"}) {
    EXPECT_THAT(table, HasSubstr(text));
  }
  EXPECT_THAT(table, HasSubstr("mean BE rate 0.643, of one app 0.320 to 1.000"));
  const std::string page = FormatReport(MakeScenario(), result, "");
  EXPECT_THAT(page, HasSubstr("best-effort apps run at <b>32 %</b> to <b>100 %</b> of their solo "
                              "rates, <b>64 %</b> on average"));
  EXPECT_THAT(page, HasSubstr("data-label=\"BE app\">copies<"));
  EXPECT_THAT(page, HasSubstr("data-label=\"adaptive BE\">0.32 to 1.00<"));
  // The chart has a mark for each app.
  for (const char* const mark :
       {"heavy: p99 1.020 x alone, BE 0.610", "light: p99 1.020 x alone, BE 0.320",
        "copies: p99 1.020 x alone, BE 1.000"}) {
    EXPECT_THAT(page, HasSubstr(mark));
  }
  for (const std::string& text : {table, page}) {
    EXPECT_THAT(text, Not(HasSubstr("1.930")));
    EXPECT_THAT(text, Not(HasSubstr("1.93<")));
    EXPECT_THAT(text, Not(HasSubstr("193 %")));
  }
}

// Three services and six BE apps with long names under seven policies, and figures of a GPU.
ColocateResult WideResult(MeasuredResults& measured) {
  ColocateResult result = MakeResult();
  result.policies = {"fifo", "priority", "baymax", "smguard", "tacker", "kernelet", "adaptive"};
  result.runs.clear();
  measured.gpu = "NVIDIA H200 NVL";
  for (const char* const name : {"chain1-sincos_2700us_yield-0.3-bound_1.05", "heavy"}) {
    for (const std::string& policy :
         {std::string(kLcAlone), std::string("fifo"), std::string("priority"),
          std::string("baymax"), std::string("smguard"), std::string("tacker"),
          std::string("kernelet"), std::string("adaptive")}) {
      RunResult run = MakeRun(policy, policy == "adaptive" ? 1.031 : 84.127, 0.5);
      run.case_name = name;
      run.lc.assign(3, run.lc[0]);
      run.lc[1].app = "llm_decode_batch_16";
      run.be.assign(6, {"sincos_2700us_yield", 0.128, 1e6, 10, 3});
      run.evictions = {12'345, 20'000, 123'000};
      run.utilisation = 0.995;
      run.prediction_samples = 7;
      run.prediction_error = 0.123;
      result.runs.push_back(run);
      measured.rows.push_back({name, policy, 340.5, 40.128, 1.01, 3000});
    }
  }
  return result;
}

// Columns were cut off on the right of a screen of 1400 pixels, and a chart had no legend.
TEST(ReportTest, FitsWideAndNarrowScreensWithALegendOnEachChart) {
  MeasuredResults measured;
  const ColocateResult result = WideResult(measured);
  const std::string page = FormatReport(MakeScenario(), result, "", measured);
  EXPECT_THAT(PageFaults(page), ::testing::IsEmpty());
  EXPECT_GE(Elements(page, "svg").size(), 8u);
  for (const char* const column :
       {"LC app",         "p50",          "p50 over alone",   "p99",
        "p99 over alone", "violations",   "BE app",           "BE rate",
        "ANTT",           "STP",          "SM busy",          "pred. error",
        "evictions",      "eviction p99", "kernelet p50",     "kernelet p99",
        "kernelet BE",    "promised",     "beyond the bound", "tail account",
        "late for BE",    "rate of solo", "held, by reason"}) {
    EXPECT_THAT(page, HasSubstr(std::string("data-label=\"") + column + "\"")) << column;
  }
}

TEST(EvaluationPageTest, FitsWideAndNarrowScreensWithALegendOnEachChart) {
  std::vector<ModelRows> models;
  for (const char* const model :
       {"line over block tasks, rounds and sizes", "knee from counters"}) {
    models.push_back({"pairs on partitions that were never measured", model, {}});
    models.back().rows.push_back(
        {"gpushare_gemm_roomy_with_mriq_1_1_of_135168_block_tasks_beside_sincos", 8.04e6, 7.65e6});
    models.back().rows.push_back({"fft", 5.04e3, 5e3});
  }
  const std::string page = EvaluationPage(models, "h200.jsonl.gz");
  EXPECT_THAT(PageFaults(page), ::testing::IsEmpty());
  for (const char* const column : {"model", "rows", "mean", "median", "95 %", "worst",
                                   "the worst row: predicted for measured"}) {
    EXPECT_THAT(page, HasSubstr(std::string("data-label=\"") + column + "\"")) << column;
  }
  EXPECT_THAT(page, HasSubstr(">knee from counters</text>"));
}

TEST(PageCheckTest, FindsATableThatIsTooWideAndAChartWithoutALegend) {
  std::string row = "<tr>";
  for (int i = 0; i < 15; ++i) row += "<td>a cell of some length</td>";
  const std::string page =
      "<style>main{max-width:1160px}</style><div class=\"scroll\"><table class=\"stack\">" + row +
      "</tr></table></div><table><tr><td>a</td></tr></table>"
      "<svg role=\"img\"><title>t</title></svg>";
  EXPECT_THAT(PageFaults(page),
              ::testing::ElementsAre(HasSubstr("a table needs"), HasSubstr("no container"),
                                     HasSubstr("narrow screen"), HasSubstr("no legend: <title>t")));
}

TEST(ResultTest, KeepsTheOrderOfTheSchema) {
  const std::string text = FormatResult(MakeScenario(), MakeResult());
  size_t last = 0;
  for (const char* key : {"\"schema_version\"",
                          "\"device\"",
                          "\"simulated\"",
                          "\"scenario\"",
                          "\"seed\"",
                          "\"runs\"",
                          "\"case\"",
                          "\"policy\"",
                          "\"load\"",
                          "\"lc\"",
                          "\"app\"",
                          "\"queries\"",
                          "\"p50_ns\"",
                          "\"p99_ns\"",
                          "\"p99_over_alone\"",
                          "\"violations\"",
                          "\"stp\"",
                          "\"antt\"",
                          "\"utilisation\"",
                          "\"prediction_error\"",
                          "\"evictions\"",
                          "\"manifest\""}) {
    const size_t at = text.find(key, last);
    ASSERT_NE(at, std::string::npos) << key;
    last = at;
  }
}

TEST(TextTest, DurationsHaveThreeDigitsAndAUnit) {
  EXPECT_EQ(DurationText(999), "999 ns");
  EXPECT_EQ(DurationText(27'000), "27.0 us");
  EXPECT_EQ(DurationText(2'176'000), "2.18 ms");
  EXPECT_EQ(DurationText(1.25e11), "125 s");
}

TEST(SvgPlotTest, ALegendThatIsTooLongGoesOnInARowAboveAndMakesThePlotTaller) {
  SvgLegend legend(0, 100, 14);
  for (int i = 0; i < 3; ++i) legend.Add("<path/>", 14, "policy");
  EXPECT_EQ(legend.ExtraHeight(), 2 * 17);
  SvgPlot plot(120, 300, {"x", 0, 1, false, {}}, {"y", 0, 1, false, {}});
  plot.KeyPoint("s0", 0, "a long name");
  plot.KeyLine("qos", "another long name");
  EXPECT_THAT(plot.Finish("plot"), HasSubstr("viewBox=\"0 -17 120 317\""));
}

// The entries of lines, and the top of the plot's grid.
TEST(SvgPlotTest, LabelsOfLinesStandAboveThePlotAndBesideEachOther) {
  SvgPlot plot(380, 300, {"x", 0, 1, false, {{0.5, "0.5"}}}, {"y", 1, 10, true, {}});
  plot.Vertical("limit", "time sharing", 0.7);
  plot.Horizontal("qos", "bounds 1.02x to 4.00x", 1.05);
  plot.Point("s0", 0, "a mark", 0.98, 10);
  const std::string svg = plot.Finish("plot");
  double end = 0;
  int labels = 0;
  const std::string tag = "<g transform=\"translate(";
  size_t at = svg.find("<g class=\"legend\">");
  const double row = std::stod(svg.substr(svg.find("translate(0 ", at) + 12));
  EXPECT_LT(row + 11, 34 - 4.5 * 1.3 - 11 * 0.3);  // above a mark at the plot's top
  at = svg.find("translate(0 ", at);
  for (; (at = svg.find(tag, at)) != std::string::npos; ++labels) {
    at += tag.size();
    const double x = std::stod(svg.substr(at));
    EXPECT_GE(x, end);
    const size_t text = svg.find('>', svg.find("<text", at)) + 1;
    end = x + 22 + 6 * static_cast<double>(svg.find('<', text) - text);
  }
  EXPECT_EQ(labels, 2);
  EXPECT_LE(end, 380);
}

TEST(SvgPlotTest, ALabelThatWouldTouchItsNeighbourIsLeftOut) {
  SvgPlot plot(200, 200, {"x", 0, 10, false, {{1, "1.00 ms"}, {2, "2.00 ms"}, {9, "9.00 ms"}}},
               {"y", 0, 1, false, {}});
  const std::string svg = plot.Finish("plot");
  EXPECT_THAT(svg, HasSubstr(">1.00 ms</text>"));
  EXPECT_THAT(svg, Not(HasSubstr(">2.00 ms</text>")));
  EXPECT_THAT(svg, HasSubstr(">9.00 ms</text>"));
}

TEST(SvgPlotTest, TicksAreRoundAndInside) {
  for (const Tick& tick : LinearTicks(0, 1.05, 5)) {
    EXPECT_GE(tick.value, 0);
    EXPECT_LE(tick.value, 1.05);
  }
  EXPECT_EQ(LinearTicks(0, 1, 5).size(), 6u);
}

}  // namespace
}  // namespace gpushare::tool
