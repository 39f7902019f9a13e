#include "tools/gpushare/report/report_html.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "tools/gpushare/base/files.h"
#include "tools/gpushare/base/text.h"
#include "tools/gpushare/report/html_table.h"
#include "tools/gpushare/report/report_guarantees.h"
#include "tools/gpushare/report/report_plots.h"
#include "tools/gpushare/report/report_style.h"
#include "tools/gpushare/report/svg_plot.h"
#include "tools/gpushare/report/timeline.h"
#include "tools/gpushare/report/verdict.h"

namespace gpushare::tool {

namespace {

// Most policies beside each other in one table, so that it fits a wide screen.
constexpr size_t kPoliciesOfTable = 5;

std::string AnttLabel(double value) {
  return value < 1000 ? Format("%.3g", value) : Format("%.0f", value);
}

std::string RatioText(double over_alone) {
  if (over_alone == 0) return "-";
  return Format(over_alone < 100 ? "%.3f" : "%.0f", over_alone);
}

const char* Judged(bool kept) { return kept ? "good" : "bad"; }

// The rate of the BE app, or those of the slowest and the fastest of several: each of them is a
// share of its own rate alone, so they are not added.
std::string BeRates(const RunResult& run) {
  if (run.be.empty()) return "-";
  double least = run.be[0].rate_of_solo;
  double most = least;
  for (const BeResult& app : run.be) {
    least = std::min(least, app.rate_of_solo);
    most = std::max(most, app.rate_of_solo);
  }
  return run.be.size() == 1 ? Format("%.2f", least) : Format("%.2f to %.2f", least, most);
}

class Report {
 public:
  Report(const Scenario& scenario, const ColocateResult& result, const std::string& folder,
         const MeasuredResults& measured)
      : scenario_(scenario),
        result_(result),
        folder_(folder),
        measured_(measured),
        verdicts_(JudgePolicies(result)) {
    for (const RunResult& run : result.runs) {
      if (cases_.empty() || cases_.back().first != run.case_name) {
        cases_.push_back({run.case_name, {}});
      }
      cases_.back().second.push_back(&run);
    }
  }

  std::string Write() {
    std::string page =
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
        "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
        "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">"
        "<title>gpushare: " +
        EscapeHtml(scenario_.name) + "</title><style>" + kChartStyle + kPageStyle +
        "</style><noscript><style>.case{display:block}</style></noscript></head><body><main>\n";
    page += Title() + Verdict() + Overview() + TradeOff() + Cases() + Excerpt() + Manifest();
    return page + "</main><script>" + kReportScript + "</script></body></html>\n";
  }

 private:
  std::string Title() const {
    std::string html = "<h1>" + EscapeHtml(scenario_.name);
    if (result_.device.simulated) html += " <span class=\"stamp\">SIMULATED</span>";
    if (result_.stopped != nullptr) html += " <span class=\"stamp\">PARTIAL</span>";
    html += "</h1>\n";
    if (result_.stopped != nullptr) {
      html +=
          Format("<p>The run stopped early: %zu of %zu cases are finished. Missing: ",
                 result_.cases_finished, result_.cases_finished + result_.missing_cases.size()) +
          EscapeHtml(QuotedList(result_.missing_cases)) + ".</p>\n";
    }
    if (!scenario_.description.empty()) {
      html += "<p class=\"soft\">" + EscapeHtml(scenario_.description) + "</p>\n";
    }
    if (result_.device.simulated) {
      html += "<p class=\"soft\">Every number on this page comes from a simulated GPU (profile " +
              EscapeHtml(result_.device.profile) + "), not from a real one" +
              (measured_.empty() ? "" : ", but for the lines '" + EscapeHtml(measured_.gpu) + "'") +
              ".</p>\n";
    }
    return html;
  }

  // The policy that keeps QoS most often, and of those the one that gives BE most.
  const PolicyVerdict* Best() const {
    const PolicyVerdict* best = nullptr;
    for (const PolicyVerdict& one : verdicts_) {
      if (best == nullptr || std::make_pair(one.cases_met * best->cases, one.be_rate_mean) >
                                 std::make_pair(best->cases_met * one.cases, best->be_rate_mean)) {
        best = &one;
      }
    }
    return best;
  }

