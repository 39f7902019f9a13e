#include "src/sim/warp/kernels/generator.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "src/sim/warp/trace.h"

namespace gpushare::sim::warp {

absl::StatusOr<Program> Generate(const KernelGenerator& generator, int64_t iterations) {
  return ParseTrace(absl::Substitute(generator.trace, iterations),
                    absl::StrCat("generator of ", generator.name));
}

}  // namespace gpushare::sim::warp
