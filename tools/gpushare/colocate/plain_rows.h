// Plain rows: rows of a scenario without the library, where LC and BE are bare launches on CUDA's
// streams. A scenario lists them among its policies. They exist on a GPU only.
//
// Pure.

#ifndef GPUSHARE_TOOLS_GPUSHARE_COLOCATE_PLAIN_ROWS_H_
#define GPUSHARE_TOOLS_GPUSHARE_COLOCATE_PLAIN_ROWS_H_

#include <string>
#include <vector>

#include "tools/gpushare/run/run_plan.h"

namespace gpushare::tool {

// Whether `name` is plain_streams or plain_priority, with or without the ending _carveout.
std::vector<std::string> PlainRowNames();
bool IsPlainRow(const std::string& name);
// How LC and BE share the GPU in the plain row `name`.
RawForm PlainFormOf(const std::string& name);

// `names` without the plain rows.
std::vector<std::string> WithoutPlainRows(const std::vector<std::string>& names);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_COLOCATE_PLAIN_ROWS_H_
