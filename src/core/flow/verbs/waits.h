// The verb "wait": a task waits for the ends of other tasks.
//
//   WaitHolds holds(flow.tables);
//   holds.Take(spec.wait_tickets);   // INVALID_ARGUMENT: a ticket is stale
//   AcceptTask(...); holds.Keep();   // the task keeps them
//   LinkWaits(flow, task);           // at admission; drops the holds
//   SettleWaits(other);              // `other` has ended: writes its verdict into their waits
//   DropWaits(flow, task);           // all of them are done, or the task has ended
//
// From its submit to its admission, a Tick or two, a task holds the slots of the tickets that it
// waits for. A slot that is held is not reused, so each is found at admission, whoever releases its
// ticket meanwhile. After that the waits stand in the task that waits: they cost its app a task
// slot, and the apps that it waits for nothing. Threads: submitters take the holds, without a lock;
// the rest is for the thread that runs Tick.

#ifndef GPUSHARE_SRC_CORE_FLOW_VERBS_WAITS_H_
#define GPUSHARE_SRC_CORE_FLOW_VERBS_WAITS_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "src/core/state/flow.h"

namespace gpushare::core {

// The holds of a submit that may still fail.
class WaitHolds {
 public:
  explicit WaitHolds(Tables& tables) : tables_(tables) {}
  ~WaitHolds();
  WaitHolds(const WaitHolds&) = delete;
  WaitHolds& operator=(const WaitHolds&) = delete;

  // At most kMaxWaitsPerTask tickets.
  absl::Status Take(absl::Span<const TicketId> tickets);
  void Keep() { held_.Clear(); }

 private:
  Tables& tables_;
  BoundedList<TicketId, kMaxWaitsPerTask> held_;
};

// The task is admitted.
void LinkWaits(Flow& flow, Task& task);

// The task has ended: its record has the verdict.
void SettleWaits(Task& task);

// The task waits for nothing any more.
void DropWaits(Flow& flow, Task& task);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_VERBS_WAITS_H_
