// Claim counters in device memory: a pair for each counter of the scheduler.
//
// A task's counter must be zero before its first worker claims, on any lane. No launch may wait for
// a write that zeroes it. So the two counters of a pair take turns: a task uses the counter that
// the last worker of the task before it zeroed, and its own launches zero the other one.
// Threads: a counter serves one task at a time, and one thread at a time launches that task.

#ifndef GPUSHARE_SRC_CUDA_LANES_CLAIM_COUNTERS_H_
#define GPUSHARE_SRC_CUDA_LANES_CLAIM_COUNTERS_H_

#include <array>
#include <atomic>
#include <cstdint>

#include "src/core/base/limits.h"
#include "src/cuda/driver/context.h"
#include "src/cuda/driver/errors.h"

namespace gpushare::cuda {

class ClaimCounters {
 public:
  absl::Status Allocate(const Context& context) {
    auto memory = DeviceMemory::Make(context, sizeof(uint32_t) * 2 * core::kMaxCounters);
    if (!memory.ok()) return memory.status();
    memory_ = *std::move(memory);
    return absl::OkStatus();
  }

  // The side of the pair (0 or 1) that the task claims from. The first launch of a task switches
  // sides.
  int SideFor(int32_t counter, bool begins) const {
    const int side = sides_[static_cast<size_t>(counter)].load(std::memory_order_acquire);
    return begins ? side ^ 1 : side;
  }
  // Call after the driver accepted a launch of the task on `side`. What PrepareYieldLists enqueued
  // for the other side is accepted by then, too.
  void Use(int32_t counter, int side) {
    yield_list_used_[List(counter, side ^ 1)].store(false, std::memory_order_relaxed);
    sides_[static_cast<size_t>(counter)].store(static_cast<uint8_t>(side),
                                               std::memory_order_release);
  }
  uint32_t* At(int32_t counter, int side) const {
    return memory_.At<uint32_t>(2 * static_cast<size_t>(counter) + static_cast<size_t>(side));
  }

  // A kernel with yield points puts an interrupted block task into a list of its task. One entry
  // for each worker that fits on the device at once always suffices.
  static constexpr uint64_t kYieldEntries = 4096;

  // Allocates the lists before the first launch of a kernel with yield points. Later calls do
  // nothing.
  absl::Status AllocateYieldLists(const Context& context) {
    if (yield_lists_.address() != 0) return absl::OkStatus();
    auto memory = DeviceMemory::Make(context, sizeof(uint64_t) * kListWords * 2 * kYieldTasks);
    if (!memory.ok()) return memory.status();
    yield_lists_ = *std::move(memory);
    context_ = &context;
    return absl::OkStatus();
  }
  // Call when a task begins, with or without yield points. It zeroes the list that the next task
  // will use if an earlier task wrote to it. A cancelled task leaves interrupted block tasks there,
  // and the next task must not run them.
  absl::Status PrepareYieldLists(CUstream stream, int32_t counter, int side, bool yields) {
    if (yield_list_used_[List(counter, side ^ 1)].load(std::memory_order_acquire)) {
      const auto list = reinterpret_cast<CUdeviceptr>(YieldList(counter, side ^ 1));
      GPUSHARE_CU_RETURN(context_->api(),
                         cuMemsetD8Async(list, 0, sizeof(uint64_t) * kListWords, stream));
    }
    if (yields) yield_list_used_[List(counter, side)].store(true, std::memory_order_release);
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
  // Whether a task with yield points used the list since the list was last zeroed.
  std::array<std::atomic<bool>, 2 * core::kMaxCounters> yield_list_used_{};
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_LANES_CLAIM_COUNTERS_H_
