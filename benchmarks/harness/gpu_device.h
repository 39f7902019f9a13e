// The GPU of a benchmark: opening it, CUDA's errors, memory that the host and the device share.
// Device memory is kernels::DeviceBuffer everywhere. Plain types, so that .cc files need no nvcc.

#ifndef GPUSHARE_BENCHMARKS_HARNESS_GPU_DEVICE_H_
#define GPUSHARE_BENCHMARKS_HARNESS_GPU_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "benchmarks/harness/failure.h"
#include "benchmarks/kernels/device_buffer.h"

struct CUstream_st;

namespace gpushare::benchmarks {

// Fails with the step's name where `code`, a cudaError_t, is no success.
void Cuda(int code, const char* step);

struct GpuInfo {
  std::string model;
  int sms = 0;
};
// Makes the first GPU the current device. Fails with kNoGpu where there is none.
GpuInfo OpenGpu();

// Before the first CUDA call. MEASURED: with the default of 8 hardware queues, streams that share
// one wait for each other. A value in the environment is kept; returns the one that counts.
inline constexpr char kConnections[] = "CUDA_DEVICE_MAX_CONNECTIONS";
const char* UseManyConnections();

// Blocks until the stream has nothing left to do.
void Synchronize(CUstream_st* stream);
// Blocks until the device is idle.
void Zero(const kernels::DeviceBuffer& buffer);

template <class T>
std::vector<T> ReadAll(const kernels::DeviceBuffer& buffer) {
  std::vector<T> values(buffer.bytes() / sizeof(T));
  Require(buffer.Read(0, buffer.bytes(), values.data()));
  return values;
}

// Pinned host memory, zeroed, that the device maps at the same address.
class MappedMemory {
 public:
  explicit MappedMemory(size_t bytes);
  ~MappedMemory();
  MappedMemory(const MappedMemory&) = delete;
  MappedMemory& operator=(const MappedMemory&) = delete;

  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
};

// Seconds and milliseconds of the host's steady clock.
double NowSeconds();
inline double NowMs() { return NowSeconds() * 1e3; }

}  // namespace gpushare::benchmarks

#endif  // GPUSHARE_BENCHMARKS_HARNESS_GPU_DEVICE_H_
