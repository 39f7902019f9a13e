// What `gpushare plot` was given: output folders of colocate, their result.json, event logs.
//
// A folder gives its numbers and its logs. A log inside such a folder has the names of its index; a
// log alone has what its events say, with numbers for names.
//
// Threads: none of its own. Throws InputError.

#ifndef GPUSHARE_TOOLS_GPUSHARE_PLOT_PLOT_INPUTS_H_
#define GPUSHARE_TOOLS_GPUSHARE_PLOT_PLOT_INPUTS_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/gpushare/events/event_index.h"
#include "tools/gpushare/run/metrics.h"

namespace gpushare::tool {

// The numbers of a result.json that plots need.
struct ReadResults {
  std::string scenario;
  bool simulated = false;
  std::vector<std::string> policies;
  std::vector<RunResult> runs;
};

struct LogToPlot {
  std::string path;
  EventIndexEntry run;
  // Whether its device was simulated. Nothing: neither the result nor the index beside it says so.
  std::optional<bool> simulated;
};

struct PlotInput {
  std::string name;  // as the user gave it
  ReadResults results;
  std::vector<LogToPlot> logs;  // of the runs that the choice takes
};

// Which runs to plot. Without a case and a policy all results, and of a folder's logs the one that
// its trace shows.
struct PlotChoice {
  std::string case_name;  // empty: any
  std::string policy;     // empty: any
};

// `file` names the text in errors.
ReadResults ParseResults(std::string_view text, const std::string& file);

// The run of a log that no index names: its apps, their classes and promises.
EventIndexEntry RunOfEvents(const std::string& path, const std::vector<gpushare_event>& events);

PlotInput ReadPlotInput(const std::string& path, const PlotChoice& choice);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_PLOT_PLOT_INPUTS_H_
