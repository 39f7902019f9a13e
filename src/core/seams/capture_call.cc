// Calls the application's capture function of a graph. See capture_call.h.

#include "src/core/seams/capture_call.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "src/core/base/application_call.h"

namespace gpushare::core {

absl::Status CallCapture(const KernelDesc& kernel, void* stream, int32_t sm_count) {
  const GraphCode& graph = *kernel.graph();
  int answer = 0;
  const std::string thrown =
      ThrownBy([&] { answer = graph.capture(graph.capture_user, stream, sm_count); });
  if (!thrown.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("The capture callback of graph '", kernel.name, "' threw ", thrown, "."));
  }
  if (answer == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("The capture of graph '", kernel.name,
                                                 "' answers ", answer, " for ", sm_count,
                                                 " SMs, and 0 is success."));
}

}  // namespace gpushare::core
