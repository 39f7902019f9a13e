// report.html: one file that a stranger can read, without a network. Verdict first, then all cases
// at a glance beside what a GPU measured, p99 against BE rate, latency percentiles for each case, a
// timeline excerpt and the run's manifest.

#ifndef GPUSHARE_TOOLS_GPUSHARE_REPORT_REPORT_HTML_H_
#define GPUSHARE_TOOLS_GPUSHARE_REPORT_REPORT_HTML_H_

#include <string>

#include "tools/gpushare/colocate/colocate.h"
#include "tools/gpushare/report/measured.h"
#include "tools/gpushare/scenario/scenario.h"

namespace gpushare::tool {

// `folder` is where the event logs lie, empty: there are none and the timeline is left out.
// `measured` stands beside the run's own figures, empty: nothing does.
std::string FormatReport(const Scenario& scenario, const ColocateResult& result,
                         const std::string& folder, const MeasuredResults& measured = {});

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_REPORT_REPORT_HTML_H_
