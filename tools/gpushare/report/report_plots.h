// The plots of a run's results: LC latency against BE throughput, and the percentiles of latency.
//
// The report and `gpushare plot` show them. Each has its own legend. Pure.

#ifndef GPUSHARE_TOOLS_GPUSHARE_REPORT_REPORT_PLOTS_H_
#define GPUSHARE_TOOLS_GPUSHARE_REPORT_REPORT_PLOTS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "tools/gpushare/report/measured.h"
#include "tools/gpushare/run/metrics.h"

namespace gpushare::tool {

// The width and height of every plot, in units of its viewBox. A phone's screen shows them at four
// fifths of this size, where the labels stay readable.
inline constexpr int kPlotWidth = 440;
inline constexpr int kPlotHeight = 330;

// The colour and shape of a policy are its place in the list, whatever shows it.
int SeriesOf(const std::vector<std::string>& policies, const std::string& policy);
std::string SeriesClass(const std::vector<std::string>& policies, const std::string& policy);

// Runs of the same LC apps at one load: only there the time-sharing limit is one line.
struct TradeOffGroup {
  std::string title;
  std::vector<const RunResult*> runs;
};
// References and runs without BE work are left out.
std::vector<TradeOffGroup> TradeOffGroups(const std::vector<RunResult>& runs);

// A mark for each BE app of each run; those of one run are joined by a line.
std::string TradeOffPlot(const TradeOffGroup& group, const std::vector<std::string>& policies,
                         const MeasuredResults& measured);

// The latency percentiles of the LC app at `index` of the runs of one case.
std::string PercentilePlot(const std::vector<const RunResult*>& runs, size_t index,
                           const std::vector<std::string>& policies);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_REPORT_REPORT_PLOTS_H_
