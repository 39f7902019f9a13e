#include "tools/gpushare/profile/evaluation_report.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "tools/gpushare/base/text.h"
#include "tools/gpushare/report/html_table.h"
#include "tools/gpushare/report/report_plots.h"
#include "tools/gpushare/report/report_style.h"
#include "tools/gpushare/report/svg_plot.h"

namespace gpushare::tool {

namespace {

constexpr double kBand = 0.1;
constexpr size_t kSeriesMax = 8;
constexpr const char* kPairs = "pairs on partitions";
constexpr const char* kIpc = "IPC on same SMs";
constexpr const char* kSingleIpc = "IPC of single kernels";
constexpr const char* kThroughput = "throughput of pairs";

std::string Percent(double share) { return Format("%.2f %%", 100 * share); }

std::string ValueText(double value) {
  return value >= 1000 ? DurationText(value) : Format("%.3g", value);
}

std::string WorstText(const ModelRows& model) {
  const JudgedRow& worst = model.Worst();
  return worst.subject + ": " + ValueText(worst.predicted) + " for " + ValueText(worst.measured);
}

// The axis over all that a family predicts and measures; both axes are the same.
Axis AxisOf(const std::string& label, const std::vector<const ModelRows*>& family) {
  double low = std::numeric_limits<double>::max();
  double high = 0;
  for (const ModelRows* model : family) {
    for (const JudgedRow& row : model->rows) {
      low = std::min(low, row.measured);
      high = std::max(high, row.measured);
    }
  }
  Axis axis;
  axis.label = label;
  axis.low = low / 1.3;
  axis.high = high * 1.3;
  axis.logarithmic = true;
  axis.ticks = LogTicks(axis.low, axis.high, &ValueText);
  return axis;
}

std::string PlotOf(const std::vector<const ModelRows*>& family) {
  const Axis axis = AxisOf("measured", family);
  Axis predicted = axis;
  predicted.label = "predicted";
  SvgPlot plot(kPlotWidth, kPlotHeight, axis, predicted);
  const auto diagonal = [&](const char* css_class, double factor, const std::string& title) {
    const double low = std::max(axis.low, axis.low / factor);
    const double high = std::min(axis.high, axis.high / factor);
    plot.Line(css_class, title, {{low, low * factor}, {high, high * factor}});
  };
  for (size_t m = 0; m < family.size(); ++m) {
    // Beyond eight models a colour comes again, with another shape.
    const std::string series = "s" + std::to_string(m % kSeriesMax);
    const auto shape = static_cast<int>((m + m / kSeriesMax) % kSeriesMax);
    plot.KeyPoint(series, shape, family[m]->model);
    for (const JudgedRow& row : family[m]->rows) {
      // A prediction far outside is drawn at the edge.
      const double y = std::clamp(row.predicted, axis.low, axis.high);
      plot.Point(series, shape,
                 row.subject + ": " + ValueText(row.predicted) + " for " + ValueText(row.measured),
                 row.measured, y);
    }
  }
  diagonal("muted", 1, "predicted as measured");
  diagonal("limit", 1 + kBand, "10 % above");
  diagonal("limit", 1 - kBand, "10 % below");
  plot.KeyLine("muted", "as measured");
  plot.KeyLine("limit", "10 % off");
  return plot.Finish("Predicted against measured, " + family[0]->family,
                     "The table has the errors of each model.");
}

// Models of one family, in the order of the first of each.
std::vector<std::vector<const ModelRows*>> FamiliesOf(const std::vector<ModelRows>& models) {
  std::vector<std::vector<const ModelRows*>> families;
  for (const ModelRows& model : models) {
    const auto same = [&](const std::vector<const ModelRows*>& family) {
      return family[0]->family == model.family;
    };
    auto found = std::find_if(families.begin(), families.end(), same);
    if (found == families.end()) found = families.insert(families.end(), {{}});
    found->push_back(&model);
  }
  return families;
}

std::string HtmlTableOf(const std::vector<ModelRows>& models) {
  HtmlTable table("Errors of the models", {{"what"},
                                           {"model", true},
                                           {"rows"},
                                           {"mean"},
                                           {"median"},
                                           {"95 %"},
                                           {"worst"},
                                           {"the worst row: predicted for measured", true}});
  for (const ModelRows& model : models) {
    table.Row();
    table.Cell(model.family);
    table.Cell(model.model);
    table.Cell(std::to_string(model.rows.size()));
    table.Cell(Percent(model.MeanError()));
    table.Cell(Percent(model.ErrorAt(0.5)));
    table.Cell(Percent(model.ErrorAt(0.95)));
    table.Cell(Percent(model.ErrorAt(1)));
    table.Cell(WorstText(model));
  }
  return table.Finish();
}

// A further figure that judges a model of this family; "" for most.
std::string NoteOn(const ModelRows& model) {
  if (model.family == kPairs) {
    return Format("%21swhether the neighbour takes more than a twentieth: right in %s\n", "",
                  Percent(AgreementOnHarm(model)).c_str());
  }
  if (model.family == kIpc || model.family == kSingleIpc) {
    return Format("%21smean difference, of the peak: %.3f\n", "", MeanDifference(model));
  }
  if (model.family == kThroughput) {
    return Format("%21srank correlation: %.3f\n", "", RankCorrelation(model));
  }
  return "";
}

}  // namespace

std::string EvaluationTable(const std::vector<ModelRows>& models) {
  std::string text = Format("%-20s %-36s %5s %9s %9s %9s %10s\n", "what", "model", "rows", "mean",
                            "median", "95 %", "worst");
  for (const ModelRows& model : models) {
    text += Format("%-20.20s %-36.36s %5zu %9s %9s %9s %10s\n", model.family.c_str(),
                   model.model.c_str(), model.rows.size(), Percent(model.MeanError()).c_str(),
                   Percent(model.ErrorAt(0.5)).c_str(), Percent(model.ErrorAt(0.95)).c_str(),
                   Percent(model.ErrorAt(1)).c_str());
    text += Format("%21sworst: %s\n", "", WorstText(model).c_str());
    text += NoteOn(model);
  }
  return text;
}

std::string EvaluationPage(const std::vector<ModelRows>& models, const std::string& samples) {
  std::string page =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
      "<title>Models against measurements</title><style>" +
      std::string(kChartStyle) + kPageStyle + "</style></head><body><main>\n";
  page += "<h1>Models against measurements</h1>\n<p class=\"soft\">" + EscapeHtml(samples) +
          ". Only rows that trained no model. Errors are shares of what was measured.</p>\n";
  page += "<section class=\"card\"><h2>Errors</h2>" + HtmlTableOf(models) + "</section>\n";
  page +=
      "<section class=\"card\"><h2>Predicted against measured</h2><p class=\"soft\">A mark for "
      "each "
      "row; one far outside is drawn at the edge.</p><div class=\"plots\">";
  for (const std::vector<const ModelRows*>& family : FamiliesOf(models)) {
    page += "<div><h3>" + EscapeHtml(family[0]->family) + "</h3>" + PlotOf(family) + "</div>\n";
  }
  return page + "</div></section></main></body></html>\n";
}

std::string EvaluationJson(const std::vector<ModelRows>& models, const std::string& samples) {
  nlohmann::ordered_json json = {{"schema_version", 1}, {"samples", samples}};
  for (const ModelRows& model : models) {
    nlohmann::ordered_json one = {{"family", model.family},
                                  {"model", model.model},
                                  {"rows", model.rows.size()},
                                  {"mean_error", model.MeanError()},
                                  {"median_error", model.ErrorAt(0.5)},
                                  {"p95_error", model.ErrorAt(0.95)},
                                  {"max_error", model.ErrorAt(1)}};
    if (model.family == kPairs) one["agreement_on_harm"] = AgreementOnHarm(model);
    if (model.family == kIpc || model.family == kSingleIpc) {
      one["mean_difference"] = MeanDifference(model);
    }
    if (model.family == kThroughput) one["rank_correlation"] = RankCorrelation(model);
    std::vector<const JudgedRow*> worst;
    for (const JudgedRow& row : model.rows) worst.push_back(&row);
    constexpr size_t kWorstMax = 8;
    const size_t count = std::min(kWorstMax, worst.size());
    std::partial_sort(
        worst.begin(), worst.begin() + static_cast<std::ptrdiff_t>(count), worst.end(),
        [](const JudgedRow* a, const JudgedRow* b) { return a->error() > b->error(); });
    for (size_t i = 0; i < count; ++i) {
      one["worst"].push_back({{"subject", worst[i]->subject},
                              {"predicted", worst[i]->predicted},
                              {"measured", worst[i]->measured}});
    }
    json["models"].push_back(one);
  }
  return json.dump(1) + "\n";
}

}  // namespace gpushare::tool
