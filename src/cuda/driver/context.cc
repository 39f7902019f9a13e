// Opens the primary context and allocates its memory. See context.h.

#include "src/cuda/driver/context.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/cuda/driver/await_stream.h"
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

namespace {

// Zeroes memory on a stream of its own and waits for it: lanes do not wait for other streams, and
// the thread's default stream may hold work of the application.
absl::Status Zero(const DriverApi& api, CUdeviceptr address, size_t bytes) {
  CUstream stream = nullptr;
  GPUSHARE_CU_RETURN(api, cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0));
  absl::Status status = GPUSHARE_CU(api, cuMemsetD8Async(address, 0, bytes, stream));
  if (status.ok()) {
    const CUresult code = AwaitStream(api, stream);
    status = code == CUDA_ERROR_NOT_READY
                 ? absl::DeadlineExceededError(absl::StrCat("The device did not zero ", bytes,
                                                            " bytes within ", kOwnWorkMax.count(),
                                                            " s: other work holds it."))
                 : StatusOf(api, code, "cuStreamQuery(stream)", __FILE__, __LINE__);
  }
  if (!absl::IsDataLoss(status)) api.cuStreamDestroy(stream);
  return status;
}

}  // namespace

absl::StatusOr<DeviceMemory> DeviceMemory::Make(const Context& context, size_t bytes) {
  const ScopedContext current(context);
  const ScopedRelaxedCapture relaxed(context.api());
  DeviceMemory memory;
  GPUSHARE_CU_RETURN(context.api(), cuMemAlloc(&memory.address_, bytes));
  memory.context_ = &context;
  absl::Status status = Zero(context.api(), memory.address_, bytes);
  if (status.ok()) return memory;
  // To free it would wait for the fill, or call a lost device.
  memory.Leak();
  return status;
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
  const ScopedRelaxedCapture relaxed(context_->api());
  context_->api().cuMemFree(address_);
  address_ = 0;
}

absl::StatusOr<MappedMemory> MappedMemory::Make(const Context& context, size_t bytes) {
  const ScopedContext current(context);
  const ScopedRelaxedCapture relaxed(context.api());
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
  const ScopedRelaxedCapture relaxed(context_->api());
  context_->api().cuMemFreeHost(host_);
  host_ = nullptr;
}

}  // namespace gpushare::cuda
