// The printed table: one block for each case with a row for each policy, then all cases at a glance
// with what a GPU measured below each.

#ifndef GPUSHARE_TOOLS_GPUSHARE_REPORT_TABLE_H_
#define GPUSHARE_TOOLS_GPUSHARE_REPORT_TABLE_H_

#include <string>

#include "tools/gpushare/colocate/colocate.h"
#include "tools/gpushare/report/measured.h"
#include "tools/gpushare/scenario/scenario.h"

namespace gpushare::tool {

std::string FormatTable(const Scenario& scenario, const ColocateResult& result,
                        const MeasuredResults& measured = {});

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_REPORT_TABLE_H_
