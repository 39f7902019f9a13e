// The CUDA driver's functions, resolved at run time, so that libgpushare loads on a machine without
// libcuda.
//
// Members have the names of the functions. cuda.h maps a name to its current version (cuMemAlloc to
// cuMemAlloc_v2), and LoadDriverApi resolves that version.
// Threads: immutable once loaded.

#ifndef GPUSHARE_SRC_CUDA_DRIVER_DRIVER_API_H_
#define GPUSHARE_SRC_CUDA_DRIVER_DRIVER_API_H_

#include <cuda.h>

#include "absl/status/statusor.h"

namespace gpushare::cuda {

#define GPUSHARE_DRIVER_FUNCTIONS(X)             \
  X(cuCtxFromGreenCtx)                           \
  X(cuCtxGetCurrent)                             \
  X(cuCtxGetStreamPriorityRange)                 \
  X(cuCtxPopCurrent)                             \
  X(cuCtxPushCurrent)                            \
  X(cuDevResourceGenerateDesc)                   \
  X(cuDevSmResourceSplitByCount)                 \
  X(cuDeviceGet)                                 \
  X(cuDeviceGetAttribute)                        \
  X(cuDeviceGetDevResource)                      \
  X(cuDeviceGetName)                             \
  X(cuDevicePrimaryCtxRelease)                   \
  X(cuDevicePrimaryCtxRetain)                    \
  X(cuDriverGetVersion)                          \
  X(cuEventCreate)                               \
  X(cuEventDestroy)                              \
  X(cuEventElapsedTime)                          \
  X(cuEventQuery)                                \
  X(cuEventRecord)                               \
  X(cuFuncGetAttribute)                          \
  X(cuFuncGetName)                               \
  X(cuFuncGetParamInfo)                          \
  X(cuFuncLoad)                                  \
  X(cuFuncSetAttribute)                          \
  X(cuGetErrorName)                              \
  X(cuGetErrorString)                            \
  X(cuGraphAddChildGraphNode)                    \
  X(cuGraphAddDependencies)                      \
  X(cuGraphAddEmptyNode)                         \
  X(cuGraphAddEventRecordNode)                   \
  X(cuGraphAddKernelNode)                        \
  X(cuGraphAddMemcpyNode)                        \
  X(cuGraphAddMemsetNode)                        \
  X(cuGraphChildGraphNodeGetGraph)               \
  X(cuGraphClone)                                \
  X(cuGraphCreate)                               \
  X(cuGraphDestroy)                              \
  X(cuGraphExecDestroy)                          \
  X(cuGraphGetEdges)                             \
  X(cuGraphGetNodes)                             \
  X(cuGraphInstantiate)                          \
  X(cuGraphKernelNodeGetAttribute)               \
  X(cuGraphKernelNodeGetParams)                  \
  X(cuGraphKernelNodeSetAttribute)               \
  X(cuGraphKernelNodeSetParams)                  \
  X(cuGraphLaunch)                               \
  X(cuGraphMemcpyNodeGetParams)                  \
  X(cuGraphMemsetNodeGetParams)                  \
  X(cuGraphNodeGetType)                          \
  X(cuGraphUpload)                               \
  X(cuGreenCtxCreate)                            \
  X(cuGreenCtxDestroy)                           \
  X(cuGreenCtxStreamCreate)                      \
  X(cuInit)                                      \
  X(cuKernelGetFunction)                         \
  X(cuLibraryGetKernel)                          \
  X(cuLibraryLoadData)                           \
  X(cuLibraryUnload)                             \
  X(cuLinkAddData)                               \
  X(cuLinkComplete)                              \
  X(cuLinkCreate)                                \
  X(cuLinkDestroy)                               \
  X(cuLaunchKernel)                              \
  X(cuLaunchKernelEx)                            \
  X(cuMemAlloc)                                  \
  X(cuMemAllocAsync)                             \
  X(cuMemFree)                                   \
  X(cuMemFreeAsync)                              \
  X(cuMemFreeHost)                               \
  X(cuMemHostAlloc)                              \
  X(cuMemHostGetDevicePointer)                   \
  X(cuMemcpyAsync)                               \
  X(cuMemcpyDtoHAsync)                           \
  X(cuMemcpyHtoDAsync)                           \
  X(cuMemsetD8Async)                             \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor) \
  X(cuPointerGetAttribute)                       \
  X(cuStreamBeginCapture)                        \
  X(cuStreamCreateWithPriority)                  \
  X(cuStreamDestroy)                             \
  X(cuStreamEndCapture)                          \
  X(cuStreamGetCtx)                              \
  X(cuStreamQuery)                               \
  X(cuStreamSynchronize)                         \
  X(cuStreamWaitEvent)                           \
  X(cuStreamWriteValue64)                        \
  X(cuThreadExchangeStreamCaptureMode)

struct DriverApi {
#define GPUSHARE_DECLARE(function) decltype(&::function) function = nullptr;
  GPUSHARE_DRIVER_FUNCTIONS(GPUSHARE_DECLARE)
#undef GPUSHARE_DECLARE
};

// Opens libcuda.so.1 and resolves every function. The library stays open until the process ends,
// because a driver that was unloaded cannot be loaded again safely.
// Errors: UNAVAILABLE with the name of the missing library or function; a driver older than CUDA
// 13.0 lacks some.
absl::StatusOr<DriverApi> LoadDriverApi();

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_DRIVER_DRIVER_API_H_
