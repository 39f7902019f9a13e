// `gpushare ptx check|transform FILE`: which kernels of a PTX text have twins, and their module.
//
// Where in the flow: none; no runtime is opened, and no GPU is needed. Threads: one.

#ifndef GPUSHARE_TOOLS_GPUSHARE_COMMAND_PTX_COMMAND_H_
#define GPUSHARE_TOOLS_GPUSHARE_COMMAND_PTX_COMMAND_H_

#include <cstdint>
#include <string>
#include <vector>

namespace gpushare::tool {

// One form of one kernel.
struct PtxVerdict {
  std::string kernel;       // "": the text does not parse, and no kernel was named
  std::string form;         // "worker" or "slice"
  uint32_t line = 0;        // of the refusal; 0: made, or the text as a whole
  std::string reason = {};  // "": it can be made
};

struct PtxRequest {
  std::string file;
  std::string entry;  // "": every kernel; of a transform the only one
  std::string form;   // "worker", "slice" or "": both
};

// InputError: the file cannot be read, is too long, or has no such kernel.
std::vector<PtxVerdict> CheckPtx(const PtxRequest& request);

// A row for each verdict.
std::string TextOf(const std::vector<PtxVerdict>& verdicts);

// The module with the original and its twins. Differs: one of the forms is refused, with its line
// and reason. InputError: as CheckPtx.
std::string TransformPtx(const PtxRequest& request);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_COMMAND_PTX_COMMAND_H_
