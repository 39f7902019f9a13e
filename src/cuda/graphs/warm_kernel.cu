// Reads memory into the L2 cache. See warm_kernel.h. CUDA C++17, without Abseil and Eigen.

#include <cuda_runtime.h>

#include "src/cuda/graphs/warm_kernel.h"

namespace gpushare::cuda {
namespace {

// Loads the memory and does not prefetch it: on an H200 prefetches saved 71 to 107 us of 230, and
// loads 119 to 124.
__global__ void __launch_bounds__(kWarmThreads) Warm(const __grid_constant__ WarmSpans spans) {
  const uint64_t step = uint64_t{gridDim.x} * kWarmThreads * sizeof(uint4);
  for (int32_t i = 0; i < spans.count; ++i) {
    const uint64_t end = spans.address[i] + spans.bytes[i];
    uint64_t at =
        spans.address[i] + (uint64_t{blockIdx.x} * kWarmThreads + threadIdx.x) * sizeof(uint4);
    for (; at < end; at += step) {
      // ptxas keeps a load that nobody uses only if it is volatile.
      asm volatile(
          "{ .reg .u32 a, b, c, d;\n"
          "  ld.volatile.global.v4.u32 {a, b, c, d}, [%0]; }" ::"l"(at));
    }
  }
}

}  // namespace

void* WarmKernel() {
  cudaKernel_t kernel = nullptr;
  const cudaError_t code = cudaGetKernel(&kernel, reinterpret_cast<const void*>(&Warm));
  // Clear the error: the application must not take it for its own.
  if (code != cudaSuccess) cudaGetLastError();
  return code == cudaSuccess ? kernel : nullptr;
}

}  // namespace gpushare::cuda
