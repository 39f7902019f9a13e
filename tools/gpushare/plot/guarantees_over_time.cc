// What each LC app gets of its guarantee over time: its p99 so far and of the last queries.
//
// Half of over_time.h. Pure.

#include <algorithm>
#include <deque>
#include <functional>
#include <queue>

#include "tools/gpushare/base/text.h"
#include "tools/gpushare/plot/over_time.h"
#include "tools/gpushare/report/report_plots.h"
#include "tools/gpushare/report/svg_plot.h"
#include "tools/gpushare/run/metrics.h"

namespace gpushare::tool {

namespace {

constexpr size_t kPointsMax = 600;
constexpr double kNsOfMs = 1e6;

// The p99 of a growing list: the samples from the p99 upwards lie in a heap of their own.
class GrowingP99 {
 public:
  int64_t Add(int64_t sample) {
    ++count_;
    if (!tail_.empty() && sample > tail_.top()) {
      tail_.push(sample);
    } else {
      rest_.push(sample);
    }
    // Nearest rank: the ceil(0.99 n)-th smallest is the least of the n - ceil(0.99 n) + 1 largest.
    const size_t rank = (99 * count_ + 99) / 100;
    const size_t tail = count_ - rank + 1;
    while (tail_.size() > tail) {
      rest_.push(tail_.top());
      tail_.pop();
    }
    while (tail_.size() < tail) {
      tail_.push(rest_.top());
      rest_.pop();
    }
    return tail_.top();
  }

 private:
  size_t count_ = 0;
  std::priority_queue<int64_t> rest_;
  std::priority_queue<int64_t, std::vector<int64_t>, std::greater<>> tail_;
};

struct Limit {
  double value = 0;  // 0: none
  std::string label;
};

// The unit of the y axis, and the promise in it.
struct Scale {
  double unit_ns = kNsOfMs;
  std::string label = "p99 in ms; p99 alone is unknown";
  std::vector<Limit> limits;
};

Scale ScaleOf(const LcPromise& promise) {
  Scale scale;
  if (promise.p99_alone_ns > 0) {
    scale.unit_ns = static_cast<double>(promise.p99_alone_ns);
    scale.label = "p99 over alone";
    if (promise.p99_bound > 0) {
      scale.limits.push_back({promise.p99_bound, Format("bound %.3gx", promise.p99_bound)});
    }
  }
  if (promise.target_ns > 0 && promise.target_ns < GPUSHARE_NEVER) {
    const auto target_ns = static_cast<double>(promise.target_ns);
    scale.limits.push_back({target_ns / scale.unit_ns, "target " + DurationText(target_ns)});
  }
  return scale;
}

LcPromise PromiseOf(const EventIndexEntry& run, uint32_t app_id) {
  for (const LcPromise& promise : run.promises) {
    if (promise.app_id == app_id) return promise;
  }
  return {};
}

std::string PlotOf(const EventIndexEntry& run, const NamedId& app,
                   const std::vector<GuaranteePoint>& points, const std::string& title) {
  const Scale scale = ScaleOf(PromiseOf(run, app.id));
  std::vector<std::pair<double, double>> so_far;
  std::vector<std::pair<double, double>> recent;
  double high = 0;
  for (const GuaranteePoint& point : points) {
    const double x = static_cast<double>(point.time_ns - run.start_ns) / kNsOfMs;
    so_far.push_back({x, static_cast<double>(point.p99_ns) / scale.unit_ns});
    recent.push_back({x, static_cast<double>(point.recent_p99_ns) / scale.unit_ns});
    high = std::max({high, so_far.back().second, recent.back().second});
  }
  for (const Limit& limit : scale.limits) {
    // A limit far above is left out, so that the curve keeps its shape.
    if (limit.value < 4 * high) high = std::max(high, limit.value);
  }
  high *= 1.1;
  const double begin = so_far.front().first;
  const double end = std::max(begin + 1e-3, so_far.back().first);
  SvgPlot plot(kPlotWidth, kPlotHeight,
               {"ms since the start of the run", begin, end, false, LinearTicks(begin, end, 5)},
               {scale.label, 0, high, false, LinearTicks(0, high, 5)});
  plot.Line("s2", "p99 of the last queries", recent);
  plot.Line("s0", "p99 so far", so_far);
  plot.KeyLine("line s0", "p99 so far");
  plot.KeyLine("line s2", Format("p99 of the last %zu queries", kRecentQueries));
  for (const Limit& limit : scale.limits) {
    if (limit.value < high) {
      plot.Horizontal("qos", limit.label, limit.value);
    } else {
      plot.KeyLine("qos", limit.label + ", above the plot");
    }
  }
  return plot.Finish(title, Format("At the end of the log p99 is %.4g and the p99 of the last "
                                   "queries %.4g.",
                                   so_far.back().second, recent.back().second));
}

}  // namespace

std::vector<GuaranteePoint> GuaranteeOverTime(const std::vector<gpushare_event>& events,
                                              uint32_t app_id, size_t points_max) {
  std::vector<const gpushare_event*> queries;
  for (const gpushare_event& event : events) {
    if (event.type == GPUSHARE_EVENT_QUERY_ENDED && event.app_id == app_id) {
      queries.push_back(&event);
    }
  }
  GrowingP99 so_far;
  std::deque<int64_t> last;
  std::vector<GuaranteePoint> points;
  const size_t step = (queries.size() + points_max - 1) / std::max<size_t>(1, points_max);
  for (size_t i = 0; i < queries.size(); ++i) {
    const int64_t p99_ns = so_far.Add(queries[i]->b);
    last.push_back(queries[i]->b);
    if (last.size() > kRecentQueries) last.pop_front();
    const size_t left = queries.size() - 1 - i;
    if (left % step != 0) continue;
    std::vector<int64_t> sorted(last.begin(), last.end());
    std::sort(sorted.begin(), sorted.end());
    points.push_back({queries[i]->time_ns, p99_ns, Quantile(sorted, 0.99)});
  }
  return points;
}

std::vector<NamedPlot> GuaranteePlots(const EventIndexEntry& run,
                                      const std::vector<gpushare_event>& events) {
  std::vector<NamedPlot> plots;
  for (const NamedId& app : run.apps) {
    if (!app.latency_critical) continue;
    const std::vector<GuaranteePoint> points = GuaranteeOverTime(events, app.id, kPointsMax);
    if (points.empty()) continue;
    const std::string title = app.name + ": p99 over time";
    plots.push_back({"guarantee", title, PlotOf(run, app, points, title)});
  }
  return plots;
}

}  // namespace gpushare::tool
