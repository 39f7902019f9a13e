// The kernel and the calls of device_memory.h.

#include <cuda_runtime.h>

#include "tests/cuda/code/device_memory.h"

namespace gpushare::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocks = 256;
using Count = unsigned long long;

__device__ Count differing_count;

__global__ void CompareKernel(const uint8_t* a, const uint8_t* b, size_t count) {
  Count differing = 0;
  for (size_t i = blockIdx.x * size_t{kThreads} + threadIdx.x; i < count;
       i += size_t{kThreads} * kBlocks) {
    differing += a[i] != b[i];
  }
  if (differing > 0) atomicAdd(&differing_count, differing);
}

}  // namespace

void* MakeBytes(size_t count) {
  void* memory = nullptr;
  return cudaMalloc(&memory, count) == cudaSuccess ? memory : nullptr;
}

void FreeBytes(void* memory) { cudaFree(memory); }

bool UploadBytes(void* to, const void* host, size_t count) {
  return cudaMemcpy(to, host, count, cudaMemcpyHostToDevice) == cudaSuccess;
}

bool CopyBytes(void* to, const void* from, size_t count) {
  return cudaMemcpy(to, from, count, cudaMemcpyDeviceToDevice) == cudaSuccess &&
         cudaStreamSynchronize(nullptr) == cudaSuccess;
}

uint64_t DifferingBytes(const void* a, const void* b, size_t count) {
  Count differing = 0;
  if (cudaMemcpyToSymbol(differing_count, &differing, sizeof(differing)) != cudaSuccess)
    return kNotCompared;
  CompareKernel<<<kBlocks, kThreads>>>(static_cast<const uint8_t*>(a),
                                       static_cast<const uint8_t*>(b), count);
  const bool read =
      cudaMemcpyFromSymbol(&differing, differing_count, sizeof(differing)) == cudaSuccess;
  return read ? differing : kNotCompared;
}

}  // namespace gpushare::cuda
