// Device memory that frees itself, and the kernels that fill it and sum it up (device_buffer.cu).

#ifndef GPUSHARE_BENCHMARKS_KERNELS_DEVICE_BUFFER_H_
#define GPUSHARE_BENCHMARKS_KERNELS_DEVICE_BUFFER_H_

#include <cstddef>
#include <cstdint>

#include "kernels/status.h"

namespace gpushare::kernels {

// Calls wait for their own work on the calling thread's stream, not for the device: other work runs
// on meanwhile.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  ~DeviceBuffer();
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  Status Allocate(size_t bytes);
  // Every word is a pattern (a NaN, seen as a float).
  Status FillPattern();
  // Float i is Uniform(seed, i, low, high).
  Status FillUniform(uint32_t seed, float low, float high);
  Status Checksum(uint64_t* checksum) const;
  Status Read(size_t offset, size_t bytes, void* to) const;

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  static Status Wait();
  static Status Copy(const void* from, size_t bytes, void* to);

  void* data_ = nullptr;
  void* sum_ = nullptr;  // 64 bits behind the data
  size_t bytes_ = 0;
};

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_DEVICE_BUFFER_H_
