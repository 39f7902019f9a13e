// The forms of a kernel's code. See kernel_code.h.

#include "src/core/seams/kernel_code.h"

namespace gpushare::core {

KernelCode CodeOfKind(TaskKind kind) {
  if (kind == TaskKind::kGraph) return GraphCode();
  if (kind == TaskKind::kLibrary) return LibraryCall();
  return FunctionCode();
}

void DropHandles(KernelCode& code) {
  const bool functions = std::holds_alternative<FunctionCode>(code);
  if (functions || std::holds_alternative<PtxCode>(code)) code = FunctionCode();
  if (GraphCode* const graph = std::get_if<GraphCode>(&code)) {
    graph->capture = nullptr;
    graph->capture_user = nullptr;
    graph->graph = nullptr;
    graph->graph_exec = nullptr;
    graph->warm_memory.clear();
    graph->function_images.clear();
    graph->pieces.clear();
  }
}

}  // namespace gpushare::core
