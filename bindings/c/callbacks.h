// Slots that carry a caller's completion callback or eventfd through the scheduler.
//
// The scheduler calls one function with one pointer, and the ABI's callbacks get a converted
// record. So the pointer is a slot of this bounded pool. A slot is taken at submit, or when a
// callback is added, and given back right before the callback runs.
//
// Invariants: Take and Give allocate nothing; a slot serves one completion. Threads: any; the free
// list is lock-free, with a tag against ABA.

#ifndef GPUSHARE_BINDINGS_C_CALLBACKS_H_
#define GPUSHARE_BINDINGS_C_CALLBACKS_H_

#include <gpushare/gpushare.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "src/core/base/limits.h"
#include "src/core/flow/scheduler.h"

namespace gpushare::abi {

class CallbackPool {
 public:
  CallbackPool();
  ~CallbackPool();
  CallbackPool(const CallbackPool&) = delete;
  CallbackPool& operator=(const CallbackPool&) = delete;

  struct Slot {
    CallbackPool* pool;
    gpushare_completion_callback callback;  // null: write to the event descriptor
    void* user;
    int event_fd;
    // Index + 1 of the next free slot. A plain integer, used through std::atomic_ref, so that
    // creating the pool touches none of its pages.
    uint32_t next;
  };

  // Null if every slot is taken.
  Slot* Take(gpushare_completion_callback callback, void* user, int event_fd);
  void Give(Slot* slot);

  // The scheduler's CompletionCallback; `user` is a slot.
  static void Run(void* user, const core::CompletionRecord& record);

 private:
  // One slot for each task that may be pending: a complete task has given its slot back.
  static constexpr uint32_t kSlots = core::kMaxTasks;

  std::unique_ptr<Slot[]> slots_;  // not initialised: a page is touched at its first use
  std::atomic<uint32_t> used_{0};
  std::atomic<uint64_t> free_{0};  // tag << 32 | index + 1
};

}  // namespace gpushare::abi

#endif  // GPUSHARE_BINDINGS_C_CALLBACKS_H_
