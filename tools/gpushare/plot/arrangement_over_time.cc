// The arrangement of the device over time: where LC and BE work ran, and which layouts were chosen.
//
// Half of over_time.h. Pure.

#include <algorithm>
#include <map>
#include <utility>

#include "tools/gpushare/base/text.h"
#include "tools/gpushare/events/explain.h"
#include "tools/gpushare/plot/over_time.h"
#include "tools/gpushare/report/report_plots.h"
#include "tools/gpushare/report/svg_plot.h"

namespace gpushare::tool {

namespace {

constexpr double kNsOfMs = 1e6;
// Bars of a row closer than a thousandth of the window are one bar, so a row has at most this many.
constexpr int64_t kBarsOfRow = 1000;
constexpr size_t kRowsMax = 24;
constexpr double kBarShare = 0.62;
constexpr int kRowHeight = 26;
constexpr int kFrameHeight = 110;

struct Span {
  int64_t from_ns = 0;
  int64_t to_ns = 0;
};

struct Row {
  std::string label;
  std::string css_class;
  std::vector<std::pair<Span, std::string>> bars;  // with their titles
};

struct Window {
  int64_t from_ns = GPUSHARE_NEVER;
  int64_t to_ns = 0;
  int64_t gap_ns() const { return (to_ns - from_ns) / kBarsOfRow; }
};

Window WindowOf(const std::vector<gpushare_event>& events) {
  Window window;
  for (const gpushare_event& event : events) {
    if (event.type != GPUSHARE_EVENT_PART_DONE) continue;
    window.from_ns = std::min(window.from_ns, event.b);
    window.to_ns = std::max(window.to_ns, event.c);
  }
  return window;
}

std::string PlaceLabel(int32_t place, bool lc) {
  return (place <= 0 ? std::string("all SMs") : Format("partition %d", place)) +
         (lc ? ", LC" : ", BE");
}

// A bar for each time in which work of one class ran on one set of SMs.
std::vector<Row> WorkRows(const std::vector<gpushare_event>& events, const Window& window) {
  std::map<std::pair<int32_t, bool>, std::vector<Span>> spans;
  for (const gpushare_event& event : events) {
    if (event.type != GPUSHARE_EVENT_PART_DONE) continue;
    const bool be = event.app_class != GPUSHARE_CLASS_LATENCY_CRITICAL;
    spans[{std::max(0, event.place), be}].push_back({event.b, event.c});
  }
  std::vector<Row> rows;
  for (auto& [key, parts] : spans) {
    const auto& [place, be] = key;
    Row row = {PlaceLabel(place, !be), be ? "be" : "lc", {}};
    std::sort(parts.begin(), parts.end(),
              [](const Span& a, const Span& b) { return a.from_ns < b.from_ns; });
    for (const Span& part : parts) {
      if (!row.bars.empty() && part.from_ns - row.bars.back().first.to_ns <= window.gap_ns()) {
        int64_t& end_ns = row.bars.back().first.to_ns;
        end_ns = std::max(end_ns, part.to_ns);
      } else {
        row.bars.push_back({part, ""});
      }
    }
    for (auto& [span, title] : row.bars) {
      title = row.label + ", " + DurationText(static_cast<double>(span.to_ns - span.from_ns));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

// A row for each layout that the policy chose, with a bar for each time in force.
std::vector<Row> LayoutRows(const std::vector<gpushare_event>& events, const Window& window) {
  std::map<int64_t, Row> rows;
  int64_t chosen = -1;
  for (const gpushare_event& event : events) {
    if (event.type != GPUSHARE_EVENT_CHOICE || event.detail != kLayoutChoice) continue;
    const int64_t time_ns = std::clamp(event.time_ns, window.from_ns, window.to_ns);
    if (chosen >= 0) rows[chosen].bars.back().first.to_ns = time_ns;
    Row& row = rows[event.a];
    const bool goes_on =
        event.a == chosen ||
        (!row.bars.empty() && time_ns - row.bars.back().first.to_ns <= window.gap_ns());
    if (!goes_on) {
      row.label = Format("%lld SMs for LC", static_cast<long long>(event.a));
      row.css_class = "s3";
      row.bars.push_back({{time_ns, time_ns},
                          row.label + Format(", predicted BE throughput %.3f",
                                             1e-6 * static_cast<double>(event.c))});
    }
    chosen = event.a;
  }
  if (chosen >= 0) rows[chosen].bars.back().first.to_ns = window.to_ns;
  std::vector<Row> list;
  for (auto& [sms, row] : rows) list.push_back(std::move(row));
  return list;
}

std::string Draw(const std::vector<Row>& rows, const Window& window, int64_t start_ns,
                 const std::string& title) {
  const auto ms = [&](int64_t ns) { return static_cast<double>(ns - start_ns) / kNsOfMs; };
  const double begin = ms(window.from_ns);
  const double end = std::max(begin + 1e-3, ms(window.to_ns));
  const auto count = static_cast<double>(rows.size());
  Axis y = {"", -0.5, count - 0.5, false, {}};
  const auto at = [&](size_t i) { return count - 1 - static_cast<double>(i); };
  for (size_t i = 0; i < rows.size(); ++i) y.ticks.push_back({at(i), rows[i].label});
  SvgPlot plot(kPlotWidth, kFrameHeight + kRowHeight * static_cast<int>(rows.size()),
               {"ms since the start of the run", begin, end, false, LinearTicks(begin, end, 4)}, y);
  std::string shown;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (shown.find(rows[i].css_class) == std::string::npos) {
      const std::string& name = rows[i].css_class;
      plot.KeyBar(name, name == "lc" ? "LC work" : name == "be" ? "BE work" : "layout chosen");
      shown += name + " ";
    }
    for (const auto& [span, bar_title] : rows[i].bars) {
      plot.Bar(rows[i].css_class, bar_title, ms(span.from_ns), ms(span.to_ns), at(i), kBarShare);
    }
  }
  return plot.Finish(
      title, Format("%zu rows: sets of SMs with the work on them, then layouts.", rows.size()));
}

}  // namespace

std::vector<NamedPlot> ArrangementPlots(const EventIndexEntry& run,
                                        const std::vector<gpushare_event>& events) {
  const Window window = WindowOf(events);
  if (window.to_ns <= window.from_ns) return {};
  std::vector<Row> rows = WorkRows(events, window);
  for (Row& row : LayoutRows(events, window)) rows.push_back(std::move(row));
  std::string title = "Arrangement over time";
  if (rows.size() > kRowsMax) {
    title += Format(", the first %zu of %zu rows", kRowsMax, rows.size());
    rows.resize(kRowsMax);
  }
  return {{"arrangement", title, Draw(rows, window, run.start_ns, title)}};
}

}  // namespace gpushare::tool
