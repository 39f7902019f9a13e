#include "tools/gpushare/report/report_html.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "tools/gpushare/base/files.h"
#include "tools/gpushare/base/text.h"
#include "tools/gpushare/report/html_table.h"
#include "tools/gpushare/report/report_guarantees.h"
#include "tools/gpushare/report/report_style.h"
#include "tools/gpushare/report/svg_plot.h"
#include "tools/gpushare/report/timeline.h"
#include "tools/gpushare/report/verdict.h"

namespace gpushare::tool {

namespace {

std::string RatioLabel(double value) {
  return value < 10 ? Format("%.3gx", value) : Format("%.0fx", value);
}
std::string AnttLabel(double value) {
  return value < 1000 ? Format("%.3g", value) : Format("%.0f", value);
}
std::string TimeLabel(double ns) {
  if (ns >= 1e9) return Format("%g s", ns * 1e-9);
  return ns >= 1e6 ? Format("%g ms", ns * 1e-6) : Format("%g us", ns * 1e-3);
}

constexpr int kRing = 7;  // SvgPlot's shape for what a GPU measured

std::string RatioText(double over_alone) {
  if (over_alone == 0) return "-";
  return Format(over_alone < 100 ? "%.3f" : "%.0f", over_alone);
}

// LC p50 and p99 over alone and the BE rate, as the text of one cell.
std::string CellText(double p50_over_alone, double p99_over_alone, double be) {
  return RatioText(p50_over_alone) + ", " + RatioText(p99_over_alone) + Format(", %.2f", be);
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
        EscapeHtml(scenario_.name) + "</title><style>" + kReportStyle +
        "</style><noscript><style>.case{display:block}</style></noscript></head><body><main>\n";
    page += Title() + Verdict() + Overview() + TradeOff() + Cases() + Excerpt() + Manifest();
    return page + "</main><script>" + kReportScript + "</script></body></html>\n";
  }

 private:
  // The colour and shape of a policy are its place in the list, whatever cases show it.
  int SeriesOf(const std::string& policy) const {
    const auto found = std::find(result_.policies.begin(), result_.policies.end(), policy);
    return static_cast<int>(found - result_.policies.begin()) % 8;
  }
  std::string ClassOf(const std::string& policy) const {
    if (policy == kLcAlone) return "alone";
    if (policy == kLibraryAlone) return "library";
    return Format("s%d", SeriesOf(policy));
  }

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
    return Format(
        "best-effort work runs at <b>%.0f %%</b> of its solo rate on average; together that is "
        "<b>%.0f %%</b> of what time sharing could do.",
        100 * best.be_rate_mean, 100 * (1 + best.gain_over_limit_mean));
  }

  // The GPU's own misses, beside those of the run.
  std::string MeasuredSentence(const std::string& policy) const {
    const MeasuredVerdict verdict = JudgeMeasured(result_, measured_, policy);
    if (verdict.cases == 0) return "";
    return Format(
        " The %s kept its bound in <b class=\"%s\">%d of %d</b> of these cases (worst: %s alone).",
        EscapeHtml(measured_.gpu).c_str(), verdict.cases_met == verdict.cases ? "good" : "bad",
        verdict.cases_met, verdict.cases, RatioLabel(verdict.worst_p99_over_alone).c_str());
  }

  std::string Verdict() const {
    std::string html = "<section class=\"card\"><h2>Verdict</h2>\n";
    if (const PolicyVerdict* best = Best()) {
      const bool all = best->cases_met == best->cases_with_line;
      html += Format(
          "<p class=\"verdict\">Under <b>%s</b> latency-critical p99 stays within its QoS "
          "line in <b class=\"%s\">%d of %d</b> cases (worst: %s alone), and ",
          EscapeHtml(best->policy).c_str(), all ? "good" : "bad", best->cases_met,
          best->cases_with_line, RatioLabel(best->worst_p99_over_alone).c_str());
      html += BeSentence(*best) + MeasuredSentence(best->policy) + "</p>\n";
    }
    HtmlTable table({"policy", "QoS kept", "worst p50 over alone", "worst p99 over alone",
                     "mean BE rate of solo", "of one BE app", "mean work over time sharing"});
    for (const PolicyVerdict& one : verdicts_) {
      table.Row();
      table.Cell(one.policy, "", MarkerSvg(ClassOf(one.policy), SeriesOf(one.policy)));
      table.Cell(Format("%d of %d", one.cases_met, one.cases_with_line),
                 one.cases_met == one.cases_with_line ? "good" : "bad");
      table.Cell(RatioLabel(one.worst_p50_over_alone));
      table.Cell(RatioLabel(one.worst_p99_over_alone));
      table.Cell(Format("%.3f", one.be_rate_mean));
      table.Cell(one.several_be_apps ? Format("%.3f to %.3f", one.be_rate_least, one.be_rate_most)
                                     : Format("%.3f", one.be_rate_mean));
      table.Cell(one.several_be_apps ? "-" : Format("%+.3f", one.gain_over_limit_mean));
    }
    return html + table.Finish() + "</section>\n";
  }

