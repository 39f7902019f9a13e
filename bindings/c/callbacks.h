// Slots that carry a caller's completion callback or eventfd through the scheduler.
//
// The scheduler calls one function with one pointer; the ABI's callbacks need the record converted,
// so that pointer is a slot of this bounded pool. A slot is taken at submit (or when a callback is
// added) and given back right before the callback runs. Invariants: takes and gives allocate
// nothing; a slot is used once. Threads: any; a lock-free free list with a tag against ABA.

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
    gpushare_completion_callback callback;  // null: the event descriptor
    void* user;
    int event_fd;
    uint32_t next;  // index + 1 of the next free slot; used through std::atomic_ref, so that making
                    // the pool touches no page
  };

  // Null when every slot is taken.
  Slot* Take(gpushare_completion_callback callback, void* user, int event_fd);
  void Give(Slot* slot);

  // The scheduler's CompletionCallback; `user` is a slot.
  static void Run(void* user, const core::CompletionRecord& record);

 private:
  // As many as there are tasks: one that is complete has given its slot back.
  static constexpr uint32_t kSlots = core::kMaxTasks;

  std::unique_ptr<Slot[]> slots_;  // pages are touched as they are first used
  std::atomic<uint32_t> used_{0};
  std::atomic<uint64_t> free_{0};  // tag << 32 | index + 1
};

}  // namespace gpushare::abi

#endif  // GPUSHARE_BINDINGS_C_CALLBACKS_H_
