// `gpushare plot RESULTS...`: plots of finished runs, as one page and as SVG files.
//
// Of results: LC p99 over alone against BE rate. Of event logs: each LC app's p99 over time against
// its promise, and the arrangement over time. docs/plots.md is for its users.
//
// Threads: none of its own. Throws InputError, RunError.

#ifndef GPUSHARE_TOOLS_GPUSHARE_PLOT_PLOT_H_
#define GPUSHARE_TOOLS_GPUSHARE_PLOT_PLOT_H_

#include <string>
#include <vector>

#include "tools/gpushare/plot/plot_inputs.h"

namespace gpushare::tool {

struct PlotOptions {
  std::vector<std::string> inputs;
  PlotChoice choice;
  std::string out = "out/plots";
  bool quiet = false;  // no progress on stderr
};

// Writes OUT/plots.html and an SVG file for each plot. Returns what to print: the files.
std::string Plot(const PlotOptions& options);

// The plot as a file of its own, with its name space and style.
std::string SvgFile(const std::string& svg);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_PLOT_PLOT_H_
