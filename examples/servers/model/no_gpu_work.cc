// In builds without libgpushare_kernels the server has no work for a GPU.
#include "examples/servers/model/work.h"

namespace gpushare::example {

std::unique_ptr<Work> MakeGpuWork() { return nullptr; }

}  // namespace gpushare::example
