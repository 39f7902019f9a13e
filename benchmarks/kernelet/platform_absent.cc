// A build without CUDA. See platform.h.

#include "benchmarks/harness/failure.h"
#include "benchmarks/kernelet/platform.h"

namespace gpushare::kernelet {

std::unique_ptr<Platform> MakeCudaPlatform() {
  throw benchmarks::Failure("This build has no CUDA: --device cuda needs it.", benchmarks::kNoGpu);
}

}  // namespace gpushare::kernelet