  // Rates of several apps are no shares of one thing, so they are not added.
  static std::string BeSentence(const PolicyVerdict& best) {
    if (best.several_be_apps) {
      return Format(
          "best-effort apps run at <b>%.0f %%</b> to <b>%.0f %%</b> of their solo rates, "
          "<b>%.0f %%</b> on average.",
          100 * best.be_rate_least, 100 * best.be_rate_most, 100 * best.be_rate_mean);
    }
    std::string text =
        Format("best-effort work runs at <b>%.0f %%</b> of its solo rate on average.",
               100 * best.be_rate_mean);
    if (best.cases_kept > 0) {
      text += Format(
          " In the cases that keep QoS both together do <b>%.2f x</b> the work of perfect "
          "time sharing.",
          1 + best.gain_when_kept_mean);
    }
    return text;
  }

  // The GPU's own misses, beside those of the run.
  std::string MeasuredSentence(const std::string& policy) const {
    const MeasuredVerdict verdict = JudgeMeasured(result_, measured_, policy);
    if (verdict.cases == 0) return "";
    return Format(
        " The %s kept its bound in <b class=\"%s\">%d of %d</b> of these cases (worst: %s x "
        "alone).",
        EscapeHtml(measured_.gpu).c_str(), Judged(verdict.cases_met == verdict.cases),
        verdict.cases_met, verdict.cases, RatioText(verdict.worst_p99_over_alone).c_str());
  }

  std::string RunDevice() const { return RunDeviceName(result_); }

  std::string Verdict() const {
    std::string html = "<section class=\"card\"><h2>Verdict</h2>\n";
    if (const PolicyVerdict* best = Best()) {
      html += Format(
          "<p class=\"verdict\">Under <b>%s</b> latency-critical p99 stays within its QoS "
          "line in <b class=\"%s\">%d of %d</b> cases (%s; worst: %s x alone), and ",
          EscapeHtml(best->policy).c_str(), Judged(best->cases_met == best->cases_with_line),
          best->cases_met, best->cases_with_line, EscapeHtml(RunDevice()).c_str(),
          RatioText(best->worst_p99_over_alone).c_str());
      html += BeSentence(*best) + MeasuredSentence(best->policy) + "</p>\n";
    }
    const std::string few = FewQueriesText(result_);
    if (!few.empty()) html += "<p class=\"bad\">" + EscapeHtml(few) + "</p>\n";
    return html + VerdictTable() + "</section>\n";
  }

  // With figures of a GPU, the bounds that each device kept stand beside each other.
  std::string VerdictTable() const {
    const std::string device = measured_.empty() ? "" : RunDevice();
    std::vector<HtmlColumn> columns = {{"policy"}};
    for (const char* const name : {"QoS kept", "worst p50 over alone", "worst p99 over alone"}) {
      columns.push_back({name, false, device});
    }
    columns.push_back({"mean BE rate of solo", false, device});
    columns.push_back({"of one BE app", false, device});
    columns.push_back({"work over time sharing, where QoS was kept", false, device});
    if (!measured_.empty()) {
      columns.push_back({"QoS kept", false, measured_.gpu});
      columns.push_back({"worst p99 over alone", false, measured_.gpu});
    }
    HtmlTable table("Verdict on each policy", columns);
    for (const PolicyVerdict& one : verdicts_) {
      table.Row();
      table.Cell(one.policy, "",
                 MarkerSvg(SeriesClass(result_.policies, one.policy),
                           SeriesOf(result_.policies, one.policy)));
      table.Cell(Format("%d of %d", one.cases_met, one.cases_with_line),
                 Judged(one.cases_met == one.cases_with_line));
      table.Cell(RatioText(one.worst_p50_over_alone));
      table.Cell(RatioText(one.worst_p99_over_alone));
      table.Cell(Format("%.3f", one.be_rate_mean));
      table.Cell(one.several_be_apps ? Format("%.3f to %.3f", one.be_rate_least, one.be_rate_most)
                                     : Format("%.3f", one.be_rate_mean));
      table.Cell(one.several_be_apps || one.cases_kept == 0
                     ? "-"
                     : Format("%+.3f", one.gain_when_kept_mean));
      if (!measured_.empty()) MeasuredCells(one.policy, table);
    }
    return table.Finish();
  }

