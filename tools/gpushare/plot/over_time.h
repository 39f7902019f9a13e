// Plots of one run over its time, from its event log: what each LC app gets of its guarantee, and
// the arrangement of the device.
//
// Pure. Each plot has a bounded number of points and bars, however long the log is.

#ifndef GPUSHARE_TOOLS_GPUSHARE_PLOT_OVER_TIME_H_
#define GPUSHARE_TOOLS_GPUSHARE_PLOT_OVER_TIME_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tools/gpushare/events/event_index.h"

namespace gpushare::tool {

// One latency that ended at a time, and the p99 up to then and of the last kRecentQueries.
struct GuaranteePoint {
  int64_t time_ns = 0;
  int64_t p99_ns = 0;
  int64_t recent_p99_ns = 0;
};
inline constexpr size_t kRecentQueries = 100;

// The p99 (nearest rank) after each query of the app, at most `points_max` points, the last query
// among them.
std::vector<GuaranteePoint> GuaranteeOverTime(const std::vector<gpushare_event>& events,
                                              uint32_t app_id, size_t points_max);

struct NamedPlot {
  std::string name;  // of a file, without its ending
  std::string title;
  std::string svg;
};

// A plot for each LC app with at least one query in the log: its p99 so far and that of the last
// queries, over its p99 alone where that is known, with its bound or target.
std::vector<NamedPlot> GuaranteePlots(const EventIndexEntry& run,
                                      const std::vector<gpushare_event>& events);

// When LC and BE work ran on each set of SMs, and which layouts the adaptive policy chose. Nothing
// if no launch ended in the log.
std::vector<NamedPlot> ArrangementPlots(const EventIndexEntry& run,
                                        const std::vector<gpushare_event>& events);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_PLOT_OVER_TIME_H_