  // Every case under every policy; below each case what a GPU measured.
  std::string Overview() const {
    if (result_.policies.empty()) return "";
    std::string html =
        "<section class=\"card\"><h2>All cases</h2><p class=\"soft\">LC p50 and p99 over "
        "alone, and BE as a share of its rate alone (of several apps the mean).";
    if (!measured_.empty()) {
      html += " " + EscapeHtml(MeasuredOrigin(measured_, result_.policies));
    }
    std::vector<std::string> columns = {"case", "bound", "limit"};
    columns.insert(columns.end(), result_.policies.begin(), result_.policies.end());
    HtmlTable table(columns);
    for (const auto& [name, runs] : cases_) {
      OverviewRow(name, runs, table);
      MeasuredRow(name, runs, table);
    }
    return html + "</p>\n" + table.Finish() + "</section>\n";
  }

  void OverviewRow(const std::string& name, const std::vector<const RunResult*>& runs,
                   HtmlTable& table) const {
    const double bound = BoundOf(runs);
    table.Row();
    table.Cell(name);
    table.Cell(bound > 0 ? Format("%.2f", bound) : "-");
    table.Cell(Format("%.3f", TimeSharingLimit(*runs[0])));
    for (const std::string& policy : result_.policies) {
      const auto found = std::find_if(runs.begin(), runs.end(),
                                      [&](const RunResult* run) { return run->policy == policy; });
      if (found == runs.end()) {
        table.Cell("-");
        continue;
      }
      table.Cell(
          CellText(WorstP50OverAlone(**found), WorstP99OverAlone(**found), MeanBeRate(**found)),
          bound == 0          ? ""
          : KeepsQos(**found) ? "good"
                              : "bad");
    }
  }

  // No row if the GPU did not run the case.
  void MeasuredRow(const std::string& name, const std::vector<const RunResult*>& runs,
                   HtmlTable& table) const {
    const double bound = BoundOf(runs);
    if (std::none_of(
            result_.policies.begin(), result_.policies.end(),
            [&](const std::string& policy) { return measured_.Find(name, policy) != nullptr; })) {
      return;
    }
    table.Row("measured");
    for (const std::string& text : {measured_.gpu, std::string(), std::string()}) table.Cell(text);
    for (const std::string& policy : result_.policies) {
      const auto* row = measured_.Find(name, policy);
      if (row == nullptr) {
        table.Cell("-");
        continue;
      }
      table.Cell(CellText(row->p50_over_alone, row->p99_over_alone, row->be_rate_of_solo),
                 bound == 0                     ? ""
                 : row->p99_over_alone <= bound ? "good"
                                                : "bad");
    }
  }

  static double BoundOf(const std::vector<const RunResult*>& runs) {
    double bound = 0;
    for (const RunResult* run : runs) {
      if (!IsReference(run->policy)) bound = std::max(bound, WidestBound(*run));
    }
    return bound;
  }

  std::string Legend(bool references) const {
    std::string html = "<div class=\"legend\">";
    if (references) {
      html += "<span>" + MarkerSvg("alone", 0) + "LC alone</span><span>" + MarkerSvg("library", 7) +
              "library alone</span>";
    }
    for (const std::string& policy : result_.policies) {
      html +=
          "<span>" + MarkerSvg(ClassOf(policy), SeriesOf(policy)) + EscapeHtml(policy) + "</span>";
    }
    return html + "</div>\n";
  }

