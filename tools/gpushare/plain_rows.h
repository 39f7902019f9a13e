// Rows of a scenario that are no policies of the library: LC and BE on CUDA's own streams, by bare
// launches. They stand in the list of policies, and exist on a GPU only.
//
// Pure.

#ifndef GPUSHARE_TOOLS_GPUSHARE_PLAIN_ROWS_H_
#define GPUSHARE_TOOLS_GPUSHARE_PLAIN_ROWS_H_

#include <string>
#include <vector>

#include "tools/gpushare/runner.h"

namespace gpushare::tool {

// plain_streams, plain_priority, and both with the ending _carveout.
std::vector<std::string> PlainRowNames();
bool IsPlainRow(const std::string& name);
// How that row shares; `name` is a plain row.
RawForm PlainFormOf(const std::string& name);

// `names` without the plain rows.
std::vector<std::string> WithoutPlainRows(const std::vector<std::string>& names);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_PLAIN_ROWS_H_
