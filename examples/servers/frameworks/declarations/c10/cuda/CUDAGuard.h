// Declarations of what libtorch_region.cc uses of c10/cuda/CUDAGuard.h; see cuda_runtime_api.h.
#ifndef GPUSHARE_EXAMPLES_SERVERS_FRAMEWORKS_CUDA_GUARD_H_
#define GPUSHARE_EXAMPLES_SERVERS_FRAMEWORKS_CUDA_GUARD_H_

#include <c10/cuda/CUDAStream.h>

namespace c10::cuda {
class CUDAStreamGuard {
 public:
  explicit CUDAStreamGuard(CUDAStream stream);
  ~CUDAStreamGuard();
};
}  // namespace c10::cuda

#endif  // GPUSHARE_EXAMPLES_SERVERS_FRAMEWORKS_CUDA_GUARD_H_
