#include "tools/gpushare/report/timeline.h"

#include <algorithm>
#include <map>

#include "tools/gpushare/base/text.h"
#include "tools/gpushare/report/svg_plot.h"

namespace gpushare::tool {

namespace {

// Two drawings of the same window; the style sheet shows one of them. The wide one has the rows'
// labels on the left, the narrow one above each row.
struct Drawing {
  const char* css_class;
  int width;
  double left;
  double row_height;
  double bar_top;  // inside a row
  bool labels_left;
  int ticks;
};
constexpr Drawing kWide = {"timeline wide", 1080, 150, 24, 3, true, 8};
constexpr Drawing kNarrow = {"timeline narrow", 430, 16, 38, 17, false, 4};
constexpr double kBarHeight = 18;
constexpr double kRight = 14;
constexpr double kTop = 22;
constexpr double kLegendHeight = 24;
constexpr double kBottom = 30;
constexpr size_t kSlicesMax = 1500;
constexpr size_t kQueriesShown = 5;

struct Slice {
  int64_t from_ns = 0;
  int64_t to_ns = 0;
  bool latency_critical = false;
  std::string title;
};

struct Row {
  std::string label;
  std::vector<Slice> slices;
  int64_t busy_until_ns = 0;
};

struct Window {
  int64_t from_ns = 0;
  int64_t to_ns = 0;
};

bool IsLc(const gpushare_event& event) {
  return event.app_class == GPUSHARE_CLASS_LATENCY_CRITICAL;
}

// From shortly before one LC arrival until a few queries later, or the whole log without LC.
Window ChooseWindow(const std::vector<gpushare_event>& events) {
  std::vector<Window> queries;
  Window all = {GPUSHARE_NEVER, 0};
  for (const gpushare_event& event : events) {
    if (event.type == GPUSHARE_EVENT_PART_DONE) {
      all.from_ns = std::min(all.from_ns, event.b);
      all.to_ns = std::max(all.to_ns, event.c);
    }
    if (event.type == GPUSHARE_EVENT_COMPLETED && IsLc(event) && event.d > 0) {
      queries.push_back({event.d, event.time_ns});
    }
  }
  if (queries.empty()) return {all.from_ns, std::min(all.to_ns, all.from_ns + 10'000'000)};
  const size_t first = queries.size() > kQueriesShown ? 1 : 0;
  const size_t last = std::min(first + kQueriesShown, queries.size()) - 1;
  Window window = {queries[first].from_ns, queries[last].to_ns};
  const int64_t margin = std::max<int64_t>((window.to_ns - window.from_ns) / 20, 20'000);
  return {std::max(all.from_ns, window.from_ns - margin), window.to_ns + margin};
}

class Timeline {
 public:
  Timeline(const EventIndexEntry& run, const std::vector<gpushare_event>& events,
           const Drawing& drawing)
      : run_(run), events_(events), window_(ChooseWindow(events)), drawing_(drawing) {}

  std::string Draw() {
    CollectRows();
    if (rows_.empty()) return "";
    const double height = kTop + drawing_.row_height * static_cast<double>(rows_.size()) + kBottom;
    std::string svg =
        Format("<svg class=\"%s\" viewBox=\"0 %.0f %d %.0f\" role=\"img\">", drawing_.css_class,
               -kLegendHeight, drawing_.width, height + kLegendHeight) +
        "<title>Timeline excerpt</title>" + Grid(height);
    for (size_t i = 0; i < rows_.size(); ++i) svg += DrawBars(i);
    svg += Marks(height);
    for (size_t i = 0; i < rows_.size(); ++i) svg += DrawLabel(i);
    return svg + Legend() + "</svg>";
  }

 private:
  double X(int64_t time_ns) const {
    const double share = static_cast<double>(time_ns - window_.from_ns) /
                         static_cast<double>(window_.to_ns - window_.from_ns);
    return drawing_.left + std::clamp(share, 0.0, 1.0) * (drawing_.width - drawing_.left - kRight);
  }

  // Launches on one place that overlap get separate rows.
  void CollectRows() {
    std::map<int32_t, std::vector<Row>> by_place;
    std::vector<gpushare_event> spells;
    for (const gpushare_event& event : events_) {
      if (event.type != GPUSHARE_EVENT_PART_DONE) continue;
      if (event.c <= window_.from_ns || event.b >= window_.to_ns) continue;
      spells.push_back(event);
      if (spells.size() == kSlicesMax) break;
    }
    std::stable_sort(spells.begin(), spells.end(),
                     [](const auto& a, const auto& b) { return a.b < b.b; });
    for (const gpushare_event& event : spells) {
      std::vector<Row>& rows = by_place[event.place];
      const std::string label =
          (event.place <= 0 ? std::string("whole device") : Format("partition %d", event.place)) +
          (IsLc(event) ? ", LC" : ", BE");
      auto row = std::find_if(rows.begin(), rows.end(), [&](const Row& candidate) {
        return candidate.label == label && candidate.busy_until_ns <= event.b;
      });
      if (row == rows.end()) row = rows.insert(rows.end(), Row{label, {}, 0});
      row->busy_until_ns = event.c;
      row->slices.push_back({event.b, event.c, IsLc(event), TitleOf(event)});
    }
    for (auto& [place, rows] : by_place) {
      std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
        return a.label > b.label;  // "..., LC" above "..., BE"
      });
      for (Row& row : rows) rows_.push_back(std::move(row));
    }
  }

