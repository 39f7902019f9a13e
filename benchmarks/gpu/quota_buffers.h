// Device buffers of counts, as quota_benchmark zeroes and reads them. Both calls block.

#ifndef GPUSHARE_BENCHMARKS_GPU_QUOTA_BUFFERS_H_
#define GPUSHARE_BENCHMARKS_GPU_QUOTA_BUFFERS_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "benchmarks/gpu/quota.h"
#include "benchmarks/kernels/device_buffer.h"

namespace gpushare::quota {

inline std::vector<uint32_t> Words(const kernels::DeviceBuffer& buffer) {
  std::vector<uint32_t> words(buffer.bytes() / sizeof(uint32_t));
  Require(buffer.Read(0, buffer.bytes(), words.data()));
  return words;
}

inline void Zero(const kernels::DeviceBuffer& buffer) {
  Cuda(cudaMemset(buffer.data(), 0, buffer.bytes()), "cudaMemset");
  Cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

}  // namespace gpushare::quota

#endif  // GPUSHARE_BENCHMARKS_GPU_QUOTA_BUFFERS_H_
