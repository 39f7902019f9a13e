#include "benchmarks/harness/gpu_device.h"

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdlib>
#include <cstring>

namespace gpushare::benchmarks {

void Cuda(int code, const char* step) { Require(kernels::CudaStatus(code, step)); }

GpuInfo OpenGpu() {
  Require(kernels::CudaStatus(cudaSetDevice(0), "cudaSetDevice"), kNoGpu);
  cudaDeviceProp properties = {};
  Require(kernels::CudaStatus(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties"),
          kNoGpu);
  return {properties.name, properties.multiProcessorCount};
}

const char* UseManyConnections() {
  setenv(kConnections, "32", 0);
  return std::getenv(kConnections);
}

void Synchronize(CUstream_st* stream) {
  Cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

void Zero(const kernels::DeviceBuffer& buffer) {
  Cuda(cudaMemset(buffer.data(), 0, buffer.bytes()), "cudaMemset");
  Cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

MappedMemory::MappedMemory(size_t bytes) {
  Cuda(cudaHostAlloc(&data_, bytes, cudaHostAllocMapped), "cudaHostAlloc");
  std::memset(data_, 0, bytes);
}

MappedMemory::~MappedMemory() { cudaFreeHost(data_); }

double NowSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace gpushare::benchmarks
