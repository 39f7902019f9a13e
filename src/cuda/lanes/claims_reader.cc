// Copies of claim counters. See claims_reader.h.

#include "src/cuda/lanes/claims_reader.h"

#include <atomic>
#include <utility>

#include "src/cuda/driver/errors.h"

namespace gpushare::cuda {

absl::Status ClaimsReader::Open(int priority) {
  auto values = MappedMemory::Make(context_, sizeof(uint32_t) * core::kMaxCounters);
  if (!values.ok()) return values.status();
  values_ = *std::move(values);
  return GPUSHARE_CU(context_.api(),
                     cuStreamCreateWithPriority(&stream_, CU_STREAM_NON_BLOCKING, priority));
}

std::optional<int64_t> ClaimsReader::Read(int32_t counter, const uint32_t* address) {
  const DriverApi& api = context_.api();
  const uint32_t*& copied = copied_[static_cast<size_t>(counter)];
  uint32_t* const value = values_.Host<uint32_t>(static_cast<size_t>(counter));
  if (copied != address) {
    const CUresult code = api.cuMemcpyDtoHAsync(value, reinterpret_cast<CUdeviceptr>(address),
                                                sizeof(*value), stream_);
    copied = code == CUDA_SUCCESS ? address : nullptr;
    return std::nullopt;
  }
  if (api.cuStreamQuery(stream_) != CUDA_SUCCESS) return std::nullopt;
  copied = nullptr;
  std::atomic_thread_fence(std::memory_order_acquire);
  return *const_cast<const volatile uint32_t*>(value);
}

bool ClaimsReader::Idle() const {
  return stream_ == nullptr || context_.api().cuStreamQuery(stream_) != CUDA_ERROR_NOT_READY;
}

void ClaimsReader::Close() {
  if (stream_ != nullptr) context_.api().cuStreamDestroy(stream_);
  stream_ = nullptr;
}

}  // namespace gpushare::cuda
