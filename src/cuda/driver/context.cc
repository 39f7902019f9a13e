// Opens the primary context and allocates its memory. See context.h.

#include "src/cuda/driver/context.h"

#include <cstring>
#include <utility>

#include "src/cuda/driver/errors.h"

namespace gpushare::cuda {

absl::StatusOr<std::unique_ptr<Context>> Context::Open(int ordinal) {
  absl::StatusOr<DriverApi> api = LoadDriverApi();
  if (!api.ok()) return api.status();
  CUdevice device = 0;
  CUcontext primary = nullptr;
  GPUSHARE_CU_RETURN(*api, cuInit(0));
  GPUSHARE_CU_RETURN(*api, cuDeviceGet(&device, ordinal));
  GPUSHARE_CU_RETURN(*api, cuDevicePrimaryCtxRetain(&primary, device));
  return std::make_unique<Context>(*api, device, primary);
}

Context::~Context() { api_.cuDevicePrimaryCtxRelease(device_); }

int Context::Attribute(CUdevice_attribute attribute) const {
  int value = 0;
  if (api_.cuDeviceGetAttribute(&value, attribute, device_) != CUDA_SUCCESS) return 0;
  return value;
}

ScopedContext::ScopedContext(const DriverApi& api, CUcontext context) : api_(api) {
  CUcontext current = nullptr;
  if (api_.cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == context) return;
  pushed_ = api_.cuCtxPushCurrent(context) == CUDA_SUCCESS;
}

ScopedContext::~ScopedContext() {
  CUcontext popped = nullptr;
  if (pushed_) api_.cuCtxPopCurrent(&popped);
}

ScopedRelaxedCapture::ScopedRelaxedCapture(const DriverApi& api) : api_(api) {
  api_.cuThreadExchangeStreamCaptureMode(&mode_);
}

ScopedRelaxedCapture::~ScopedRelaxedCapture() { api_.cuThreadExchangeStreamCaptureMode(&mode_); }

absl::StatusOr<DeviceMemory> DeviceMemory::Make(const Context& context, size_t bytes) {
  const ScopedContext current(context);
  DeviceMemory memory;
  GPUSHARE_CU_RETURN(context.api(), cuMemAlloc(&memory.address_, bytes));
  memory.context_ = &context;
  // Zero the memory on a stream of its own and wait for it: lanes do not wait for other streams.
  GPUSHARE_CU_RETURN(context.api(),
                     cuMemsetD8Async(memory.address_, 0, bytes, CU_STREAM_PER_THREAD));
  GPUSHARE_CU_RETURN(context.api(), cuStreamSynchronize(CU_STREAM_PER_THREAD));
  return memory;
}

DeviceMemory& DeviceMemory::operator=(DeviceMemory&& other) noexcept {
  if (this == &other) return *this;
  Free();
  context_ = std::exchange(other.context_, nullptr);
  address_ = std::exchange(other.address_, 0);
  return *this;
}

void DeviceMemory::Free() {
  if (context_ == nullptr || address_ == 0) return;
  const ScopedContext current(*context_);
  context_->api().cuMemFree(address_);
  address_ = 0;
}

absl::StatusOr<MappedMemory> MappedMemory::Make(const Context& context, size_t bytes) {
  const ScopedContext current(context);
  MappedMemory memory;
  GPUSHARE_CU_RETURN(
      context.api(),
      cuMemHostAlloc(&memory.host_, bytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
  memory.context_ = &context;
  std::memset(memory.host_, 0, bytes);
  GPUSHARE_CU_RETURN(context.api(), cuMemHostGetDevicePointer(&memory.device_, memory.host_, 0));
  return memory;
}

MappedMemory& MappedMemory::operator=(MappedMemory&& other) noexcept {
  if (this == &other) return *this;
  Free();
  context_ = std::exchange(other.context_, nullptr);
  host_ = std::exchange(other.host_, nullptr);
  device_ = std::exchange(other.device_, 0);
  return *this;
}

void MappedMemory::Free() {
  if (context_ == nullptr || host_ == nullptr) return;
  const ScopedContext current(*context_);
  context_->api().cuMemFreeHost(host_);
  host_ = nullptr;
}

}  // namespace gpushare::cuda
