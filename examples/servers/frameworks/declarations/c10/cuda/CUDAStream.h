// Declarations of what libtorch_region.cc uses of c10/cuda/CUDAStream.h; see cuda_runtime_api.h.
#ifndef GPUSHARE_EXAMPLES_SERVERS_FRAMEWORKS_CUDA_STREAM_H_
#define GPUSHARE_EXAMPLES_SERVERS_FRAMEWORKS_CUDA_STREAM_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace c10 {
using DeviceIndex = int8_t;
namespace cuda {
class CUDAStream {};
CUDAStream getStreamFromExternal(cudaStream_t stream, DeviceIndex device_index);
}  // namespace cuda
}  // namespace c10

#endif  // GPUSHARE_EXAMPLES_SERVERS_FRAMEWORKS_CUDA_STREAM_H_