  void MeasuredCells(const std::string& policy, HtmlTable& table) const {
    const MeasuredVerdict verdict = JudgeMeasured(result_, measured_, policy);
    if (verdict.cases == 0) {
      table.Cell("-");
      return table.Cell("-");
    }
    table.Cell(Format("%d of %d", verdict.cases_met, verdict.cases),
               Judged(verdict.cases_met == verdict.cases));
    table.Cell(RatioText(verdict.worst_p99_over_alone));
  }

  // Every case under every policy; below each case what a GPU measured.
  std::string Overview() const {
    if (result_.policies.empty()) return "";
    std::string html =
        "<section class=\"card\"><h2>All cases</h2><p class=\"soft\">LC p50 and p99 over alone "
        "('!': "
        "above the bound), and BE as a share of its rate alone, of several apps the least and the "
        "greatest share. Limit: what time sharing leaves BE.";
    if (!measured_.empty()) {
      html += " " + EscapeHtml(MeasuredOrigin(measured_, result_.policies));
    }
    html += "</p>\n";
    for (size_t first = 0; first < result_.policies.size(); first += kPoliciesOfTable) {
      const size_t end = std::min(first + kPoliciesOfTable, result_.policies.size());
      html += OverviewTable({result_.policies.begin() + static_cast<std::ptrdiff_t>(first),
                             result_.policies.begin() + static_cast<std::ptrdiff_t>(end)});
    }
    return html + "</section>\n";
  }

  std::string OverviewTable(const std::vector<std::string>& policies) const {
    std::vector<HtmlColumn> columns = {{"case"}, {"bound"}, {"limit"}};
    for (const std::string& policy : policies) {
      for (const char* const name : {"p50", "p99", "BE"}) columns.push_back({name, false, policy});
    }
    HtmlTable table("All cases", columns);
    for (const auto& [name, runs] : cases_) {
      OverviewRow(name, runs, policies, table);
      MeasuredRow(name, runs, policies, table);
    }
    return table.Finish();
  }

  void OverviewRow(const std::string& name, const std::vector<const RunResult*>& runs,
                   const std::vector<std::string>& policies, HtmlTable& table) const {
    const double bound = BoundOf(runs);
    table.Row();
    table.Cell(name);
    table.Cell(bound > 0 ? Format("%.2f", bound) : "-");
    table.Cell(Format("%.3f", TimeSharingLimit(*runs[0])));
    for (const std::string& policy : policies) {
      const auto found = std::find_if(runs.begin(), runs.end(),
                                      [&](const RunResult* run) { return run->policy == policy; });
      if (found == runs.end()) {
        for (int i = 0; i < 3; ++i) table.Cell("-");
        continue;
      }
      table.Cell(RatioText(WorstP50OverAlone(**found)));
      table.Cell(RatioText(WorstP99OverAlone(**found)),
                 bound == 0 ? "" : Judged(KeepsQos(**found)));
      table.Cell(BeRates(**found));
    }
  }

  // No row if the GPU did not run the case.
  void MeasuredRow(const std::string& name, const std::vector<const RunResult*>& runs,
                   const std::vector<std::string>& policies, HtmlTable& table) const {
    const double bound = BoundOf(runs);
    if (std::none_of(policies.begin(), policies.end(), [&](const std::string& policy) {
          return measured_.Find(name, policy) != nullptr;
        })) {
      return;
    }
    table.Row("measured");
    for (const std::string& text : {measured_.gpu, std::string(), std::string()}) table.Cell(text);
    for (const std::string& policy : policies) {
      const auto* row = measured_.Find(name, policy);
      if (row == nullptr) {
        for (int i = 0; i < 3; ++i) table.Cell("-");
        continue;
      }
      table.Cell(RatioText(row->p50_over_alone));
      table.Cell(RatioText(row->p99_over_alone),
                 bound == 0 ? "" : Judged(row->p99_over_alone <= bound));
      table.Cell(Format("%.2f", row->be_rate_of_solo));
    }
  }

