// Runs and their events as one page of plots; see plot.h.

#include "tools/gpushare/plot/plot.h"

#include <optional>
#include <sstream>
#include <utility>

#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/base/files.h"
#include "tools/gpushare/base/limits.h"
#include "tools/gpushare/base/progress.h"
#include "tools/gpushare/base/text.h"
#include "tools/gpushare/plot/over_time.h"
#include "tools/gpushare/report/report_plots.h"
#include "tools/gpushare/report/report_style.h"

namespace gpushare::tool {

namespace {

struct Section {
  std::string title;
  std::optional<bool> simulated;  // nothing: unknown
  std::vector<NamedPlot> plots;
};

Section ResultSection(const PlotInput& input) {
  Section section = {input.results.scenario + " (" + input.name + ")", input.results.simulated, {}};
  for (const TradeOffGroup& group : TradeOffGroups(input.results.runs)) {
    section.plots.push_back(
        {"tradeoff", group.title, TradeOffPlot(group, input.results.policies, {})});
  }
  return section;
}

Section LogSection(const LogToPlot& log) {
  const std::vector<gpushare_event> events = LoadEvents(log.path);
  Section section = {log.run.case_name, log.simulated, GuaranteePlots(log.run, events)};
  if (!log.run.policy.empty()) section.title += " under " + log.run.policy;
  for (NamedPlot& plot : ArrangementPlots(log.run, events))
    section.plots.push_back(std::move(plot));
  return section;
}

// The plot with the stamp in its lower left corner, which no label reaches: an SVG file is shown
// without its page.
std::string Stamped(std::string svg) {
  const std::string tag = "viewBox=\"";
  std::istringstream box(svg.substr(svg.find(tag) + tag.size()));
  double left = 0;
  double top = 0;
  double width = 0;
  double height = 0;
  box >> left >> top >> width >> height;
  return svg.insert(svg.rfind("</svg>"),
                    Format("<text class=\"label\" style=\"fill:var(--stamp)\" x=\"%.0f\" "
                           "y=\"%.0f\">SIMULATED</text>",
                           left + 2, top + height - 8));
}

std::vector<Section> SectionsOf(const PlotOptions& options) {
  std::vector<PlotInput> inputs;
  size_t logs = 0;
  for (const std::string& path : options.inputs) {
    inputs.push_back(ReadPlotInput(path, options.choice));
    logs += inputs.back().logs.size();
  }
  Progress progress(logs, options.quiet);
  std::vector<Section> sections;
  for (const PlotInput& input : inputs) {
    if (!input.results.runs.empty()) sections.push_back(ResultSection(input));
    for (const LogToPlot& log : input.logs) {
      sections.push_back(LogSection(log));
      progress.Step(log.path);
    }
  }
  for (Section& section : sections) {
    if (!section.simulated.value_or(false)) continue;
    for (NamedPlot& plot : section.plots) plot.svg = Stamped(std::move(plot.svg));
  }
  return sections;
}

std::string PageOf(const std::vector<Section>& sections) {
  std::string page =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "style-src 'unsafe-inline'\"><title>gpushare: plots</title><style>" +
      std::string(kChartStyle) + kPageStyle + "</style></head><body><main>\n<h1>Plots</h1>\n";
  for (const Section& section : sections) {
    page += "<section class=\"card\"><h2>" + EscapeHtml(section.title);
    if (section.simulated.value_or(false)) page += " <span class=\"stamp\">SIMULATED</span>";
    page += "</h2>\n";
    if (!section.simulated.has_value()) {
      page +=
          "<p class=\"soft\">Whether the device was simulated is unknown: no result.json lies "
          "beside the folder of the log.</p>\n";
    }
    page += "<div class=\"plots\">";
    for (const NamedPlot& plot : section.plots) {
      page += "<div><h3>" + EscapeHtml(plot.title) + "</h3>" + plot.svg + "</div>\n";
    }
    page += section.plots.empty() ? "</div><p class=\"soft\">Nothing to plot: the log has no query "
                                    "and no launch that ended.</p></section>\n"
                                  : "</div></section>\n";
  }
  return page + "</main></body></html>\n";
}

}  // namespace

std::string SvgFile(const std::string& svg) {
  const std::string tag = "<svg ";
  const size_t end = svg.find('>');
  return tag + "xmlns=\"http://www.w3.org/2000/svg\" font-family=\"system-ui,sans-serif\" " +
         svg.substr(tag.size(), end + 1 - tag.size()) + "<style>" + kChartStyle +
         "svg{background:var(--card)}</style>" + svg.substr(end + 1) + "\n";
}

std::string Plot(const PlotOptions& options) {
  if (options.inputs.size() > kPlotInputsMax) {
    throw InputError(Format("%zu results are given, and the most are %zu.", options.inputs.size(),
                            kPlotInputsMax));
  }
  const std::vector<Section> sections = SectionsOf(options);
  size_t plots = 0;
  for (const Section& section : sections) plots += section.plots.size();
  if (plots == 0) {
    throw InputError(
        "There is nothing to plot: no result has a run of LC beside BE, and no log has a query or "
        "a launch that ended.");
  }
  MakeFolder(options.out);
  std::string text;
  size_t number = 0;
  for (const Section& section : sections) {
    for (const NamedPlot& plot : section.plots) {
      const std::string file = options.out + Format("/%02zu-", ++number) + plot.name + ".svg";
      WriteFile(file, SvgFile(plot.svg));
      text += file + ": " + section.title + ", " + plot.title + "\n";
    }
  }
  WriteFile(options.out + "/plots.html", PageOf(sections));
  return text + "All of them: " + options.out + "/plots.html\n";
}

}  // namespace gpushare::tool
