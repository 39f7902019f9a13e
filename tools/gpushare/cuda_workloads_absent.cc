// Builds without CUDA: no real programs. cuda_workloads.cc has them.

#include "tools/gpushare/workloads.h"

namespace gpushare::tool {

std::unique_ptr<Workloads> MakeCudaWorkloads(int /*ordinal*/) { return nullptr; }

}  // namespace gpushare::tool