  // One plot for each set of LC apps and load: only there the time-sharing limit is one line.
  std::string TradeOff() const {
    std::map<std::pair<std::string, double>, std::vector<const RunResult*>> groups;
    std::vector<std::pair<std::string, double>> order;
    for (const RunResult& run : result_.runs) {
      if (IsReference(run.policy) || run.be.empty()) continue;
      std::string apps;
      for (const LcResult& app : run.lc) apps += (apps.empty() ? "" : " + ") + app.app;
      const std::pair<std::string, double> key = {apps, run.load};
      if (groups.find(key) == groups.end()) order.push_back(key);
      groups[key].push_back(&run);
    }
    if (order.empty()) return "";
    std::string html =
        "<section class=\"card\"><h2>Latency against best-effort throughput</h2>"
        "<p class=\"soft\">Each mark is one case under one policy; right and down is better. The "
        "dashed "
        "line is what perfect time sharing leaves for BE: 1 - the load that the arrivals "
        "realised. Right of it, overlap gave more." +
        (measured_.empty() ? ""
                           : " Rings in a policy's colour: " + EscapeHtml(measured_.gpu) + ".") +
        "</p>\n" + Legend(false) + "<div class=\"plots\">";
    for (const auto& key : order) html += TradeOffPlot(key, groups.at(key));
    return html + "</div></section>\n";
  }

  std::string TradeOffPlot(const std::pair<std::string, double>& key,
                           const std::vector<const RunResult*>& runs) const {
    double worst = 2;
    double most = 1;
    double bound = 0;
    double least_bound = 1e9;
    bool one_be_app = true;
    for (const RunResult* run : runs) {
      worst = std::max(worst, WorstP99OverAlone(*run));
      most = std::max(most, MeanBeRate(*run));
      one_be_app = one_be_app && run->be.size() <= 1;
      if (const auto* row = measured_.Find(run->case_name, run->policy)) {
        worst = std::max(worst, row->p99_over_alone);
        most = std::max(most, row->be_rate_of_solo);
      }
      for (const LcResult& app : run->lc) {
        if (app.p99_bound <= 0) continue;
        bound = std::max(bound, app.p99_bound);
        least_bound = std::min(least_bound, app.p99_bound);
      }
    }
    // A mark at 0 keeps clear of the axis and its labels.
    Axis x{one_be_app ? "BE rate of solo" : "mean BE rate of solo", -0.04 * most, most * 1.05,
           false, LinearTicks(0, most * 1.05, 5)};
    Axis y{"LC p99 over alone", 0.9, worst * 1.3, true, LogTicks(0.9, worst * 1.3, &RatioLabel)};
    SvgPlot plot(380, 300, x, y);
    if (one_be_app) {
      plot.Vertical("limit", "time sharing", std::max(0.0, 1 - runs[0]->realised_load));
    }
    if (bound > 0) {
      // Cases with different bounds share a plot: the line is the widest one.
      plot.Horizontal("qos",
                      least_bound < bound ? Format("bounds %.2fx to %.2fx", least_bound, bound)
                                          : Format("bound %.2fx", bound),
                      bound);
    }
    for (const RunResult* run : runs) {
      plot.Point(
          ClassOf(run->policy), SeriesOf(run->policy),
          run->policy + ", " + run->case_name +
              Format(": p99 %.3f x alone, BE %.3f", WorstP99OverAlone(*run), MeanBeRate(*run)),
          MeanBeRate(*run), WorstP99OverAlone(*run));
      const auto* row = measured_.Find(run->case_name, run->policy);
      if (row == nullptr) continue;
      plot.Point(
          ClassOf(run->policy), kRing,
          measured_.gpu + ", " + run->policy + ", " + run->case_name +
              Format(": p99 %.3f x alone, BE %.3f", row->p99_over_alone, row->be_rate_of_solo),
          row->be_rate_of_solo, row->p99_over_alone);
    }
    std::string title = key.first;
    if (key.second > 0) title += Format(", load %.2g", key.second);
    return "<div><h3>" + EscapeHtml(title) + "</h3>" + plot.Finish(title) + "</div>";
  }

