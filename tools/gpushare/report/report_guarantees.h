// The report's tables of guarantees: what each app of a case was promised under each policy, and
// what it got.
//
// Pure.

#ifndef GPUSHARE_TOOLS_GPUSHARE_REPORT_REPORT_GUARANTEES_H_
#define GPUSHARE_TOOLS_GPUSHARE_REPORT_REPORT_GUARANTEES_H_

#include <string>
#include <vector>

#include "tools/gpushare/run/metrics.h"

namespace gpushare::tool {

// HTML for the runs of one case; references have no guarantee and are left out.
std::string GuaranteeTables(const std::vector<const RunResult*>& runs);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_REPORT_REPORT_GUARANTEES_H_
