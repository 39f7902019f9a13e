// Launches in flight: from the launch identifier that a device echoes to the task and its part.
//
// Slots are taken from any thread (the LC fast path launches too) and freed by the flow. The
// identifier carries a generation. A completion that comes twice, or for a lane that was given up,
// is thereby recognised as stray, and only counted.

#ifndef GPUSHARE_SRC_CORE_STATE_LAUNCHES_LAUNCH_TABLE_H_
#define GPUSHARE_SRC_CORE_STATE_LAUNCHES_LAUNCH_TABLE_H_

#include <array>
#include <atomic>
#include <cstdint>

#include "src/core/base/containers/slot_stack.h"
#include "src/core/base/limits.h"
#include "src/core/base/types.h"

namespace gpushare::core {

struct Task;

class LaunchTable {
 public:
  // 0 when the table is full.
  LaunchId Take(Task* task) {
    uint32_t index = 0;
    if (!free_.TryPop(index)) return LaunchId{};
    Slot& slot = slots_[index - 1];
    slot.task.store(task, std::memory_order_release);
    const uint64_t generation = slot.generation.load(std::memory_order_relaxed);
    return LaunchId{generation << 16 | index};
  }

  // Null for a launch that is not in flight.
  Task* Find(LaunchId launch) const {
    const Slot* slot = Live(launch);
    return slot == nullptr ? nullptr : slot->task.load(std::memory_order_acquire);
  }

  void Free(LaunchId launch) {
    const auto index = static_cast<uint32_t>(launch.value & 0xffff);
    slots_[index - 1].generation.fetch_add(1, std::memory_order_acq_rel);
    free_.Push(index);
  }

 private:
  struct Slot {
    std::atomic<uint64_t> generation{1};
    std::atomic<Task*> task{nullptr};
  };
  const Slot* Live(LaunchId launch) const {
    const auto index = static_cast<uint32_t>(launch.value & 0xffff);
    if (index == 0 || index > kMaxInFlightLaunches) return nullptr;
    const Slot& slot = slots_[index - 1];
    return slot.generation.load(std::memory_order_acquire) == launch.value >> 16 ? &slot : nullptr;
  }

  std::array<Slot, kMaxInFlightLaunches> slots_;
  SlotStack free_{kMaxInFlightLaunches};
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_STATE_LAUNCHES_LAUNCH_TABLE_H_