  static double BoundOf(const std::vector<const RunResult*>& runs) {
    double bound = 0;
    for (const RunResult* run : runs) {
      if (!IsReference(run->policy)) bound = std::max(bound, WidestBound(*run));
    }
    return bound;
  }

  std::string TradeOff() const {
    const std::vector<TradeOffGroup> groups = TradeOffGroups(result_.runs);
    if (groups.empty()) return "";
    std::string html =
        "<section class=\"card\"><h2>Latency against best-effort throughput</h2>"
        "<p class=\"soft\">Each mark is one BE app in one case under one policy; right and down is "
        "better. The dashed line is what perfect time sharing leaves for BE: 1 - the load that the "
        "arrivals realised. Right of it, overlap gave more.";
    if (!measured_.empty()) html += " Rings: " + EscapeHtml(measured_.gpu) + ".";
    html += "</p>\n<div class=\"plots\">";
    for (const TradeOffGroup& group : groups) {
      html += "<div><h3>" + EscapeHtml(group.title) + "</h3>" +
              TradeOffPlot(group, result_.policies, measured_) + "</div>";
    }
    return html + "</div></section>\n";
  }

  std::string Cases() const {
    std::string html =
        "<section class=\"card\"><h2>Case by case</h2><p><select id=\"choice\" "
        "aria-label=\"case\">";
    for (size_t i = 0; i < cases_.size(); ++i) {
      html += Format("<option value=\"case%zu\">", i) + EscapeHtml(cases_[i].first) + "</option>";
    }
    html += "</select></p>\n";
    for (size_t i = 0; i < cases_.size(); ++i) {
      html += Format("<div class=\"case%s\" id=\"case%zu\">", i == 0 ? " shown" : "", i) + "<h3>" +
              EscapeHtml(cases_[i].first) + "</h3>" + CaseTable(cases_[i].second) +
              GuaranteeTables(cases_[i].second) + "<div class=\"plots\">" +
              PercentilePlots(cases_[i].second) + "</div></div>\n";
    }
    return html + "</section>\n";
  }

  std::string CaseTable(const std::vector<const RunResult*>& runs) const {
    HtmlTable table("Each app under each policy", {{"policy"},
                                                   {"LC app", true},
                                                   {"p50"},
                                                   {"p50 over alone"},
                                                   {"p99"},
                                                   {"p99 over alone"},
                                                   {"violations"},
                                                   {"BE app", true},
                                                   {"BE rate"},
                                                   {"ANTT"},
                                                   {"STP"},
                                                   {"SM busy"},
                                                   {"pred. error"},
                                                   {"evictions"},
                                                   {"eviction p99"}});
    for (const RunResult* run : runs) {
      const size_t rows = std::max({size_t{1}, run->lc.size(), run->be.size()});
      for (size_t i = 0; i < rows; ++i) CaseRow(*run, i, table);
    }
    return table.Finish();
  }

