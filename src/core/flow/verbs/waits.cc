// The verb "wait". See waits.h.

#include "src/core/flow/verbs/waits.h"

#include "absl/strings/str_cat.h"

namespace gpushare::core {

WaitHolds::~WaitHolds() {
  for (const TicketId ticket : held_) tables_.DropWaiter(ticket);
}

absl::Status WaitHolds::Take(absl::Span<const TicketId> tickets) {
  for (const TicketId ticket : tickets) {
    if (!tables_.HoldForWaiter(ticket)) {
      return absl::InvalidArgumentError(absl::StrCat("The task waits for ticket ", ticket.value,
                                                     ", which does not exist or is released."));
    }
    held_.Add(ticket);
  }
  return absl::OkStatus();
}

void DropWaits(Flow& flow, Task& task) {
  for (const TicketId ticket : task.wait_tickets) flow.tables.DropWaiter(ticket);
  task.wait_tickets.Clear();
}

}  // namespace gpushare::core
