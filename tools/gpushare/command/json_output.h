// What `explain`, `ptx check`, `replay` and `validate` print with --json, and how --json reports an
// error. The schema is docs/command.md, and docs/replay.md for `replay`.
//
// Pure.

#ifndef GPUSHARE_TOOLS_GPUSHARE_COMMAND_JSON_OUTPUT_H_
#define GPUSHARE_TOOLS_GPUSHARE_COMMAND_JSON_OUTPUT_H_

#include <string>
#include <vector>

#include "tools/gpushare/command/ptx_command.h"
#include "tools/gpushare/command/validate.h"
#include "tools/gpushare/events/explain.h"
#include "tools/gpushare/events/replay.h"

namespace gpushare::tool {

std::string JsonOf(const Explanation& explanation);
std::string JsonOf(const Validated& validated);
std::string JsonOf(const std::vector<ReplayedLog>& logs);
std::string JsonOf(const std::vector<PtxVerdict>& verdicts);

// `code` is the exit code, `message` the sentence that stderr has too.
std::string JsonOfError(int code, const std::string& message);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_COMMAND_JSON_OUTPUT_H_