  std::string Cases() const {
    std::string html =
        "<section class=\"card\"><h2>Case by case</h2><p><select id=\"choice\" "
        "aria-label=\"case\">";
    for (size_t i = 0; i < cases_.size(); ++i) {
      html += Format("<option value=\"case%zu\">", i) + EscapeHtml(cases_[i].first) + "</option>";
    }
    html += "</select></p>\n" + Legend(true);
    for (size_t i = 0; i < cases_.size(); ++i) {
      html += Format("<div class=\"case%s\" id=\"case%zu\">", i == 0 ? " shown" : "", i) + "<h3>" +
              EscapeHtml(cases_[i].first) + "</h3>" + CaseTable(cases_[i].second) +
              GuaranteeTables(cases_[i].second) + "<div class=\"plots\">" +
              PercentilePlots(cases_[i].second) + "</div></div>\n";
    }
    return html + "</section>\n";
  }

  std::string CaseTable(const std::vector<const RunResult*>& runs) const {
    HtmlTable table({"policy", "LC app", "p50", "p50 over alone", "p99", "p99 over alone",
                     "violations", "BE app", "BE rate", "ANTT", "STP", "SM busy", "pred. error",
                     "evictions", "eviction p99"});
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
    for (size_t i = 0; i < apps; ++i) html += PercentilePlot(runs, i);
    return html;
  }

  std::string PercentilePlot(const std::vector<const RunResult*>& runs, size_t index) const {
    double low = 1e18;
    double high = 1;
    double tail = 0.1;
    int64_t qos_ns = 0;
    for (const RunResult* run : runs) {
      if (index >= run->lc.size()) continue;
      const LcResult& app = run->lc[index];
      qos_ns = std::max(qos_ns, app.qos_ns);
      for (const CurvePoint& point : app.curve) {
        low = std::min(low, static_cast<double>(point.latency_ns));
        high = std::max(high, static_cast<double>(point.latency_ns));
        if (point.fraction < 1) tail = std::min(tail, 1 - point.fraction);
      }
    }
    low = std::max(1.0, 0.8 * low);
    high = std::max(2 * low, 1.3 * high);
    // The x axis shows the tail: 1 / (1 - fraction), logarithmic.
    Axis x{"percentile of queries", 1, 1 / tail, true, {}};
    for (const auto& [fraction, label] : {std::pair{0.0, "0"},
                                          {0.5, "50"},
                                          {0.9, "90"},
                                          {0.99, "99"},
                                          {0.999, "99.9"},
                                          {0.9999, "99.99"},
                                          {0.99999, "99.999"}}) {
      if (1 - fraction >= tail * 0.999) x.ticks.push_back({1 / (1 - fraction), label});
    }
    Axis y{"latency", low, high, true, LogTicks(low, high, &TimeLabel)};
    SvgPlot plot(640, 340, x, y);
    if (qos_ns > 0) {
      plot.Horizontal("qos", "QoS line " + DurationText(static_cast<double>(qos_ns)),
                      static_cast<double>(qos_ns));
    }
    std::string name;
    for (const RunResult* run : runs) {
      if (index >= run->lc.size()) continue;
      name = run->lc[index].app;
      std::vector<std::pair<double, double>> points;
      for (const CurvePoint& point : run->lc[index].curve) {
        points.push_back(
            {1 / std::max(tail, 1 - point.fraction), static_cast<double>(point.latency_ns)});
      }
      plot.Line(ClassOf(run->policy), run->policy, points);
    }
    return "<div><h3>" + EscapeHtml(name) + ": latency percentiles</h3>" +
           plot.Finish(name + " latency percentiles") + "</div>";
  }

  std::string Excerpt() const {
    if (folder_.empty()) return "";
    for (const EventIndexEntry& run : result_.events) {
      if (!run.chosen) continue;
      const std::string svg = TimelineSvg(run, LoadEvents(folder_ + "/" + run.file));
      if (svg.empty()) return "";
      return "<section class=\"card\"><h2>Timeline excerpt</h2><p class=\"soft\">Case " +
             EscapeHtml(run.case_name) + " under " + EscapeHtml(run.policy) +
             ". Blue is latency-critical work, amber best-effort work; triangles are LC arrivals, "
             "dashed red lines evictions. The whole window is in trace.pftrace (open it in "
             "Perfetto); "
             "<code>gpushare explain</code> tells the story of one ticket.</p><div "
             "class=\"scroll\">" +
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
      html += std::string("<tr><td>") + name + "</td><td>" + EscapeHtml(value) + "</td></tr>";
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
