// The printed table: one block for each case, one row for each policy.

#ifndef GPUSHARE_TOOLS_GPUSHARE_TABLE_H_
#define GPUSHARE_TOOLS_GPUSHARE_TABLE_H_

#include <string>

#include "tools/gpushare/colocate.h"
#include "tools/gpushare/scenario.h"

namespace gpushare::tool {

std::string FormatTable(const Scenario& scenario, const ColocateResult& result);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_TABLE_H_