  static void CaseRow(const RunResult& run, size_t index, HtmlTable& table) {
    table.Row(IsReference(run.policy) ? "reference" : "");
    table.Cell(index == 0 ? run.policy + (run.unstable ? " (unstable)" : "") : "");
    if (index < run.lc.size()) {
      const LcResult& app = run.lc[index];
      table.Cell(app.app);
      table.Cell(DurationText(static_cast<double>(app.p50_ns)));
      table.Cell(RatioText(app.p50_over_alone));
      table.Cell(DurationText(static_cast<double>(app.p99_ns)));
      table.Cell(Format("%.3f", app.p99_over_alone), app.qos_ns == 0 ? ""
                                                     : app.qos_met   ? "good"
                                                                     : "bad");
      table.Cell(app.qos_ns == 0 ? "-" : Format("%.2f %%", 100 * app.violation_share));
    } else {
      for (int i = 0; i < 6; ++i) table.Cell(index == 0 ? "-" : "");
    }
    const bool has_be = index < run.be.size();
    const std::string none = index == 0 ? "-" : "";
    table.Cell(has_be ? run.be[index].app : none);
    table.Cell(has_be ? Format("%.3f", run.be[index].rate_of_solo) : none);
    if (index > 0) {  // the rest is of the run, not of the app
      for (int i = 0; i < 6; ++i) table.Cell("");
      return;
    }
    const bool evicted = run.evictions.count > 0;
    table.Cell(AnttLabel(run.antt));
    table.Cell(Format("%.3f", run.stp));
    table.Cell(run.utilisation > 0 ? Format("%.1f %%", 100 * run.utilisation) : "-");
    table.Cell(run.prediction_samples > 0 ? Format("%.1f %%", 100 * run.prediction_error) : "-");
    table.Cell(evicted ? Format("%lld", static_cast<long long>(run.evictions.count)) : "-");
    table.Cell(evicted ? DurationText(static_cast<double>(run.evictions.p99_ns)) : "-");
  }

  std::string PercentilePlots(const std::vector<const RunResult*>& runs) const {
    std::string html;
    const size_t apps = runs.empty() ? 0 : runs[0]->lc.size();
    for (size_t i = 0; i < apps; ++i) {
      html += "<div><h3>" + EscapeHtml(runs[0]->lc[i].app) + ": latency percentiles</h3>" +
              PercentilePlot(runs, i, result_.policies) + "</div>";
    }
    return html;
  }

  std::string Excerpt() const {
    if (folder_.empty()) return "";
    for (const EventIndexEntry& run : result_.events) {
      if (!run.chosen) continue;
      const std::string svg = TimelineSvg(run, LoadEvents(folder_ + "/" + run.file));
      if (svg.empty()) return "";
      return "<section class=\"card\"><h2>Timeline excerpt</h2><p class=\"soft\">Case " +
             EscapeHtml(run.case_name) + " under " + EscapeHtml(run.policy) +
             ". The whole window is in trace.pftrace (open it in "
             "Perfetto); "
             "<code>gpushare explain</code> tells the story of one ticket.</p>"
             "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"Timeline\">" +
             svg + "</div></section>\n";
    }
    return "";
  }

  std::string Manifest() const {
    std::string policies;
    for (const std::string& policy : result_.policies) {
      policies += (policies.empty() ? "" : ", ") + policy;
    }
    const std::vector<std::pair<const char*, std::string>> rows = {
        {"scenario", scenario_.name + ", digest " + HexText(scenario_.digest)},
        {"device", result_.device.name + (result_.device.simulated ? " (SIMULATED)" : "") +
                       Format(", %d SMs", result_.device.sm_count)},
        {"profile", result_.device.profile},
        {"tier", result_.device.simulated ? result_.tier : "-"},
        {"seed", Format("%llu", static_cast<unsigned long long>(result_.seed))},
        {"policies", policies},
        {"cases, runs", Format("%zu, %zu", cases_.size(), result_.runs.size())},
        {"gpushare", gpushare_version_string()},
        {"numbers", "result.json beside this page; fields: docs/result-schema.md"},
    };
    std::string html =
        "<section class=\"card\"><h2>Manifest</h2><div class=\"scroll\"><table class=\"manifest\">";
    for (const auto& [name, value] : rows) {
      html += std::string("<tr><th scope=\"row\">") + name + "</th><td>" + EscapeHtml(value) +
              "</td></tr>";
    }
    return html + "</table></div></section>\n";
  }

  const Scenario& scenario_;
  const ColocateResult& result_;
  const std::string& folder_;
  const MeasuredResults& measured_;
  const std::vector<PolicyVerdict> verdicts_;
  std::vector<std::pair<std::string, std::vector<const RunResult*>>> cases_;
};

}  // namespace

std::string FormatReport(const Scenario& scenario, const ColocateResult& result,
                         const std::string& folder, const MeasuredResults& measured) {
  return Report(scenario, result, folder, measured).Write();
}

}  // namespace gpushare::tool
