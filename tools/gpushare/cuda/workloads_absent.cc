// Builds without CUDA: no real programs. workloads.cc has them.

#include "tools/gpushare/workloads/workloads.h"

namespace gpushare::tool {

std::unique_ptr<Workloads> MakeCudaWorkloads(int /*ordinal*/) { return nullptr; }

}  // namespace gpushare::tool
