// Baymax's figures 14 and 15 as plots; see warehouse_text.h.

#include <algorithm>

#include "tools/gpushare/base/text.h"
#include "tools/gpushare/datacenter/warehouse_text.h"
#include "tools/gpushare/report/report_plots.h"
#include "tools/gpushare/report/svg_plot.h"

namespace gpushare::tool {

namespace {

constexpr int kPlotWide = 620;
constexpr int kRowHeight = 36;
constexpr int kPlotEdges = 90;  // legend, ticks and label
constexpr int kPaperShape = 2;

Axis PercentAxis(const std::string& label) {
  return {label, 0, 100, false, LinearTicks(0, 100, 5)};
}

// One line for each row, the first on top.
Axis RowAxis(const DatacenterResult& result) {
  const auto rows = static_cast<double>(result.rows.size());
  Axis axis{"", 0, rows, false, {}};
  for (size_t i = 0; i < result.rows.size(); ++i) {
    axis.ticks.push_back({rows - 0.5 - static_cast<double>(i), TitleOf(result.rows[i])});
  }
  return axis;
}

SvgPlot BarPlot(const DatacenterResult& result, const std::string& label) {
  return {kPlotWide, kPlotEdges + kRowHeight * static_cast<int>(result.rows.size()),
          PercentAxis(label), RowAxis(result)};
}

}  // namespace

std::string ViolationPlot(const DatacenterResult& result) {
  SvgPlot plot = BarPlot(result, "violated, %");
  const auto rows = static_cast<double>(result.rows.size());
  for (size_t i = 0; i < result.rows.size(); ++i) {
    const RowSummary& row = result.rows[i];
    const double y = rows - 0.5 - static_cast<double>(i);
    const double apps = 100 * row.apps.Share();
    const double pairs = 100 * row.colocations.Share();
    plot.Bar("s0", TitleOf(row) + Format(": %.2f %% of LC apps", apps), 0, apps, y + 0.18, 0.3);
    plot.Bar("s1", TitleOf(row) + Format(": %.2f %% of co-locations", pairs), 0, pairs, y - 0.18,
             0.3);
    const PaperFigures paper = PaperOf(row.policy, row.placing);
    if (!paper.violated) continue;
    const std::string text =
        Format("Baymax 7.6: %s%.1f %%", paper.violated_is_bound ? "below " : "", *paper.violated);
    plot.Point("s2", kPaperShape, text, *paper.violated, y);
  }
  plot.KeyBar("s0", "LC apps");
  plot.KeyBar("s1", "co-locations");
  plot.KeyPoint("s2", kPaperShape, "Baymax 7.6 (K40)");
  return plot.Finish("QoS violations by policy and placement, SIMULATED",
                     "Baymax's figure 14: the share of LC apps, and of co-locations, whose p99 is "
                     "above its limit.");
}

std::string UtilisationPlot(const DatacenterResult& result) {
  SvgPlot plot = BarPlot(result, "BE time over co-location time, %");
  const auto rows = static_cast<double>(result.rows.size());
  for (size_t i = 0; i < result.rows.size(); ++i) {
    const RowSummary& row = result.rows[i];
    const double y = rows - 0.5 - static_cast<double>(i);
    const double be_time = 100 * row.be_time;
    plot.Bar("s0", TitleOf(row) + Format(": %.2f %%", be_time), 0, be_time, y, 0.6);
    const PaperFigures paper = PaperOf(row.policy, row.placing);
    if (!paper.be_time) continue;
    plot.Point("s2", kPaperShape, Format("Baymax 7.6: %.1f %%", *paper.be_time), *paper.be_time, y);
  }
  plot.KeyBar("s0", "mean over GPUs");
  plot.KeyPoint("s2", kPaperShape, "Baymax 7.6 (K40)");
  return plot.Finish("Utilisation by policy and placement, SIMULATED",
                     "Baymax's figure 15: what the BE work takes alone, over the time of the "
                     "co-location.");
}

std::string LevelPlot(const DatacenterResult& result) {
  SvgPlot plot(kPlotWide, kPlotHeight, PercentAxis("utilisation of at least, %"),
               PercentAxis("GPUs, %"));
  std::vector<std::string> titles;
  for (const RowSummary& row : result.rows) titles.push_back(TitleOf(row));
  for (size_t i = 0; i < result.rows.size(); ++i) {
    const RowSummary& row = result.rows[i];
    int64_t above = row.apps.count;
    std::vector<std::pair<double, double>> points;
    for (size_t level = 0; level < kLevels; ++level) {
      points.push_back({10.0 * static_cast<double>(level),
                        100.0 * static_cast<double>(above) /
                            static_cast<double>(std::max<int64_t>(1, row.apps.count))});
      above -= row.levels[level];
    }
    const std::string css_class = SeriesClass(titles, titles[i]);
    plot.Line(css_class, titles[i], points);
    plot.KeyLine("line " + css_class, titles[i]);
  }
  return plot.Finish("GPUs by utilisation, SIMULATED",
                     "Baymax's figure 15: the share of GPUs at each level of utilisation.");
}

}  // namespace gpushare::tool
