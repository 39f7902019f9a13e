// Declarations of what the samples use of the CUDA runtime, written for this project: enough to
// compile them, and for nothing else. The CUDA toolkit has the real ones.
#ifndef GPUSHARE_EXAMPLES_SERVERS_FRAMEWORKS_CUDA_RUNTIME_API_H_
#define GPUSHARE_EXAMPLES_SERVERS_FRAMEWORKS_CUDA_RUNTIME_API_H_

#include <cstddef>

using cudaStream_t = struct CUstream_st*;
using cudaEvent_t = struct CUevent_st*;
enum cudaError_t { cudaSuccess = 0 };
enum { cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2 };

extern "C" {
const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaMalloc(void** memory, size_t bytes);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventDestroy(cudaEvent_t event);
}

#endif  // GPUSHARE_EXAMPLES_SERVERS_FRAMEWORKS_CUDA_RUNTIME_API_H_
