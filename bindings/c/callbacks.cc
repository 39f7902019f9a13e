// Slots that carry a caller's callback; see callbacks.h.

#include "bindings/c/callbacks.h"

#include <unistd.h>

#include "bindings/c/convert.h"
#include "bindings/c/errors.h"

namespace gpushare::abi {
namespace {

std::atomic_ref<uint32_t> NextOf(CallbackPool::Slot& slot) {
  return std::atomic_ref<uint32_t>(slot.next);
}

}  // namespace

CallbackPool::CallbackPool() : slots_(new Slot[kSlots]) {}

// The scheduler has completed every task before it was destroyed, so every slot was given back.
CallbackPool::~CallbackPool() = default;

CallbackPool::Slot* CallbackPool::Take(gpushare_completion_callback callback, void* user,
                                       int event_fd) {
  Slot* slot = nullptr;
  uint64_t head = free_.load(std::memory_order_acquire);
  while (static_cast<uint32_t>(head) != 0) {
    Slot* const first = &slots_[static_cast<uint32_t>(head) - 1];
    const uint64_t next = (head >> 32) + 1;
    if (free_.compare_exchange_weak(head,
                                    next << 32 | NextOf(*first).load(std::memory_order_relaxed),
                                    std::memory_order_acquire)) {
      slot = first;
      break;
    }
  }
  if (slot == nullptr) {
    uint32_t index = used_.load(std::memory_order_relaxed);
    do {
      if (index == kSlots) return nullptr;
    } while (!used_.compare_exchange_weak(index, index + 1, std::memory_order_relaxed));
    slot = &slots_[index];
  }
  slot->pool = this;
  slot->callback = callback;
  slot->user = user;
  slot->event_fd = event_fd;
  return slot;
}

void CallbackPool::Give(Slot* slot) {
  const auto index = static_cast<uint32_t>(slot - slots_.get()) + 1;
  uint64_t head = free_.load(std::memory_order_relaxed);
  uint64_t next = 0;
  do {
    NextOf(*slot).store(static_cast<uint32_t>(head), std::memory_order_relaxed);
    next = ((head >> 32) + 1) << 32 | index;
  } while (!free_.compare_exchange_weak(head, next, std::memory_order_release));
}

void CallbackPool::Run(void* user, const core::CompletionRecord& record) {
  auto* const slot = static_cast<Slot*>(user);
  const gpushare_completion_callback callback = slot->callback;
  void* const callback_user = slot->user;
  const int event_fd = slot->event_fd;
  slot->pool->Give(slot);
  if (callback == nullptr) {
    const uint64_t one = 1;
    // A write to an eventfd is whole or fails. It cannot be full: its counter is 0.
    const ssize_t written = ::write(event_fd, &one, sizeof(one));
    static_cast<void>(written);
    ::close(event_fd);
    return;
  }
  const gpushare_completion_record converted = ToC(record);
  const CallbackScope scope;
  callback(callback_user, &converted);
}

}  // namespace gpushare::abi
