// DeviceBuffer (see device_buffer.h): allocation, seeded fill and the checksum of all bits.

#include <cuda_runtime.h>

#include "benchmarks/kernels/device_buffer.h"
#include "benchmarks/kernels/hash.h"

namespace gpushare::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocks = 1024;
constexpr int kPatternByte = 0xFF;

__global__ void FillUniformKernel(float* to, uint64_t count, uint32_t seed, float low, float high) {
  const uint64_t stride = static_cast<uint64_t>(gridDim.x) * blockDim.x;
  for (uint64_t i = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += stride) {
    to[i] = Uniform(seed, static_cast<uint32_t>(i), low, high);
  }
}

// A sum of hashes of {place, word}: it does not depend on the order of the additions.
__global__ void ChecksumKernel(const uint32_t* from, uint64_t count, unsigned long long* sum) {
  const uint64_t stride = static_cast<uint64_t>(gridDim.x) * blockDim.x;
  unsigned long long mine = 0;
  for (uint64_t i = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += stride) {
    const uint32_t place = Hash(static_cast<uint32_t>(i >> 32) + 1, static_cast<uint32_t>(i));
    mine += (static_cast<unsigned long long>(Hash(place, from[i])) << 32) |
            Hash(from[i] ^ 0x9E3779B9U, place);
  }
  atomicAdd(sum, mine);
}

}  // namespace

DeviceBuffer::~DeviceBuffer() { cudaFree(data_); }

Status DeviceBuffer::Allocate(size_t bytes) {
  // One word more, for the checksum: to allocate later would wait for the device.
  const size_t padded = (bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t) * sizeof(uint64_t);
  const Status status = CudaStatus(cudaMalloc(&data_, padded + sizeof(uint64_t)), "cudaMalloc");
  bytes_ = status.ok() ? bytes : 0;
  sum_ = status.ok() ? static_cast<unsigned char*>(data_) + padded : nullptr;
  return status;
}

Status DeviceBuffer::FillPattern() {
  Status status = CudaStatus(cudaMemsetAsync(data_, kPatternByte, bytes_, cudaStreamPerThread),
                             "cudaMemsetAsync");
  return status.ok() ? Wait() : status;
}

Status DeviceBuffer::FillUniform(uint32_t seed, float low, float high) {
  FillUniformKernel<<<kBlocks, kThreads, 0, cudaStreamPerThread>>>(
      as<float>(), bytes_ / sizeof(float), seed, low, high);
  const Status status = CudaStatus(cudaGetLastError(), "FillUniformKernel<<<>>>");
  return status.ok() ? Wait() : status;
}

Status DeviceBuffer::Checksum(uint64_t* checksum) const {
  Status status = CudaStatus(cudaMemsetAsync(sum_, 0, sizeof(uint64_t), cudaStreamPerThread),
                             "cudaMemsetAsync");
  if (!status.ok()) return status;
  ChecksumKernel<<<kBlocks, kThreads, 0, cudaStreamPerThread>>>(
      as<const uint32_t>(), bytes_ / sizeof(uint32_t), static_cast<unsigned long long*>(sum_));
  status = CudaStatus(cudaGetLastError(), "ChecksumKernel<<<>>>");
  if (!status.ok()) return status;
  return Copy(sum_, sizeof(uint64_t), checksum);
}

Status DeviceBuffer::Read(size_t offset, size_t bytes, void* to) const {
  return Copy(static_cast<const unsigned char*>(data_) + offset, bytes, to);
}

Status DeviceBuffer::Copy(const void* from, size_t bytes, void* to) {
  const Status status =
      CudaStatus(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, cudaStreamPerThread),
                 "cudaMemcpyAsync");
  return status.ok() ? Wait() : status;
}

Status DeviceBuffer::Wait() {
  return CudaStatus(cudaStreamSynchronize(cudaStreamPerThread), "cudaStreamSynchronize");
}

}  // namespace gpushare::kernels
