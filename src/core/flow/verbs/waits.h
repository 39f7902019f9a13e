// The verb "wait": a task holds the slots of the tickets that it waits for.
//
//   WaitHolds holds(flow.tables);
//   holds.Take(spec.wait_tickets);  // INVALID_ARGUMENT: a ticket is stale
//   AcceptTask(...); holds.Keep();  // the task keeps them
//   DropWaits(flow, task);          // all of them are done, or the task has ended
//
// A slot that is held is not reused, so the verdict that the flow reads there is that of the
// ticket, whoever releases it meanwhile. Threads: submitters take the holds, without a lock; the
// thread that runs Tick drops those of a task.

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

// The task waits for nothing any more.
void DropWaits(Flow& flow, Task& task);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_VERBS_WAITS_H_
