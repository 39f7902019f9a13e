// Claim counters in device memory: two for each of the scheduler's.
//
// A task's counter must be zero before its first worker claims, on whichever lane that is, without
// a write that its launches would wait for. So the two take turns: a task that starts uses the one
// that was zeroed by the last worker of the task before it, and its own launches zero the other.
// Threads: Use by one launcher of the task at a time; a counter serves one task at a time.

#ifndef GPUSHARE_SRC_CUDA_CLAIM_COUNTERS_H_
#define GPUSHARE_SRC_CUDA_CLAIM_COUNTERS_H_

#include <array>
#include <atomic>
#include <cstdint>

#include "src/core/base/limits.h"
#include "src/cuda/context.h"
#include "src/cuda/errors.h"

namespace gpushare::cuda {

class ClaimCounters {
 public:
  absl::Status Allocate(const Context& context) {
    auto memory = DeviceMemory::Make(context, sizeof(uint32_t) * 2 * core::kMaxCounters);
    if (!memory.ok()) return memory.status();
    memory_ = *std::move(memory);
    return absl::OkStatus();
  }

  // The side of the pair that the task claims from; one that begins takes the other side.
  int SideFor(int32_t counter, bool begins) const {
    const int side = sides_[static_cast<size_t>(counter)].load(std::memory_order_acquire);
    return begins ? side ^ 1 : side;
  }
  // The launch that began the task was accepted, and so was what zeroes the other side before it.
  void Use(int32_t counter, int side) {
    left_[List(counter, side ^ 1)].store(false, std::memory_order_relaxed);
    sides_[static_cast<size_t>(counter)].store(static_cast<uint8_t>(side),
                                               std::memory_order_release);
  }
  uint32_t* At(int32_t counter, int side) const {
    return memory_.At<uint32_t>(2 * static_cast<size_t>(counter) + static_cast<size_t>(side));
  }

  // Kernels with yield points: an interrupted block task waits in a list of its task. As many
  // entries as workers that can be on the device at once are always enough.
  static constexpr uint64_t kYieldEntries = 4096;

  // Makes the lists, once, before the first launch of such a kernel.
  absl::Status AllocateYieldLists(const Context& context) {
    if (yield_lists_.address() != 0) return absl::OkStatus();
    auto memory = DeviceMemory::Make(context, sizeof(uint64_t) * kListWords * 2 * kYieldTasks);
    if (!memory.ok()) return memory.status();
    yield_lists_ = *std::move(memory);
    context_ = &context;
    return absl::OkStatus();
  }
  // For every task that begins, with yield points or without: it zeroes the list that the task
  // after it may use, where an earlier task may have left interrupted block tasks in it. One that
  // was cancelled does, and they must not be taken for those of another task.
  absl::Status PrepareYieldLists(CUstream stream, int32_t counter, int side, bool yields) {
    if (left_[List(counter, side ^ 1)].load(std::memory_order_acquire)) {
      const auto list = reinterpret_cast<CUdeviceptr>(YieldList(counter, side ^ 1));
      GPUSHARE_CU_RETURN(context_->api(),
                         cuMemsetD8Async(list, 0, sizeof(uint64_t) * kListWords, stream));
    }
    if (yields) left_[List(counter, side)].store(true, std::memory_order_release);
    return absl::OkStatus();
  }
  uint64_t* YieldList(int32_t counter, int side) const {
    return yield_lists_.At<uint64_t>(List(counter, side) * kListWords);
  }

  void Leak() {
    memory_.Leak();
    yield_lists_.Leak();
  }

 private:
  static constexpr size_t List(int32_t counter, int side) {
    return 2 * static_cast<size_t>(counter) + static_cast<size_t>(side);
  }

  static constexpr size_t kListWords = 1 + kYieldEntries;
  static constexpr size_t kYieldTasks = core::kMaxCounters;

  const Context* context_ = nullptr;
  DeviceMemory memory_;
  DeviceMemory yield_lists_;  // 64 MB
  std::array<std::atomic<uint8_t>, core::kMaxCounters> sides_{};
  // Whether a task with yield points used the list since it was zeroed.
  std::array<std::atomic<bool>, 2 * core::kMaxCounters> left_{};
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_CLAIM_COUNTERS_H_
