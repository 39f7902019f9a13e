// A bounded lock-free stack of free slots. The slot freed last is taken first, while its cache
// lines are warm.
//
// A tag in the head's upper half counts pops, so that a slot that was taken and freed in between
// (the ABA problem) makes the exchange fail. Threads: any on both sides. Memory: a pop acquires
// what the push released, so that a slot's record is handed over with it.

#ifndef GPUSHARE_SRC_CORE_BASE_CONTAINERS_SLOT_STACK_H_
#define GPUSHARE_SRC_CORE_BASE_CONTAINERS_SLOT_STACK_H_

#include <atomic>
#include <cstdint>
#include <memory>

namespace gpushare::core {

class SlotStack {
 public:
  // Holds slots 1 to `capacity`, all free.
  explicit SlotStack(uint32_t capacity)
      : next_(std::make_unique<std::atomic<uint32_t>[]>(size_t{capacity} + 1)) {
    for (uint32_t slot = 1; slot <= capacity; ++slot) next_[slot] = slot == capacity ? 0 : slot + 1;
    head_ = capacity == 0 ? 0 : 1;
  }

  void Push(uint32_t slot) {
    uint64_t head = head_.load(std::memory_order_relaxed);
    do {
      next_[slot].store(static_cast<uint32_t>(head), std::memory_order_relaxed);
    } while (!head_.compare_exchange_weak(head, (head & kTagMask) | slot, std::memory_order_release,
                                          std::memory_order_relaxed));
  }

  // The slot that a TryPop would take now, 0 without one: a hint.
  uint32_t Top() const { return static_cast<uint32_t>(head_.load(std::memory_order_relaxed)); }

  // False: no slot is free.
  bool TryPop(uint32_t& slot) {
    uint64_t head = head_.load(std::memory_order_acquire);
    for (;;) {
      slot = static_cast<uint32_t>(head);
      if (slot == 0) return false;
      const uint64_t below = next_[slot].load(std::memory_order_relaxed);
      const uint64_t tagged = ((head & kTagMask) + kTagOne) | below;
      if (head_.compare_exchange_weak(head, tagged, std::memory_order_acquire,
                                      std::memory_order_acquire)) {
        return true;
      }
    }
  }

 private:
  static constexpr uint64_t kTagOne = uint64_t{1} << 32;
  static constexpr uint64_t kTagMask = ~(kTagOne - 1);

  std::unique_ptr<std::atomic<uint32_t>[]> next_;
  alignas(64) std::atomic<uint64_t> head_{0};
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_BASE_CONTAINERS_SLOT_STACK_H_
