// The plots of a report; see report_plots.h.

#include "tools/gpushare/report/report_plots.h"

#include <algorithm>
#include <map>
#include <utility>

#include "tools/gpushare/base/text.h"
#include "tools/gpushare/colocate/colocate.h"
#include "tools/gpushare/report/svg_plot.h"
#include "tools/gpushare/report/verdict.h"

namespace gpushare::tool {

namespace {

constexpr int kRing = 7;  // SvgPlot's shape for what a GPU measured

std::string RatioLabel(double value) {
  return value < 10 ? Format("%.3gx", value) : Format("%.0fx", value);
}

std::string TimeLabel(double ns) {
  if (ns >= 1e9) return Format("%g s", ns * 1e-9);
  return ns >= 1e6 ? Format("%g ms", ns * 1e-6) : Format("%g us", ns * 1e-3);
}

// What the axes and the lines across a plot have to show.
struct Extent {
  double worst_p99 = 2;
  double most_be = 1;
  double bound = 0;
  double least_bound = 1e9;
  bool one_be_app = true;
};

Extent ExtentOf(const std::vector<const RunResult*>& runs, const MeasuredResults& measured) {
  Extent extent;
  for (const RunResult* run : runs) {
    extent.worst_p99 = std::max(extent.worst_p99, WorstP99OverAlone(*run));
    for (const BeResult& app : run->be) {
      extent.most_be = std::max(extent.most_be, app.rate_of_solo);
    }
    extent.one_be_app = extent.one_be_app && run->be.size() <= 1;
    if (const auto* row = measured.Find(run->case_name, run->policy)) {
      extent.worst_p99 = std::max(extent.worst_p99, row->p99_over_alone);
      extent.most_be = std::max(extent.most_be, row->be_rate_of_solo);
    }
    for (const LcResult& app : run->lc) {
      if (app.p99_bound <= 0) continue;
      extent.bound = std::max(extent.bound, app.p99_bound);
      extent.least_bound = std::min(extent.least_bound, app.p99_bound);
    }
  }
  return extent;
}

// True if the GPU measured one of the runs.
bool AddRun(const RunResult& run, const std::vector<std::string>& policies,
            const MeasuredResults& measured, SvgPlot& plot) {
  const std::string series = SeriesClass(policies, run.policy);
  const std::string name = run.policy + ", " + run.case_name;
  const double p99 = WorstP99OverAlone(run);
  std::vector<std::pair<double, double>> line;
  for (const BeResult& app : run.be) line.push_back({app.rate_of_solo, p99});
  std::sort(line.begin(), line.end());
  if (line.size() > 1) plot.Line("joint " + series, name, line);
  for (const BeResult& app : run.be) {
    plot.Point(series, SeriesOf(policies, run.policy),
               name + ", " + app.app + Format(": p99 %.3f x alone, BE %.3f", p99, app.rate_of_solo),
               app.rate_of_solo, p99);
  }
  const auto* row = measured.Find(run.case_name, run.policy);
  if (row == nullptr) return false;
  plot.Point(series, kRing,
             measured.gpu + ", " + name +
                 Format(": p99 %.3f x alone, BE %.3f", row->p99_over_alone, row->be_rate_of_solo),
             row->be_rate_of_solo, row->p99_over_alone);
  return true;
}

// The x axis shows the tail: 1 / (1 - fraction), logarithmic.
Axis TailAxis(double tail) {
  Axis axis{"percentile of queries", 1, 1 / tail, true, {}};
  for (const auto& [fraction, label] : {std::pair{0.0, "0"},
                                        {0.5, "50"},
                                        {0.9, "90"},
                                        {0.99, "99"},
                                        {0.999, "99.9"},
                                        {0.9999, "99.99"},
                                        {0.99999, "99.999"}}) {
    if (1 - fraction >= tail * 0.999) axis.ticks.push_back({1 / (1 - fraction), label});
  }
  return axis;
}

std::string ReferenceText(const std::string& policy) {
  if (policy == kLcAlone) return "LC alone";
  return policy == kLibraryAlone ? "library alone" : policy;
}

}  // namespace

int SeriesOf(const std::vector<std::string>& policies, const std::string& policy) {
  const auto found = std::find(policies.begin(), policies.end(), policy);
  return static_cast<int>(found - policies.begin()) % 8;
}

std::string SeriesClass(const std::vector<std::string>& policies, const std::string& policy) {
  if (policy == kLcAlone) return "alone";
  if (policy == kLibraryAlone) return "library";
  return Format("s%d", SeriesOf(policies, policy));
}

std::vector<TradeOffGroup> TradeOffGroups(const std::vector<RunResult>& runs) {
  std::vector<TradeOffGroup> groups;
  for (const RunResult& run : runs) {
    if (IsReference(run.policy) || run.be.empty() || run.lc.empty()) continue;
    std::string title;
    for (const LcResult& app : run.lc) title += (title.empty() ? "" : " + ") + app.app;
    if (run.load > 0) title += Format(", load %.2g", run.load);
    auto found = std::find_if(groups.begin(), groups.end(),
                              [&](const TradeOffGroup& group) { return group.title == title; });
    if (found == groups.end()) found = groups.insert(groups.end(), {title, {}});
    found->runs.push_back(&run);
  }
  return groups;
}

std::string TradeOffPlot(const TradeOffGroup& group, const std::vector<std::string>& policies,
                         const MeasuredResults& measured) {
  const Extent extent = ExtentOf(group.runs, measured);
  const double most = 1.05 * extent.most_be;
  const double worst = 1.3 * extent.worst_p99;
  // A mark at 0 keeps clear of the axis and its labels.
  Axis x{"BE rate of solo", -0.04 * extent.most_be, most, false, LinearTicks(0, most, 5)};
  if (!extent.one_be_app) x.label += ", a mark for each BE app";
  Axis y{"LC p99 over alone", 0.9, worst, true, LogTicks(0.9, worst, &RatioLabel)};
  SvgPlot plot(kPlotWidth, kPlotHeight, x, y);
  bool any_measured = false;
  for (const RunResult* run : group.runs) {
    any_measured = AddRun(*run, policies, measured, plot) || any_measured;
  }
  for (const std::string& policy : policies) {
    const bool shown = std::any_of(group.runs.begin(), group.runs.end(),
                                   [&](const RunResult* run) { return run->policy == policy; });
    if (shown) plot.KeyPoint(SeriesClass(policies, policy), SeriesOf(policies, policy), policy);
  }
  if (any_measured) plot.KeyPoint("alone", kRing, measured.gpu);
  if (extent.one_be_app) {
    plot.Vertical("limit", "time sharing", std::max(0.0, 1 - group.runs[0]->realised_load));
  }
  if (extent.bound > 0) {
    // Cases with different bounds share a plot: the line is the widest one.
    plot.Horizontal("qos",
                    extent.least_bound < extent.bound
                        ? Format("bounds %.2fx to %.2fx", extent.least_bound, extent.bound)
                        : Format("bound %.2fx", extent.bound),
                    extent.bound);
  }
  return plot.Finish("LC p99 over alone against BE rate, " + group.title,
                     "The tables of this run have the same numbers.");
}

std::string PercentilePlot(const std::vector<const RunResult*>& runs, size_t index,
                           const std::vector<std::string>& policies) {
  double low = 1e18;
  double high = 1;
  double tail = 0.1;
  int64_t qos_ns = 0;
  for (const RunResult* run : runs) {
    if (index >= run->lc.size()) continue;
    qos_ns = std::max(qos_ns, run->lc[index].qos_ns);
    for (const CurvePoint& point : run->lc[index].curve) {
      low = std::min(low, static_cast<double>(point.latency_ns));
      high = std::max(high, static_cast<double>(point.latency_ns));
      if (point.fraction < 1) tail = std::min(tail, 1 - point.fraction);
    }
  }
  low = std::max(1.0, 0.8 * low);
  high = std::max(2 * low, 1.3 * high);
  SvgPlot plot(kPlotWidth, kPlotHeight, TailAxis(tail),
               {"latency", low, high, true, LogTicks(low, high, &TimeLabel)});
  std::string name;
  for (const RunResult* run : runs) {
    if (index >= run->lc.size()) continue;
    name = run->lc[index].app;
    std::vector<std::pair<double, double>> points;
    for (const CurvePoint& point : run->lc[index].curve) {
      points.push_back(
          {1 / std::max(tail, 1 - point.fraction), static_cast<double>(point.latency_ns)});
    }
    const std::string series = SeriesClass(policies, run->policy);
    plot.Line(series, run->policy, points);
    plot.KeyLine("line " + series, ReferenceText(run->policy));
  }
  if (qos_ns > 0) {
    plot.Horizontal("qos", "QoS line " + DurationText(static_cast<double>(qos_ns)),
                    static_cast<double>(qos_ns));
  }
  return plot.Finish(name + ": latency percentiles",
                     "The tables of this case have the p50 and the p99.");
}

}  // namespace gpushare::tool
