// See portable_inputs.h.

#include <cuda_runtime.h>

#include "benchmarks/kernels/tensor/portable_inputs.h"

namespace gpushare::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocks = 1024;

__global__ void FillKernel(uint16_t* to, uint64_t count, uint32_t seed) {
  const uint64_t stride = static_cast<uint64_t>(gridDim.x) * blockDim.x;
  for (uint64_t i = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += stride) {
    // Exact: the lower half of the float is zero.
    const float value = PortableInput(seed, static_cast<uint32_t>(i));
    to[i] = static_cast<uint16_t>(__float_as_uint(value) >> 16);
  }
}

}  // namespace

Status FillPortableInputs(DeviceBuffer* buffer, uint32_t seed) {
  FillKernel<<<kBlocks, kThreads, 0, cudaStreamPerThread>>>(
      buffer->as<uint16_t>(), buffer->bytes() / sizeof(uint16_t), seed);
  const Status status = CudaStatus(cudaGetLastError(), "FillPortableInputs<<<>>>");
  if (!status.ok()) return status;
  return CudaStatus(cudaStreamSynchronize(cudaStreamPerThread), "cudaStreamSynchronize");
}

}  // namespace gpushare::kernels