  // Above the rows, in the space that Draw leaves for it.
  std::string Legend() const {
    SvgLegend legend(0, drawing_.width, -8);
    legend.Add("<rect class=\"lc\" x=\"1\" y=\"2\" width=\"12\" height=\"10\"/>", 14, "LC work");
    legend.Add("<rect class=\"be\" x=\"1\" y=\"2\" width=\"12\" height=\"10\"/>", 14, "BE work");
    legend.Add("<path class=\"arrival\" d=\"M7 11l-4 -7h8z\"/>", 14, "LC arrival");
    legend.Add("<path class=\"eviction\" d=\"M7 1v12\"/>", 14, "eviction");
    return legend.Finish();
  }

  std::string TitleOf(const gpushare_event& event) const {
    std::string title = run_.AppName(event.app_id);
    if (event.kernel_id != 0) title += ", " + run_.KernelName(event.kernel_id);
    title += ", " + DurationText(static_cast<double>(event.c - event.b)) + " on the device";
    if (event.detail == 1) title += ", evicted";
    return title + Format(", ticket %llu", static_cast<unsigned long long>(event.id));
  }

  std::string Grid(double height) const {
    std::string svg;
    const double from_us = 0;
    const double to_us = 1e-3 * static_cast<double>(window_.to_ns - window_.from_ns);
    for (const Tick& tick : LinearTicks(from_us, to_us, drawing_.ticks)) {
      const double x = X(window_.from_ns + static_cast<int64_t>(tick.value * 1e3));
      svg +=
          Format("<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/>", x, kTop, height - kBottom) +
          Format("<text class=\"tick\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s us</text>",
                 x, height - kBottom + 16, tick.label.c_str());
    }
    return svg;
  }

  double RowTop(size_t index) const {
    return kTop + drawing_.row_height * static_cast<double>(index);
  }

  std::string DrawLabel(size_t index) const {
    const double x = drawing_.labels_left ? drawing_.left - 8 : drawing_.left;
    const double y = RowTop(index) + (drawing_.labels_left ? 15 : 13);
    return Format("<text class=\"row\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y,
                  drawing_.labels_left ? "end" : "start") +
           EscapeHtml(rows_[index].label) + "</text>";
  }

  std::string DrawBars(size_t index) const {
    const double y = RowTop(index) + drawing_.bar_top;
    std::string svg;
    for (const Slice& slice : rows_[index].slices) {
      const double x = X(slice.from_ns);
      svg +=
          Format(
              "<rect class=\"%s\" x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" rx=\"2\">",
              slice.latency_critical ? "lc" : "be", x, y, std::max(0.8, X(slice.to_ns) - x),
              kBarHeight) +
          "<title>" + EscapeHtml(slice.title) + "</title></rect>";
    }
    return svg;
  }

  std::string Marks(double height) const {
    std::string svg;
    for (const gpushare_event& event : events_) {
      const bool arrival = event.type == GPUSHARE_EVENT_COMPLETED && IsLc(event) && event.d > 0;
      const bool eviction = event.type == GPUSHARE_EVENT_EVICTED;
      const int64_t time_ns = arrival ? event.d : event.time_ns;
      if ((!arrival && !eviction) || time_ns < window_.from_ns || time_ns > window_.to_ns) continue;
      const double x = X(time_ns);
      if (arrival) {
        svg += Format(
            "<path class=\"arrival\" d=\"M%.1f %.1fl-4 -7h8z\"><title>LC arrival</title>"
            "</path>",
            x, kTop);
      } else {
        svg +=
            Format("<path class=\"eviction\" d=\"M%.1f %.1fV%.1f\"><title>eviction</title></path>",
                   x, kTop, height - kBottom);
      }
    }
    return svg;
  }

  const EventIndexEntry& run_;
  const std::vector<gpushare_event>& events_;
  const Window window_;
  const Drawing& drawing_;
  std::vector<Row> rows_;
};

}  // namespace

std::string TimelineSvg(const EventIndexEntry& run, const std::vector<gpushare_event>& events) {
  const bool any = std::any_of(events.begin(), events.end(), [](const gpushare_event& event) {
    return event.type == GPUSHARE_EVENT_PART_DONE;
  });
  if (!any) return "";
  return Timeline(run, events, kWide).Draw() + Timeline(run, events, kNarrow).Draw();
}

}  // namespace gpushare::tool
