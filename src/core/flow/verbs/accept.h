// The verb "accept": a slot of the app becomes a task of the flow.
//
//   InsideSubmit inside(app);       // releasing the app waits for this thread
//   QueueHold hold(queue);          // the queue is not released meanwhile
//   ... look again whether app and queue are open ...
//   AcceptTask(...); hold.Keep();   // the task keeps the hold until it completes
//
// Shared by submit and regions. Threads: any. Allocates only for an error's message.

#ifndef GPUSHARE_SRC_CORE_FLOW_VERBS_ACCEPT_H_
#define GPUSHARE_SRC_CORE_FLOW_VERBS_ACCEPT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/core/base/ids.h"
#include "src/core/state/flow.h"

namespace gpushare::core {

// Counts a thread inside a submit of the app, so that releasing the app can wait for it.
class InsideSubmit {
 public:
  explicit InsideSubmit(App& app) : app_(app) { app_.submitters.fetch_add(1); }
  ~InsideSubmit() { app_.submitters.fetch_sub(1, std::memory_order_release); }
  InsideSubmit(const InsideSubmit&) = delete;
  InsideSubmit& operator=(const InsideSubmit&) = delete;

 private:
  App& app_;
};

// Holds a queue against its release while a submit is under way; an accepted task keeps the hold.
class QueueHold {
 public:
  explicit QueueHold(Queue& queue) : queue_(&queue) { queue.tasks_open.fetch_add(1); }
  ~QueueHold() {
    if (queue_ != nullptr) queue_->tasks_open.fetch_sub(1);
  }
  QueueHold(const QueueHold&) = delete;
  QueueHold& operator=(const QueueHold&) = delete;
  void Keep() { queue_ = nullptr; }
  // Whether it is still the queue that the caller named. Call it after taking the hold.
  bool IsStill(QueueId id) const { return queue_->id.load() == id.value && queue_->open.load(); }

 private:
  Queue* queue_;
};

// Why the runtime takes no work: the device is lost, or it is shut down.
absl::Status RefusalOf(const Flow& flow);

absl::Status QueueReleased(QueueId id);

// As GraphUse knows the queue, which is held.
inline uint32_t SlotOf(const Queue& queue) {
  return SmallSlot(queue.id.load(std::memory_order_relaxed));
}

// A filled task, held by the caller (unless it is detached) and by the flow. From here on it
// completes exactly once. RESOURCE_EXHAUSTED: the app has no free slot. FAILED_PRECONDITION: the
// graph belongs to apps of the other class.
absl::StatusOr<Task*> AcceptTask(Flow& flow, Queue& queue, const TaskSpec& spec,
                                 const KernelDesc* kernel, QuerySlot* query);

// The same in two steps, for a caller that accepts several tasks or none:
//
//   Task* task = ReserveTask(...);  // a slot, the arguments, a use of the graph; not visible yet
//   AcceptReserved(..., *task);     // cannot fail
//   DropReserved(..., *task);       // or this instead
//
// All three with the same kernel. Null: there is none, for the reason in `why`.
enum class NotReserved : uint8_t { kNoTask, kNoLargeArguments, kReleased, kOtherUser };
Task* ReserveTask(Flow& flow, const Queue& queue, const Work& work, const KernelDesc* kernel,
                  NotReserved& why);
void DropReserved(Flow& flow, Task& task, const KernelDesc* kernel);
void AcceptReserved(Flow& flow, Queue& queue, const TaskSpec& spec, const KernelDesc* kernel,
                    QuerySlot* query, Task& task);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_VERBS_ACCEPT_H_
