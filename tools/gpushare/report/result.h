// result.json: the run's numbers in a stable order. The same seed gives the same bytes.
//
// docs/result-schema.md documents every field. Nothing in it depends on the time of day, the
// machine's name or the order in which threads finished.

#ifndef GPUSHARE_TOOLS_GPUSHARE_REPORT_RESULT_H_
#define GPUSHARE_TOOLS_GPUSHARE_REPORT_RESULT_H_

#include <string>

#include "tools/gpushare/colocate/colocate.h"
#include "tools/gpushare/scenario/scenario.h"

namespace gpushare::tool {

inline constexpr int kResultSchemaVersion = 1;

std::string FormatResult(const Scenario& scenario, const ColocateResult& result);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_REPORT_RESULT_H_
