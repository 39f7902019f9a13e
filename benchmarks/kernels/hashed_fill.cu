// FillHashed (see hashed_fill.h).

#include <cuda_runtime.h>

#include "benchmarks/kernels/hash.h"
#include "benchmarks/kernels/hashed_fill.h"

namespace gpushare::kernels {
namespace {

__global__ void FillHashedKernel(uint32_t* to, uint64_t count, uint32_t seed, uint32_t mask) {
  const uint64_t stride = static_cast<uint64_t>(gridDim.x) * blockDim.x;
  for (uint64_t i = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += stride) {
    to[i] = Hash(seed, static_cast<uint32_t>(i)) & mask;
  }
}

}  // namespace

Status FillHashed(const DeviceBuffer& buffer, uint32_t seed, uint32_t mask) {
  FillHashedKernel<<<1024, 256, 0, cudaStreamPerThread>>>(
      buffer.as<uint32_t>(), buffer.bytes() / sizeof(uint32_t), seed, mask);
  const Status status = CudaStatus(cudaGetLastError(), "FillHashedKernel<<<>>>");
  if (!status.ok()) return status;
  return CudaStatus(cudaStreamSynchronize(cudaStreamPerThread), "cudaStreamSynchronize");
}

}  // namespace gpushare::kernels
