// Names of queries; see query_name.h.

#include "src/models/samples/query_name.h"

#include "absl/strings/numbers.h"
#include "src/models/samples/samples_limits.h"

namespace gpushare::models {

QueryName ParseQueryName(absl::string_view kernel) {
  const size_t at = kernel.rfind('@');
  int64_t size = 0;
  if (at == absl::string_view::npos || at == 0 || !absl::SimpleAtoi(kernel.substr(at + 1), &size) ||
      size < 1 || size > kInputSizeMax) {
    return {kernel, 0};
  }
  return {kernel.substr(0, at), size};
}

}  // namespace gpushare::models
