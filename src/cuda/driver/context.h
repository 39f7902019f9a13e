// The primary context of one GPU, and memory that lives as long as it.
//
// The library uses the primary context because the runtime API and PyTorch do. So it can use their
// streams, events, modules and graphs. A call on a foreign thread pushes the context and pops it
// again.
// Threads: any.

#ifndef GPUSHARE_SRC_CUDA_DRIVER_CONTEXT_H_
#define GPUSHARE_SRC_CUDA_DRIVER_CONTEXT_H_

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/cuda/driver/capture_mode.h"
#include "src/cuda/driver/driver_api.h"

namespace gpushare::cuda {

class Context {
 public:
  // Errors: UNAVAILABLE without a driver; otherwise the driver's error.
  static absl::StatusOr<std::unique_ptr<Context>> Open(int ordinal);
  // Takes over a context that was retained: Open's, or a test's of a fake driver.
  Context(const DriverApi& api, CUdevice device, CUcontext primary)
      : api_(api), device_(device), primary_(primary) {}
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const DriverApi& api() const { return api_; }
  CUdevice device() const { return device_; }
  CUcontext primary() const { return primary_; }

  int Attribute(CUdevice_attribute attribute) const;

 private:
  const DriverApi api_;
  const CUdevice device_;
  const CUcontext primary_;
};

// Makes a context current in a scope: the primary one, or that of a place. Does nothing if it
// already is current.
class ScopedContext {
 public:
  explicit ScopedContext(const Context& context)
      : ScopedContext(context.api(), context.primary()) {}
  ScopedContext(const DriverApi& api, CUcontext context);
  ~ScopedContext();
  ScopedContext(const ScopedContext&) = delete;
  ScopedContext& operator=(const ScopedContext&) = delete;

 private:
  const DriverApi& api_;
  bool pushed_ = false;
};

// Zeroed device memory, freed by the destructor, which may wait for all work on the device. Make
// waits for the zeroes, at most kOwnWorkMax (await_stream.h): DEADLINE_EXCEEDED.
class DeviceMemory {
 public:
  static absl::StatusOr<DeviceMemory> Make(const Context& context, size_t bytes);
  DeviceMemory() = default;
  DeviceMemory(DeviceMemory&& other) noexcept { *this = std::move(other); }
  DeviceMemory& operator=(DeviceMemory&& other) noexcept;
  ~DeviceMemory() { Free(); }
  CUdeviceptr address() const { return address_; }
  template <class T>
  T* At(size_t index) const {
    return reinterpret_cast<T*>(address_) + index;
  }
  // Keeps the memory for the rest of the process: the context is lost or still busy, and the driver
  // cleans up.
  void Leak() { context_ = nullptr; }

 private:
  void Free();
  const Context* context_ = nullptr;
  CUdeviceptr address_ = 0;
};

// Zeroed host memory that is mapped into the device, freed by the destructor, which may wait for
// all work on the device.
class MappedMemory {
 public:
  static absl::StatusOr<MappedMemory> Make(const Context& context, size_t bytes);
  MappedMemory() = default;
  MappedMemory(MappedMemory&& other) noexcept { *this = std::move(other); }
  MappedMemory& operator=(MappedMemory&& other) noexcept;
  ~MappedMemory() { Free(); }
  template <class T>
  T* Host(size_t index) const {
    return static_cast<T*>(host_) + index;
  }
  template <class T>
  T* Device(size_t index) const {
    return reinterpret_cast<T*>(device_) + index;
  }
  void Leak() { context_ = nullptr; }

 private:
  void Free();
  const Context* context_ = nullptr;
  void* host_ = nullptr;
  CUdeviceptr device_ = 0;
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_DRIVER_CONTEXT_H_
