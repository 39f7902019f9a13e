// A build without CUDA has no kernels for a GPU. See group_work.h.

#include "benchmarks/group/group_work.h"
#include "benchmarks/harness/failure.h"

namespace gpushare::benchmarks {

std::unique_ptr<GroupWork> MakeCudaWork(Group& /*group*/) {
  throw Failure("This build has no CUDA, so it has no kernels for a GPU.", kNoGpu);
}

}  // namespace gpushare::benchmarks
