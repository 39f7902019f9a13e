// What a reader sees of a run: the table, datacenter.json (docs/datacenter.md has the members), and
// a page with Baymax's figures 14 and 15.
//
// Pure: the same result gives the same bytes. Threads: any.

#ifndef GPUSHARE_TOOLS_GPUSHARE_DATACENTER_WAREHOUSE_TEXT_H_
#define GPUSHARE_TOOLS_GPUSHARE_DATACENTER_WAREHOUSE_TEXT_H_

#include <optional>
#include <string>
#include <vector>

#include "tools/gpushare/datacenter/datacenter.h"
#include "tools/gpushare/datacenter/row_summary.h"
#include "tools/gpushare/datacenter/warehouse.h"

namespace gpushare::tool {

// What Baymax 7.6 reports of a row, in percent.
struct PaperFigures {
  std::optional<double> violated;  // of the LC apps
  std::optional<double> be_time;
  bool violated_is_bound = false;  // the paper says "below"
};
PaperFigures PaperOf(const std::string& policy, Placing placing);

// "adaptive, assigned"
std::string TitleOf(const RowSummary& row);
std::string PercentText(double share);

std::string TableOf(const Warehouse& warehouse, const DatacenterResult& result);
std::string JsonOf(const Warehouse& warehouse, const DatacenterResult& result);
std::string PageOf(const Warehouse& warehouse, const DatacenterResult& result);

// SVG elements, as in the page.
std::string ViolationPlot(const DatacenterResult& result);
std::string UtilisationPlot(const DatacenterResult& result);
std::string LevelPlot(const DatacenterResult& result);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_DATACENTER_WAREHOUSE_TEXT_H_
